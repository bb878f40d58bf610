#include "core/platform/toml_table.h"

#include <toml++/toml.h>

#include <algorithm>
#include <optional>

#include "base/nearest.h"
#include "core/toml_file/file_kind.h"
#include "core/toml_file/toml_file.h"

namespace sluice::platform {
namespace {

const toml::table& as_table(const void* table) { return *static_cast<const toml::table*>(table); }

std::string_view type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a text";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a number";
    case toml::node_type::boolean:
      return "a truth value";
    default:
      return "a date or time";
  }
}

std::optional<std::vector<std::string>> texts_of(const toml::node& node) {
  const toml::array* array = node.as_array();
  if (array == nullptr) return std::nullopt;
  std::vector<std::string> texts;
  for (const toml::node& element : *array) {
    if (!element.is_string()) return std::nullopt;
    texts.push_back(element.as_string()->get());
  }
  return texts;
}

}  // namespace

struct TomlTable::Document {
  toml::table root;
  std::string path;
};

Result<TomlTable> TomlTable::parse(std::string_view toml, const std::string& path) {
  ASSIGN_OR_RETURN(toml::table root, toml_file::parse(toml, path));
  RETURN_IF_ERROR(toml_file::check_kind(root, toml_file::FileKind::platform, path));
  auto document = std::make_shared<const Document>(Document{std::move(root), path});
  const toml::table* table = &document->root;
  return TomlTable(std::move(document), table, "");
}

Status TomlTable::allow_only(std::span<const std::string> keys) const {
  const toml::key* first = nullptr;  // in the file; the library hands them out by name
  for (auto&& [key, value] : as_table(table_)) {
    const bool known = std::find(keys.begin(), keys.end(), key.str()) != keys.end();
    if (!known && (first == nullptr || key.source().begin < first->source().begin)) first = &key;
  }
  if (first == nullptr) return ok_status();
  return error(first->str(),
               fmt::format("there is no such key{}", did_you_mean(first->str(), keys)));
}

bool TomlTable::has(std::string_view key) const { return as_table(table_).contains(key); }

Result<std::string> TomlTable::text(std::string_view key) const {
  const toml::node* node = as_table(table_).get(key);
  if (node == nullptr) return missing(key);
  if (!node->is_string())
    return error(key, fmt::format("is {}; write a text in quotes", type_name(*node)));
  return node->as_string()->get();
}

Result<std::int64_t> TomlTable::integer(std::string_view key) const {
  const toml::node* node = as_table(table_).get(key);
  if (node == nullptr) return missing(key);
  if (!node->is_integer())
    return error(key, fmt::format("is {}; write a whole number", type_name(*node)));
  return node->as_integer()->get();
}

Result<double> TomlTable::number(std::string_view key) const {
  const toml::node* node = as_table(table_).get(key);
  if (node == nullptr) return missing(key);
  if (!node->is_number()) return error(key, fmt::format("is {}; write a number", type_name(*node)));
  if (node->is_integer()) return static_cast<double>(node->as_integer()->get());
  return node->as_floating_point()->get();
}

Result<std::vector<std::string>> TomlTable::texts(std::string_view key) const {
  const toml::node* node = as_table(table_).get(key);
  if (node == nullptr) return missing(key);
  auto texts = texts_of(*node);
  if (!texts) return error(key, "is not an array of texts; write it like [\"a\", \"b\"]");
  return *std::move(texts);
}

Result<std::vector<std::vector<std::string>>> TomlTable::rows_of_texts(std::string_view key) const {
  const toml::node* node = as_table(table_).get(key);
  if (node == nullptr) return missing(key);
  std::vector<std::vector<std::string>> rows;
  const toml::array* array = node->as_array();
  if (array == nullptr) return error(key, fmt::format("is {}; write an array", type_name(*node)));
  for (const toml::node& element : *array) {
    auto row = texts_of(element);
    if (!row) {
      return error(key, fmt::format("element {} is not an array of texts", rows.size() + 1));
    }
    rows.push_back(*std::move(row));
  }
  return rows;
}

Result<TomlTable> TomlTable::table(std::string_view key) const {
  const toml::node* node = as_table(table_).get(key);
  if (node == nullptr) return missing(key);
  if (!node->is_table()) {
    return error(key, fmt::format("is {}; write a table, like [{}] or {} = {{ ... }}",
                                  type_name(*node), full_name(key), key));
  }
  return TomlTable(document_, node->as_table(), full_name(key) + ".");
}

Result<std::vector<TomlTable>> TomlTable::tables(std::string_view key) const {
  const toml::node* node = as_table(table_).get(key);
  if (node == nullptr) return missing(key);
  if (!node->is_array_of_tables())
    return error(key, fmt::format("is not a list of tables; write [[{}]]", full_name(key)));
  std::vector<TomlTable> tables;
  for (const toml::node& element : *node->as_array())
    tables.push_back(TomlTable(document_, element.as_table(), full_name(key) + "."));
  return tables;
}

Error TomlTable::error(std::string_view key, std::string_view message) const {
  const toml::table& table = as_table(table_);
  const auto found = table.find(key);
  const auto line =
      found == table.end() ? table.source().begin.line : found->first.source().begin.line;
  return make_error(ErrorCode::config, "{}:{}: {}: {}", document_->path, line, full_name(key),
                    message);
}

Error TomlTable::missing(std::string_view key) const { return error(key, "is missing"); }

std::string TomlTable::full_name(std::string_view key) const {
  return fmt::format("{}{}", prefix_, key);
}

}  // namespace sluice::platform
