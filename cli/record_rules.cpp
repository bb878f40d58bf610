#include "cli/record_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/nearest.h"
#include "core/toml_file/toml_file.h"
#include "profiler/c_api/stage_meaning.h"

namespace sluice::cli {
namespace {

using Words = std::vector<std::string>;

// A file that is read, for messages.
struct Where {
  const std::string& file;
  template <typename... Values>
  Error error(const toml::node& node, fmt::format_string<Values...> text,
              Values&&... values) const {
    return make_error(ErrorCode::config, "{}:{}: {}", file, node.source().begin.line,
                      fmt::format(text, std::forward<Values>(values)...));
  }
};

// Lines and words of what is made of it are ended by these.
bool has_controls(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < ' '; });
}

// "" where the rule does not have the key.
Result<std::string> text_of(const Where& where, const toml::table& rule, std::string_view key) {
  const toml::node* const node = rule.get(key);
  if (node == nullptr) return std::string();
  const auto text = node->value<std::string>();
  if (!text || has_controls(*text))
    return where.error(*node, "'{}' is to be a text in one line", key);
  return *text;
}

Result<std::string> pattern_of(const Where& where, const toml::table& rule, std::string_view key) {
  ASSIGN_OR_RETURN(std::string pattern, text_of(where, rule, key));
  if (pattern.empty()) return where.error(rule, "a rule needs a '{}' to fit", key);
  return pattern;
}

// One of `words`; the first of them where the rule does not say.
Result<std::string> word_of(const Where& where, const toml::table& rule, std::string_view key,
                            const Words& words) {
  ASSIGN_OR_RETURN(const std::string word, text_of(where, rule, key));
  if (word.empty()) return words.front();
  if (std::ranges::find(words, word) != words.end()) return word;
  Words known = words;
  std::erase(known, "");
  return where.error(*rule.get(key), "'{}' is no {}{}; there are: {}", word, key,
                     did_you_mean(word, known), fmt::join(known, ", "));
}

Status check_keys(const Where& where, const toml::table& rule, const Words& keys) {
  for (const auto& [key, node] : rule) {
    const std::string name(key.str());
    if (std::ranges::find(keys, name) != keys.end()) continue;
    return where.error(node, "unknown key '{}'{}", name, did_you_mean(name, keys));
  }
  return ok_status();
}

Result<std::string> range_line(const Where& where, const toml::table& rule) {
  RETURN_IF_ERROR(check_keys(where, rule, {"name", "kind", "place", "phase", "cause"}));
  const c_api::StageWordLists words = c_api::stage_words();
  ASSIGN_OR_RETURN(const std::string pattern, pattern_of(where, rule, "name"));
  ASSIGN_OR_RETURN(const std::string kind, word_of(where, rule, "kind", words.kinds));
  ASSIGN_OR_RETURN(const std::string place, word_of(where, rule, "place", words.places));
  ASSIGN_OR_RETURN(const std::string phase, word_of(where, rule, "phase", words.phases));
  ASSIGN_OR_RETURN(const std::string cause, word_of(where, rule, "cause", words.causes));
  return fmt::format("range\t{}\t{}\t{}\t{}\t{}\n", pattern, kind, place, phase, cause);
}

Result<std::string> file_line(const Where& where, const toml::table& rule) {
  RETURN_IF_ERROR(check_keys(where, rule, {"path", "name", "cause"}));
  ASSIGN_OR_RETURN(const std::string pattern, pattern_of(where, rule, "path"));
  ASSIGN_OR_RETURN(const std::string name, pattern_of(where, rule, "name"));
  ASSIGN_OR_RETURN(const std::string cause,
                   word_of(where, rule, "cause", c_api::stage_words().causes));
  return fmt::format("file\t{}\t{}\t{}\n", pattern, name, cause);
}

using MakeLine = Result<std::string> (*)(const Where&, const toml::table&);

Result<std::string> lines_of(const Where& where, const toml::node& node, std::string_view kind,
                             MakeLine make_line) {
  const toml::array* const rules = node.as_array();
  if (rules == nullptr) return where.error(node, "write each rule as [[{}]]", kind);
  std::string lines;
  for (const toml::node& rule : *rules) {
    if (!rule.is_table()) return where.error(rule, "write each rule as [[{}]]", kind);
    ASSIGN_OR_RETURN(const std::string line, make_line(where, *rule.as_table()));
    lines += line;
  }
  return lines;
}

Result<std::string> lines_of_file(const std::string& file) {
  ASSIGN_OR_RETURN(const std::string text, toml_file::read(file, "file of rules"));
  ASSIGN_OR_RETURN(const toml::table table, toml_file::parse(text, file));
  const Where where{file};
  RETURN_IF_ERROR(check_keys(where, table, {"range", "file"}));
  std::string lines;
  for (const auto& [kind, make_line] :
       {std::pair<std::string_view, MakeLine>{"range", range_line}, {"file", file_line}}) {
    const toml::node* const node = table.get(kind);
    if (node == nullptr) continue;
    ASSIGN_OR_RETURN(const std::string some, lines_of(where, *node, kind, make_line));
    lines += some;
  }
  return lines;
}

}  // namespace

Result<std::string> rule_lines(const std::vector<std::string>& files) {
  std::string lines;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::string some, lines_of_file(file));
    lines += some;
  }
  return lines;
}

Result<std::string> step_line(const std::string& marker) {
  if (marker.empty() || has_controls(marker))
    return make_error(ErrorCode::config,
                      "--step-marker wants the name of a range, such as 'train_step'");
  return fmt::format("step\t{}\n", marker);
}

}  // namespace sluice::cli
