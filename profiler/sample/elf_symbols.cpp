#include "profiler/sample/elf_symbols.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string_view>

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
         symbol.st_size > 0;
}

}  // namespace

std::vector<std::optional<ElfSymbol>> elf_symbols(std::span<const std::byte> file,
                                                  std::span<const std::uint64_t> addresses) {
  std::vector<std::optional<ElfSymbol>> found(addresses.size());
  std::optional<SymbolTable> table = table_of_kind(file, SHT_SYMTAB);
  if (!table) table = table_of_kind(file, SHT_DYNSYM);
  if (!table) return found;
  const std::size_t count = table->symbols.size() / sizeof(Elf64_Sym);
  for (std::size_t i = 0; i < count; ++i) {
    const auto symbol = struct_at<Elf64_Sym>(table->symbols, i * sizeof(Elf64_Sym));
    if (!is_function(*symbol)) continue;
    const std::uint64_t end = symbol->st_value + symbol->st_size;
    for (auto at = std::ranges::lower_bound(addresses, symbol->st_value);
         at != addresses.end() && *at < end; ++at) {
      auto& of_address = found[static_cast<std::size_t>(at - addresses.begin())];
      if (of_address) continue;  // another name of the same code
      std::string name = name_at(table->names, symbol->st_name);
      if (!name.empty()) of_address = ElfSymbol{symbol->st_value, end, std::move(name)};
    }
  }
  return found;
}

}  // namespace sluice::sample
