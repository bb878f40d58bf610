#include "profiler/analyze/settings_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace sluice::analyze {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// Up to a `#` that stands in no quoted text.
std::string_view without_comment(std::string_view line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == 0 && c == '#') return line.substr(0, i);
    if (quote == '"' && c == '\\') {
      i += 1;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    }
  }
  return line;
}

// One space beside the first `=`.
std::string evened(std::string_view line) {
  const std::size_t sign = line.find('=');
  if (sign == std::string_view::npos) return std::string(line);
  return fmt::format("{} = {}", trimmed(line.substr(0, sign)), trimmed(line.substr(sign + 1)));
}

// The name of a section: those of one [[name]] and their subsections are numbered.
class Sections {
 public:
  // False: the line begins no section.
  bool enter(std::string_view line) {
    // An array's last line has brackets, too, and quotes or commas.
    if (!line.starts_with('[') || !line.ends_with(']')) return false;
    if (line.find_first_of("\",'") != std::string_view::npos) return false;
    const bool is_one_of_many = line.starts_with("[[") && line.ends_with("]]");
    const std::size_t brackets = is_one_of_many ? 2 : 1;
    const std::string name(trimmed(line.substr(brackets, line.size() - 2 * brackets)));
    const std::size_t dot = std::min(name.find('.'), name.size());
    if (is_one_of_many) counts_[name] += 1;
    const auto count = counts_.find(is_one_of_many ? name : name.substr(0, dot));
    name_ = count == counts_.end() ? name
            : is_one_of_many
                ? fmt::format("{} {}", name, count->second)
                : fmt::format("{} {}{}", count->first, count->second, name.substr(dot));
    return true;
  }
  const std::string& name() const { return name_; }

 private:
  std::map<std::string, int> counts_;  // of [[name]]
  std::string name_;
};

}  // namespace

std::vector<std::string> settings_in(std::string_view toml) {
  std::vector<std::string> settings;
  Sections sections;
  while (!toml.empty()) {
    const std::size_t end = std::min(toml.find('\n'), toml.size());
    const std::string_view line = trimmed(without_comment(toml.substr(0, end)));
    toml.remove_prefix(std::min(end + 1, toml.size()));
    if (line.empty() || sections.enter(line)) continue;
    const std::string setting = evened(line);
    if (!sections.name().empty()) {
      settings.push_back(fmt::format("{}: {}", sections.name(), setting));
    } else if (!setting.starts_with("name = ")) {
      settings.push_back(setting);
    }
  }
  std::ranges::sort(settings);
  return settings;
}

}  // namespace sluice::analyze
