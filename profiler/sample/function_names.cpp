#include "profiler/sample/function_names.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "profiler/sample/elf_symbols.h"
#include "profiler/sample/mapped_file.h"

namespace sluice::sample {
namespace {

// Names of templates may have thousands; a window shows some dozens of them.
constexpr std::size_t kNameSizeMax = 1000;

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  std::string said = status == 0 ? text.get() : name;
  if (said.size() > kNameSizeMax) said.resize(kNameSizeMax);
  return said;
}

// None where the file is no longer the one that is loaded.
std::span<const std::byte> bytes_if_loaded(std::span<const std::byte> bytes,
                                           std::span<const std::byte> head) {
  const bool is_same =
      bytes.size() >= head.size() && std::memcmp(bytes.data(), head.data(), head.size()) == 0;
  return is_same ? bytes : std::span<const std::byte>();
}

}  // namespace

struct FunctionNames::File {
  MappedFile bytes;
  ElfSymbols symbols;

  explicit File(const CodePlace& place)
      : bytes(place.path), symbols(bytes_if_loaded(bytes.bytes(), place.head)) {}
};

FunctionNames::FunctionNames() = default;
FunctionNames::~FunctionNames() = default;

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
  const ElfSymbols& symbols = symbols_of(first);
  const std::string library = first.library();
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (is_known(addresses[i])) continue;  // by the one before it
    if (const auto symbol = symbols.at(addresses[i] - first.load_bias)) {
      code_[symbol->begin + first.load_bias] = {symbol->end + first.load_bias,
                                                id_of(demangled(symbol->name), library, rows)};
    } else {
      const std::string name = fmt::format("{}+{:#x}", library, places[i].begin - first.load_bias);
      code_[places[i].begin] = {places[i].end, id_of(name, library, rows)};
    }
  }
}

const ElfSymbols& FunctionNames::symbols_of(const CodePlace& place) {
  const auto known = files_.find(place.path);
  if (known != files_.end()) return known->second->symbols;
  auto file = std::make_unique<File>(place);
  return files_.emplace(place.path, std::move(file)).first->second->symbols;
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
