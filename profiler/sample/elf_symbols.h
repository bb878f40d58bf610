#pragma once
// Names of functions in an ELF file. The file may be anybody's: what lies outside of it, or is no
// table of symbols, names nothing.
//
// Thread contract: one thread at a time.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice::sample {

// A function of a file, by the addresses that the file gives it.
struct ElfSymbol {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  // behind its last byte
  std::string name = {};  // as the file has it
};

class ElfSymbols {
 public:
  // Where a file has more functions (this many take 64 MiB), the last ones have no name.
  static constexpr std::size_t kSymbolsMax = 4 << 20;

  // One pass over the file's .symtab, or .dynsym where it has no other. The bytes outlive this.
  explicit ElfSymbols(std::span<const std::byte> file);

  // The function that the address lies in, if the file says so with a size.
  std::optional<ElfSymbol> at(std::uint64_t address) const;

 private:
  struct Symbol {
    std::uint64_t begin;
    std::uint32_t size_bytes;
    std::uint32_t name_at;
  };

  std::vector<Symbol> symbols_;  // by their begins
  std::span<const std::byte> names_;
};

}  // namespace sluice::sample
