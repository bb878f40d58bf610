#pragma once
// Names of functions in an ELF file. The file may be anybody's: what lies outside of it, or is no
// table of symbols, names nothing.
//
// Thread contract: free functions.

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

// For each address the function that it lies in, if the file's .symtab, or without one .dynsym,
// says so with a size. `addresses`: ascending. One pass over the symbols, whatever is asked.
std::vector<std::optional<ElfSymbol>> elf_symbols(std::span<const std::byte> file,
                                                  std::span<const std::uint64_t> addresses);

}  // namespace sluice::sample
