#include "profiler/sample/function_names.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "profiler/sample/elf_symbols.h"

namespace sluice::sample {
namespace {

// Names of templates may have thousands; a window shows some dozens of them.
constexpr std::size_t kNameSizeMax = 1000;

// A file's bytes, as long as this lives; none where it cannot be read.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat facts {};
    if (::fstat(file, &facts) == 0 && facts.st_size > 0) {
      const auto size = static_cast<std::size_t>(facts.st_size);
      void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
      if (memory != MAP_FAILED) bytes_ = {static_cast<const std::byte*>(memory), size};
    }
    ::close(file);
  }
  ~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  std::string said = status == 0 ? text.get() : name;
  if (said.size() > kNameSizeMax) said.resize(kNameSizeMax);
  return said;
}

bool begins_with(std::span<const std::byte> bytes, std::span<const std::byte> head) {
  return bytes.size() >= head.size() && std::memcmp(bytes.data(), head.data(), head.size()) == 0;
}

}  // namespace

bool FunctionNames::is_known(std::uint64_t address) const {
  auto after = code_.upper_bound(address);
  return after != code_.begin() && address < std::prev(after)->second.end;
}

std::int64_t FunctionNames::function_of(std::uint64_t address) const {
  const auto after = code_.upper_bound(address);
  if (after == code_.begin()) return kUnknownFunction;
  const Code& code = std::prev(after)->second;
  return address < code.end ? code.function : kUnknownFunction;
}

void FunctionNames::learn(std::vector<std::uint64_t> addresses,
                          std::vector<rundb::SampledFunctionRow>& rows) {
  if (ids_.empty()) (void)id_of("", "", rows);
  std::erase_if(addresses, [this](std::uint64_t address) { return is_known(address); });
  std::ranges::sort(addresses);
  const auto same = std::ranges::unique(addresses);
  addresses.erase(same.begin(), same.end());
  if (addresses.empty()) return;
  const std::vector<CodePlace> places = places_of_code(addresses);
  // Those of a file lie side by side.
  for (std::size_t begin = 0, end = 0; begin < places.size(); begin = end) {
    while (end < places.size() && places[end].path == places[begin].path) ++end;
    const std::span<const CodePlace> of_file = std::span(places).subspan(begin, end - begin);
    if (!of_file.front().path.empty())
      learn_of_file(std::span(addresses).subspan(begin, end - begin), of_file, rows);
  }
}

void FunctionNames::learn_of_file(std::span<const std::uint64_t> addresses,
                                  std::span<const CodePlace> places,
                                  std::vector<rundb::SampledFunctionRow>& rows) {
  const CodePlace& first = places.front();
  std::vector<std::uint64_t> in_file;
  for (const std::uint64_t address : addresses) in_file.push_back(address - first.load_bias);
  const MappedFile file(first.path);
  std::vector<std::optional<ElfSymbol>> symbols(addresses.size());
  if (begins_with(file.bytes(), first.head)) symbols = elf_symbols(file.bytes(), in_file);
  const std::string library = first.library();
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (is_known(addresses[i])) continue;  // by the one before it
    if (const auto& symbol = symbols[i]) {
      code_[symbol->begin + first.load_bias] = {symbol->end + first.load_bias,
                                                id_of(demangled(symbol->name), library, rows)};
    } else {
      const std::string name =
          fmt::format("{}+{:#x}", library, places[i].begin - first.load_bias);
      code_[places[i].begin] = {places[i].end, id_of(name, library, rows)};
    }
  }
}

std::int64_t FunctionNames::id_of(const std::string& name, const std::string& library,
                                  std::vector<rundb::SampledFunctionRow>& rows) {
  if (ids_.size() >= kFunctionsMax && !ids_.contains(name + "\n" + library)) {
    ++left_out_count_;
    return kUnknownFunction;
  }
  const auto next_id = static_cast<std::int64_t>(ids_.size()) + 1;
  const auto [known, is_new] = ids_.try_emplace(name + "\n" + library, next_id);
  if (is_new) rows.push_back({next_id, name, library});
  return known->second;
}

}  // namespace sluice::sample
