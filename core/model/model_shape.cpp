#include "core/model/model_shape.h"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "base/nearest.h"

namespace sluice::model {
namespace {

struct NumberKey {
  const char* key;
  std::int64_t ModelShape::* field;
  std::int64_t largest;  // generous; keeps products of extents inside 64 bits
};

constexpr std::array kNumberKeys = {
    NumberKey{"layers", &ModelShape::layers, 100'000},
    NumberKey{"hidden", &ModelShape::hidden, 1'000'000},
    NumberKey{"heads", &ModelShape::heads, 1'000'000},
    NumberKey{"sequence", &ModelShape::sequence, 100'000'000},
    NumberKey{"vocabulary", &ModelShape::vocabulary, 100'000'000},
};

std::string place(const std::string& path, const toml::source_region& source) {
  return fmt::format("{}:{}", path, source.begin.line);
}

Status check_keys(const toml::table& table, const std::string& path) {
  std::vector<std::string> known = {"name"};
  for (const NumberKey& number : kNumberKeys) known.emplace_back(number.key);
  for (const auto& [key, node] : table) {
    const std::string word(key.str());
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      return make_error(ErrorCode::config, "{}: a model file has no key '{}'{}; its keys are {}",
                        place(path, key.source()), word, did_you_mean(word, known),
                        fmt::join(known, ", "));
    }
  }
  return ok_status();
}

Result<std::int64_t> read_number(const toml::table& table, const NumberKey& number,
                                 const std::string& path) {
  const toml::node* node = table.get(number.key);
  if (node == nullptr) {
    return make_error(ErrorCode::config, "{}: the key '{}' is missing; add a line `{} = ...`", path,
                      number.key, number.key);
  }
  const std::optional<std::int64_t> value = node->value_exact<std::int64_t>();
  if (!value || *value < 1 || *value > number.largest) {
    return make_error(ErrorCode::config, "{}: '{}' must be a whole number from 1 to {}",
                      place(path, node->source()), number.key, number.largest);
  }
  return *value;
}

Result<std::string> read_name(const toml::table& table, const std::string& path) {
  const toml::node* node = table.get("name");
  if (node == nullptr) return std::filesystem::path(path).stem().string();
  const std::optional<std::string> name = node->value_exact<std::string>();
  if (!name || name->empty()) {
    return make_error(ErrorCode::config, "{}: 'name' must be a text that is not empty",
                      place(path, node->source()));
  }
  return *name;
}

Result<ModelShape> read_shape(const toml::table& table, const std::string& path) {
  RETURN_IF_ERROR(check_keys(table, path));
  ModelShape shape;
  ASSIGN_OR_RETURN(shape.name, read_name(table, path));
  for (const NumberKey& number : kNumberKeys) {
    ASSIGN_OR_RETURN(shape.*number.field, read_number(table, number, path));
  }
  if (shape.hidden % shape.heads != 0) {
    return make_error(ErrorCode::config,
                      "{}: 'hidden' = {} is not a multiple of 'heads' = {}; each head takes an "
                      "equal share of the width",
                      place(path, table.get("heads")->source()), shape.hidden, shape.heads);
  }
  return shape;
}

// toml++ reports by exceptions in the form Debian builds it; they end here.
template <typename Parse>
Result<ModelShape> shape_from(const std::string& path, const Parse& parse) {
  try {
    return read_shape(parse(), path);
  } catch (const toml::parse_error& failure) {
    return make_error(ErrorCode::config, "{}: not valid TOML: {}", place(path, failure.source()),
                      failure.description());
  }
}

}  // namespace

Result<ModelShape> load_model_shape(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return make_error(ErrorCode::not_found,
                      "{}: there is no such model file; sample_models/models/ holds examples",
                      path);
  }
  return shape_from(path, [&] { return toml::parse_file(path); });
}

Result<ModelShape> parse_model_shape(std::string_view toml, const std::string& path_for_messages) {
  return shape_from(path_for_messages, [&] { return toml::parse(toml); });
}

}  // namespace sluice::model
