#include "profiler/sample/elf_symbols.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

namespace sluice::sample {
namespace {

template <typename T>
std::optional<T> struct_at(std::span<const std::byte> file, std::uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

std::span<const std::byte> part_of(std::span<const std::byte> file, const Elf64_Shdr& section) {
  if (section.sh_type == SHT_NOBITS || section.sh_offset > file.size() ||
      file.size() - section.sh_offset < section.sh_size) {
    return {};
  }
  return file.subspan(section.sh_offset, section.sh_size);
}

struct SymbolTable {
  std::span<const std::byte> symbols;
  std::span<const std::byte> names;
};

std::optional<SymbolTable> table_of_kind(std::span<const std::byte> file, std::uint32_t kind) {
  const auto header = struct_at<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(Elf64_Shdr)) {
    return std::nullopt;
  }
  const auto section_at = [&](std::uint32_t index) {
    return index < header->e_shnum
               ? struct_at<Elf64_Shdr>(file, header->e_shoff + index * sizeof(Elf64_Shdr))
               : std::nullopt;
  };
  for (std::uint32_t i = 0; i < header->e_shnum; ++i) {
    const auto section = section_at(i);
    if (!section || section->sh_type != kind) continue;
    const auto names = section_at(section->sh_link);
    if (!names) return std::nullopt;
    return SymbolTable{part_of(file, *section), part_of(file, *names)};
  }
  return std::nullopt;
}

std::string name_at(std::span<const std::byte> names, std::uint32_t offset) {
  if (offset >= names.size()) return {};
  const auto text = names.subspan(offset);
  const std::string_view rest(reinterpret_cast<const char*>(text.data()), text.size());
  return std::string(rest.substr(0, rest.find('\0')));
}

bool is_function(const Elf64_Sym& symbol) {
  const auto type = ELF64_ST_TYPE(symbol.st_info);
  return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol.st_shndx != SHN_UNDEF &&
         symbol.st_size > 0 && symbol.st_size <= std::numeric_limits<std::uint32_t>::max() &&
         symbol.st_value < std::numeric_limits<std::uint64_t>::max() / 2;
}

}  // namespace

ElfSymbols::ElfSymbols(std::span<const std::byte> file) {
  std::optional<SymbolTable> table = table_of_kind(file, SHT_SYMTAB);
  if (!table) table = table_of_kind(file, SHT_DYNSYM);
  if (!table) return;
  names_ = table->names;
  const std::size_t count = table->symbols.size() / sizeof(Elf64_Sym);
  for (std::size_t i = 0; i < count && symbols_.size() < kSymbolsMax; ++i) {
    const auto symbol = struct_at<Elf64_Sym>(table->symbols, i * sizeof(Elf64_Sym));
    if (!is_function(*symbol)) continue;
    symbols_.push_back(
        {symbol->st_value, static_cast<std::uint32_t>(symbol->st_size), symbol->st_name});
  }
  std::ranges::stable_sort(symbols_, {}, &Symbol::begin);
}

std::optional<ElfSymbol> ElfSymbols::at(std::uint64_t address) const {
  // Functions may lie in others; the one that begins last is the innermost. Few do, so a few
  // looks are enough.
  constexpr int kLooks = 8;
  auto after = std::ranges::upper_bound(symbols_, address, {}, &Symbol::begin);
  for (int i = 0; i < kLooks && after != symbols_.begin(); ++i) {
    const Symbol& symbol = *--after;
    const std::uint64_t end = symbol.begin + symbol.size_bytes;
    if (address >= end) continue;
    std::string name = name_at(names_, symbol.name_at);
    if (!name.empty()) return ElfSymbol{symbol.begin, end, std::move(name)};
  }
  return std::nullopt;
}

}  // namespace sluice::sample
