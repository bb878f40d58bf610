#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "base/nearest.h"
#include "core/model/model_shape.h"
#include "core/toml_file/file_kind.h"
#include "core/toml_file/toml_file.h"

namespace sluice::model {
namespace {

constexpr bool is_any(Family /*family*/) { return true; }
constexpr bool reads_images(Family family) { return family == Family::vit; }
constexpr bool reads_tokens(Family family) { return !reads_images(family); }
constexpr bool is_llama(Family family) { return family == Family::llama; }

struct NumberKey {
  const char* key;
  std::int64_t ModelShape::* field;
  std::int64_t largest;  // generous; keeps products of extents inside 64 bits
  bool (*is_of)(Family);
};

// Left out, it is 0, which stands for a number that follows from the others.
constexpr NumberKey kHeadDim = {"head_dim", &ModelShape::head_dim, 1'000'000, is_llama};

struct FlagKey {
  const char* key;
  bool ModelShape::* field;
  bool (*is_of)(Family);
};

// Left out: false.
constexpr std::array kFlagKeys = {
    FlagKey{"tied_tables", &ModelShape::tied_tables, is_llama},
    FlagKey{"qkv_bias", &ModelShape::qkv_bias, is_llama},
    FlagKey{"qk_norm", &ModelShape::qk_norm, is_llama},
};

constexpr std::array kNumberKeys = {
    NumberKey{"layers", &ModelShape::layers, 100'000, is_any},
    NumberKey{"hidden", &ModelShape::hidden, 1'000'000, is_any},
    NumberKey{"heads", &ModelShape::heads, 1'000'000, is_any},
    NumberKey{"sequence", &ModelShape::sequence, 100'000'000, reads_tokens},
    NumberKey{"vocabulary", &ModelShape::vocabulary, 100'000'000, reads_tokens},
    NumberKey{"image", &ModelShape::image, 10'000, reads_images},
    NumberKey{"patch", &ModelShape::patch, 10'000, reads_images},
    NumberKey{"channels", &ModelShape::channels, 1'000, reads_images},
    NumberKey{"classes", &ModelShape::classes, 100'000'000, reads_images},
    NumberKey{"kv_heads", &ModelShape::kv_heads, 1'000'000, is_llama},
    NumberKey{"ffn", &ModelShape::ffn, 4'000'000, is_llama},
};

// A thousand trillions: the optimizer state of so many stays within 64 bits.
constexpr std::int64_t kParametersMax = 1'000'000'000'000'000;

constexpr std::int64_t kLargestPatchesASide = 1000;  // the setting `sequence` goes to 2^20

std::string place(const std::string& path, const toml::source_region& source) {
  return fmt::format("{}:{}", path, source.begin.line);
}

Result<Family> read_family(const toml::table& table, const std::string& path) {
  const toml::node* node = table.get("family");
  if (node == nullptr) return Family::gpt2;
  const std::vector<std::string> names = family_names();
  const std::string word = node->value_exact<std::string>().value_or("");
  const auto found = std::find(names.begin(), names.end(), word);
  if (found != names.end()) return static_cast<Family>(found - names.begin());
  return make_error(
      ErrorCode::config, "{}: 'family' must be one of {}{}", place(path, node->source()),
      fmt::join(names, ", "),
      word.empty() ? "" : fmt::format(", not '{}'{}", word, did_you_mean(word, names)));
}

std::vector<std::string> keys_of(Family family) {
  std::vector<std::string> keys = {"name", "family"};
  for (const NumberKey& number : kNumberKeys) {
    if (number.is_of(family)) keys.emplace_back(number.key);
  }
  if (kHeadDim.is_of(family)) keys.emplace_back(kHeadDim.key);
  for (const FlagKey& flag : kFlagKeys) {
    if (flag.is_of(family)) keys.emplace_back(flag.key);
  }
  return keys;
}

// Says of a key that other families have which they are; of any other, what was probably meant.
std::string hint_for(const std::string& word, const std::vector<std::string>& known) {
  const std::vector<std::string> names = family_names();
  std::vector<std::string> owners;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::vector<std::string> keys = keys_of(static_cast<Family>(i));
    if (std::find(keys.begin(), keys.end(), word) != keys.end()) owners.push_back(names[i]);
  }
  if (owners.empty()) return did_you_mean(word, known);
  return fmt::format(" (family = \"{}\" has)", fmt::join(owners, "\" or \""));
}

Status check_keys(const toml::table& table, Family family, const std::string& path) {
  const std::vector<std::string> known = keys_of(family);
  for (const auto& [key, node] : table) {
    const std::string word(key.str());
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      return make_error(ErrorCode::config, "{}: a {} model has no key '{}'{}; its keys are {}",
                        place(path, key.source()), family_name(family), word, hint_for(word, known),
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

Result<bool> read_flag(const toml::table& table, const FlagKey& flag, const std::string& path) {
  const toml::node* node = table.get(flag.key);
  if (node == nullptr) return false;
  const std::optional<bool> value = node->value_exact<bool>();
  if (value) return *value;
  return make_error(ErrorCode::config, "{}: '{}' must be true or false",
                    place(path, node->source()), flag.key);
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

Status check_parts(const ModelShape& shape, const toml::table& table, const std::string& path) {
  if (shape.head_dim == 0 && shape.hidden % shape.heads != 0) {
    return make_error(ErrorCode::config,
                      "{}: 'hidden' = {} is not a multiple of 'heads' = {}; each head takes an "
                      "equal share of the width{}",
                      place(path, table.get("heads")->source()), shape.hidden, shape.heads,
                      is_llama(shape.family) ? ", unless 'head_dim' says how wide one is" : "");
  }
  if (is_llama(shape.family) && shape.heads % shape.kv_heads != 0) {
    return make_error(
        ErrorCode::config,
        "{}: 'heads' = {} is not a multiple of 'kv_heads' = {}; each head of keys and "
        "values serves equally many of queries",
        place(path, table.get("kv_heads")->source()), shape.heads, shape.kv_heads);
  }
  if (reads_images(shape.family) && shape.image % shape.patch != 0) {
    return make_error(ErrorCode::config,
                      "{}: 'image' = {} is not a multiple of 'patch' = {}; patches cover the image",
                      place(path, table.get("patch")->source()), shape.image, shape.patch);
  }
  if (reads_images(shape.family) && shape.image / shape.patch > kLargestPatchesASide) {
    return make_error(ErrorCode::config,
                      "{}: 'image' = {} is more than {} times 'patch' = {}; each patch is a token",
                      place(path, table.get("patch")->source()), shape.image, kLargestPatchesASide,
                      shape.patch);
  }
  return ok_status();
}

Result<ModelShape> read_shape(const toml::table& table, const std::string& path) {
  ModelShape shape;
  ASSIGN_OR_RETURN(shape.family, read_family(table, path));
  RETURN_IF_ERROR(check_keys(table, shape.family, path));
  ASSIGN_OR_RETURN(shape.name, read_name(table, path));
  for (const NumberKey& number : kNumberKeys) {
    if (!number.is_of(shape.family)) continue;
    ASSIGN_OR_RETURN(shape.*number.field, read_number(table, number, path));
  }
  if (table.contains(kHeadDim.key)) {
    ASSIGN_OR_RETURN(shape.head_dim, read_number(table, kHeadDim, path));
  }
  for (const FlagKey& flag : kFlagKeys) {
    ASSIGN_OR_RETURN(shape.*flag.field, read_flag(table, flag, path));
  }
  RETURN_IF_ERROR(check_parts(shape, table, path));
  if (reads_images(shape.family)) {
    const std::int64_t patches_a_side = shape.image / shape.patch;
    shape.sequence = patches_a_side * patches_a_side + 1;
  }
  const std::int64_t parameters = shape.flat_layout().parameter_count;
  if (parameters > kParametersMax) {
    return make_error(ErrorCode::config,
                      "{}: a model of these extents has {} parameters, and it may have {}", path,
                      parameters, kParametersMax);
  }
  return shape;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> file_values(const ModelShape& shape) {
  std::vector<std::pair<std::string, std::string>> values = {{"name", shape.name},
                                                             {"family", family_name(shape.family)}};
  const auto add_number = [&](const NumberKey& number) {
    if (!number.is_of(shape.family)) return;
    values.emplace_back(number.key, fmt::format("{}", shape.*number.field));
  };
  for (const NumberKey& number : kNumberKeys) add_number(number);
  add_number(kHeadDim);
  for (const FlagKey& flag : kFlagKeys) {
    if (flag.is_of(shape.family))
      values.emplace_back(flag.key, shape.*flag.field ? "true" : "false");
  }
  return values;
}

Result<ModelShape> load_model_shape(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return make_error(ErrorCode::not_found,
                      "{}: there is no such model file; sample_models/models/ holds examples",
                      path);
  }
  ASSIGN_OR_RETURN(const std::string text, toml_file::read(path, "model file"));
  return parse_model_shape(text, path);
}

Result<ModelShape> parse_model_shape(std::string_view toml, const std::string& path_for_messages) {
  ASSIGN_OR_RETURN(const toml::table table, toml_file::parse(toml, path_for_messages));
  RETURN_IF_ERROR(toml_file::check_kind(table, toml_file::FileKind::model, path_for_messages));
  return read_shape(table, path_for_messages);
}

}  // namespace sluice::model
