#include "base/kernel_text.h"

#include "base/check.h"

namespace sluice {
namespace {

constexpr std::string_view kAnonymous = "(anonymous namespace)::";
constexpr std::string_view kDots = "...";

// Parameters follow the name or its template's arguments directly: "memcpy HtoD (pinned)" has none.
std::string_view without_parameters(std::string_view name) {
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    const bool begins = name[i] == '(' && depth == 0 && i > 0 && name[i - 1] != ' ';
    if (begins && !name.substr(i).starts_with(kAnonymous)) return name.substr(0, i);
  }
  return name;
}

void remove_all(std::string& text, std::string_view part) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at))
    text.erase(at, part.size());
}

}  // namespace

std::string short_kernel_name(std::string_view name, std::size_t size_max) {
  CHECK_GT(size_max, kDots.size());
  constexpr std::string_view kNothing = "void ";
  if (name.starts_with(kNothing)) name.remove_prefix(kNothing.size());
  std::string text(without_parameters(name));
  remove_all(text, kAnonymous);
  remove_all(text, "at::native::");
  if (text.size() <= size_max) return text;
  text.resize(size_max - kDots.size());
  return text.append(kDots);
}

std::string_view what_runs(std::string_view name) {
  constexpr std::string_view kWrapper = "::callback_fn<";
  const std::size_t at = name.find(kWrapper);
  return at == std::string_view::npos ? name : name.substr(at + kWrapper.size());
}

}  // namespace sluice
