#include "profiler/sample/loaded_code.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>

namespace sluice::sample {
namespace {

constexpr std::size_t kHeadBytesMax = 4096;

struct Bytes {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool contains(std::uint64_t address) const { return address >= begin && address < end; }
};

// What is loaded of one library. To be read only while dl_iterate_phdr holds it in place.
class Library {
 public:
  explicit Library(const dl_phdr_info& info) : info_(info) {}

  bool has_code_at(std::uint64_t address) const { return any_segment(address, PF_X).has_value(); }

  CodePlace place_of(std::uint64_t address) const {
    CodePlace place;
    place.path = info_.dlpi_name[0] == '\0' ? "/proc/self/exe" : info_.dlpi_name;
    place.load_bias = info_.dlpi_addr;
    place.begin = address;
    place.end = address + 1;
    if (const auto function = function_at(address)) {
      place.begin = function->begin;
      place.end = function->end;
    }
    place.head = head();
    return place;
  }

 private:
  std::span<const ElfW(Phdr)> segments() const { return {info_.dlpi_phdr, info_.dlpi_phnum}; }
  Bytes bytes_of(const ElfW(Phdr) & segment) const {
    const std::uint64_t begin = info_.dlpi_addr + segment.p_vaddr;
    return {begin, begin + segment.p_memsz};
  }
  std::optional<Bytes> any_segment(std::uint64_t address, std::uint32_t flags) const {
    for (const ElfW(Phdr) & segment : segments()) {
      if (segment.p_type == PT_LOAD && (segment.p_flags & flags) == flags &&
          bytes_of(segment).contains(address)) {
        return bytes_of(segment);
      }
    }
    return std::nullopt;
  }

  std::vector<std::byte> head() const {
    for (const ElfW(Phdr) & segment : segments()) {
      if (segment.p_type != PT_LOAD || segment.p_offset != 0 || (segment.p_flags & PF_R) == 0)
        continue;
      const auto* const begin = reinterpret_cast<const std::byte*>(bytes_of(segment).begin);
      return {begin, begin + std::min<std::size_t>(segment.p_filesz, kHeadBytesMax)};
    }
    return {};
  }

  template <typename T>
  std::optional<T> read(std::uint64_t address) const {
    const auto segment = any_segment(address, PF_R);
    if (!segment || segment->end - address < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof(T));
    return value;
  }

  // .eh_frame_hdr (Linux Standard Base, "DWARF Extensions"): a version, three bytes that say how
  // numbers are written, and a sorted table of pairs: where a function begins, and where its entry
  // is. Linkers write one form only, which is the one that is read here.
  std::optional<Bytes> function_at(std::uint64_t address) const {
    constexpr std::uint8_t kSigned32FromHere = 0x1b;
    constexpr std::uint8_t kUnsigned32 = 0x03;
    constexpr std::uint8_t kSigned32FromTable = 0x3b;
    const auto table =
        std::ranges::find(segments(), std::uint32_t{PT_GNU_EH_FRAME}, &ElfW(Phdr)::p_type);
    if (table == segments().end()) return std::nullopt;
    const std::uint64_t at = bytes_of(*table).begin;
    const auto forms = read<std::uint32_t>(at);
    const auto count = read<std::uint32_t>(at + 8);
    if (!forms || !count ||
        *forms != (1u | std::uint32_t{kSigned32FromHere} << 8 | std::uint32_t{kUnsigned32} << 16 |
                   std::uint32_t{kSigned32FromTable} << 24)) {
      return std::nullopt;
    }
    return entry_of(address, at, *count);
  }

  // The last entry that begins at or before the address, if it reaches that far.
  std::optional<Bytes> entry_of(std::uint64_t address, std::uint64_t table,
                                std::uint32_t count) const {
    constexpr std::uint64_t kFirstEntryAt = 12;
    constexpr std::uint64_t kEntryBytes = 8;
    constexpr std::uint64_t kLengthAt = 12;  // in an entry of .eh_frame: behind three of 32 bits
    const auto number_at = [&](std::uint64_t entry, std::uint64_t which) {
      const auto value = read<std::int32_t>(table + kFirstEntryAt + entry * kEntryBytes + which);
      return value ? table + static_cast<std::uint64_t>(std::int64_t{*value}) : 0;
    };
    std::uint64_t low = 0;
    std::uint64_t high = count;  // entries from here on begin behind the address
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (number_at(middle, 0) <= address) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (low == 0) return std::nullopt;
    const std::uint64_t begin = number_at(low - 1, 0);
    const auto length = read<std::uint32_t>(number_at(low - 1, 4) + kLengthAt);
    if (!length) return std::nullopt;
    const Bytes function{begin, begin + *length};
    return function.contains(address) ? std::optional(function) : std::nullopt;
  }

  const dl_phdr_info& info_;
};

struct Question {
  std::span<const std::uint64_t> addresses;
  std::vector<CodePlace> places;
};

int ask_library(dl_phdr_info* info, std::size_t /*size*/, void* data) {
  auto& question = *static_cast<Question*>(data);
  const Library library(*info);
  for (std::size_t i = 0; i < question.addresses.size(); ++i) {
    const std::uint64_t address = question.addresses[i];
    if (library.has_code_at(address)) question.places[i] = library.place_of(address);
  }
  return 0;
}

}  // namespace

std::string CodePlace::library() const {
  if (path == "/proc/self/exe") return program_invocation_short_name;
  return path.substr(path.rfind('/') + 1);
}

std::vector<CodePlace> places_of_code(std::span<const std::uint64_t> addresses) {
  Question question{addresses, std::vector<CodePlace>(addresses.size())};
  ::dl_iterate_phdr(&ask_library, &question);
  return std::move(question.places);
}

}  // namespace sluice::sample
