#include "core/toml_file/file_kind.h"

#include <array>
#include <string_view>

namespace sluice::toml_file {
namespace {

constexpr std::array kFileKinds = {FileKind::run, FileKind::model, FileKind::platform};

constexpr std::string_view word_of_kind(FileKind kind) {
  switch (kind) {
    case FileKind::run:
      return "run";
    case FileKind::model:
      return "model";
    case FileKind::platform:
      break;
  }
  return "platform";
}

// A run file's keys may stand under any heading.
const toml::node* find_text(const toml::table& root, std::string_view key) {
  if (const toml::node* node = root.get(key); node != nullptr && node->is_string()) return node;
  for (const auto& [name, node] : root) {
    const toml::table* section = node.as_table();
    const toml::node* inside = section == nullptr ? nullptr : section->get(key);
    if (inside != nullptr && inside->is_string()) return inside;
  }
  return nullptr;
}

bool has_marks_of(const toml::table& root, FileKind kind) {
  const auto has = [&root](std::string_view key, toml::node_type type) {
    const toml::node* node = root.get(key);
    return node != nullptr && node->type() == type;
  };
  switch (kind) {
    case FileKind::run:
      return find_text(root, "model") != nullptr || find_text(root, "platform") != nullptr;
    case FileKind::model:
      return has("layers", toml::node_type::integer) && has("hidden", toml::node_type::integer);
    case FileKind::platform:
      break;
  }
  return has("device", toml::node_type::array) || has("link", toml::node_type::array);
}

// Where one of the wanted kind is to be found.
std::string what_instead(const toml::table& root, FileKind wanted, FileKind found) {
  const std::string_view word = word_of_kind(wanted);
  if (wanted == FileKind::run) {
    return "a run file names one: sample_models/runs/ holds examples";
  }
  const toml::node* named = found == FileKind::run ? find_text(root, word) : nullptr;
  if (named != nullptr) {
    return fmt::format("the {} that it names is {} (from its folder)", word,
                       *named->value<std::string>());
  }
  return fmt::format("sample_models/{}s/ holds {} files", word, word);
}

}  // namespace

Status check_kind(const toml::table& table, FileKind wanted, const std::string& path) {
  if (has_marks_of(table, wanted)) return ok_status();
  for (const FileKind kind : kFileKinds) {
    if (kind == wanted || !has_marks_of(table, kind)) continue;
    return make_error(ErrorCode::config, "{}: is a {} file, where a {} file is wanted; {}", path,
                      word_of_kind(kind), word_of_kind(wanted), what_instead(table, wanted, kind));
  }
  return ok_status();
}

}  // namespace sluice::toml_file
