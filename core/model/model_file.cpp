#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "base/nearest.h"
#include "core/model/architecture.h"
#include "core/model/model_shape.h"
#include "core/toml_file/file_kind.h"
#include "core/toml_file/toml_file.h"

namespace sluice::model {
namespace {

// A thousand trillions: the optimizer state of so many stays within 64 bits.
constexpr std::int64_t kParametersMax = 1'000'000'000'000'000;

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

std::vector<std::string> keys_of(const Architecture& architecture) {
  std::vector<std::string> keys = {"name", "family"};
  for (const NumberKey& number : architecture.number_keys) keys.emplace_back(number.key);
  for (const RealKey& real : architecture.real_keys) keys.emplace_back(real.key);
  for (const FlagKey& flag : architecture.flag_keys) keys.emplace_back(flag.key);
  for (const ScalingKey& scaling : architecture.scaling_keys) keys.emplace_back(scaling.key);
  return keys;
}

// Says of a key that other families have which they are; of any other, what was probably meant.
std::string hint_for(const std::string& word, const std::vector<std::string>& known) {
  std::vector<std::string> owners;
  for (const Architecture* architecture : architectures()) {
    const std::vector<std::string> keys = keys_of(*architecture);
    if (std::find(keys.begin(), keys.end(), word) != keys.end())
      owners.emplace_back(architecture->name);
  }
  if (owners.empty()) return did_you_mean(word, known);
  return fmt::format(" (family = \"{}\" has)", fmt::join(owners, "\" or \""));
}

Status check_keys(const toml::table& table, const Architecture& architecture,
                  const std::string& path) {
  const std::vector<std::string> known = keys_of(architecture);
  for (const auto& [key, node] : table) {
    const std::string word(key.str());
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      return make_error(ErrorCode::config, "{}: a {} model has no key '{}'{}; its keys are {}",
                        place(path, key.source()), architecture.name, word, hint_for(word, known),
                        fmt::join(known, ", "));
    }
  }
  return ok_status();
}

Result<std::int64_t> read_number(const toml::table& table, const NumberKey& number,
                                 const std::string& path) {
  const toml::node* node = table.get(number.key);
  if (node == nullptr && number.may_be_left_out) return 0;
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

Result<double> read_real(const toml::table& table, const RealKey& real, double left_out,
                         const std::string& path) {
  const toml::node* node = table.get(real.key);
  if (node == nullptr) return left_out;
  const std::optional<double> value = node->value<double>();  // a whole number, too
  if (value && *value >= real.least && *value <= real.largest) return *value;
  return make_error(ErrorCode::config, "{}: '{}' must be a number from {} to {}",
                    place(path, node->source()), real.key, real.least, real.largest);
}

Result<bool> read_flag(const toml::table& table, const FlagKey& flag, const std::string& path) {
  const toml::node* node = table.get(flag.key);
  if (node == nullptr) return false;
  const std::optional<bool> value = node->value_exact<bool>();
  if (value) return *value;
  return make_error(ErrorCode::config, "{}: '{}' must be true or false",
                    place(path, node->source()), flag.key);
}

Result<RopeScaling> read_scaling(const toml::table& table, const ScalingKey& scaling,
                                 const std::string& path) {
  const toml::node* node = table.get(scaling.key);
  if (node == nullptr) return RopeScaling::none;
  const std::vector<std::string> names(kRopeScalingNames.begin(), kRopeScalingNames.end());
  const std::string word = node->value_exact<std::string>().value_or("");
  const auto found = std::find(names.begin(), names.end(), word);
  if (found != names.end()) return static_cast<RopeScaling>(found - names.begin());
  return make_error(ErrorCode::config, "{}: '{}' must be one of {}{}", place(path, node->source()),
                    scaling.key, fmt::join(names, ", "), did_you_mean(word, names));
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

// Whether a head may be said to be another width than its share of the model's.
bool has_head_dim(const Architecture& architecture) {
  return std::ranges::any_of(architecture.number_keys, [](const NumberKey& number) {
    return std::string_view(number.key) == "head_dim";
  });
}

std::optional<ShapeFault> find_fault(const ModelShape& shape, const Architecture& architecture) {
  if (shape.head_dim == 0 && shape.hidden % shape.heads != 0) {
    return ShapeFault{
        "heads",
        fmt::format("'hidden' = {} is not a multiple of 'heads' = {}; each head takes an "
                    "equal share of the width{}",
                    shape.hidden, shape.heads,
                    has_head_dim(architecture) ? ", unless 'head_dim' says how wide one is" : "")};
  }
  return architecture.find_fault != nullptr ? architecture.find_fault(shape) : std::nullopt;
}

Result<ModelShape> read_shape(const toml::table& table, const std::string& path) {
  ModelShape shape;
  ASSIGN_OR_RETURN(shape.family, read_family(table, path));
  const Architecture& architecture = architecture_of(shape);
  RETURN_IF_ERROR(check_keys(table, architecture, path));
  ASSIGN_OR_RETURN(shape.name, read_name(table, path));
  for (const NumberKey& number : architecture.number_keys) {
    ASSIGN_OR_RETURN(number.place(shape), read_number(table, number, path));
  }
  for (const RealKey& real : architecture.real_keys) {
    const double left_out = real.left_out.value_or(real.place(shape));
    ASSIGN_OR_RETURN(real.place(shape), read_real(table, real, left_out, path));
  }
  for (const FlagKey& flag : architecture.flag_keys) {
    ASSIGN_OR_RETURN(flag.place(shape), read_flag(table, flag, path));
  }
  for (const ScalingKey& scaling : architecture.scaling_keys) {
    ASSIGN_OR_RETURN(scaling.place(shape), read_scaling(table, scaling, path));
  }
  if (const std::optional<ShapeFault> fault = find_fault(shape, architecture)) {
    return make_error(ErrorCode::config, "{}: {}", place(path, table.get(fault->key)->source()),
                      fault->message);
  }
  if (architecture.derive != nullptr) architecture.derive(shape);
  const std::int64_t parameters = shape.flat_layout().parameter_count;
  if (parameters > kParametersMax) {
    return make_error(ErrorCode::config,
                      "{}: a model of these extents has {} parameters, and it may have {}", path,
                      parameters, kParametersMax);
  }
  return shape;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> file_values(const ModelShape& of) {
  ModelShape shape = of;  // a place is one to write to
  std::vector<std::pair<std::string, std::string>> values = {{"name", shape.name},
                                                             {"family", family_name(shape.family)}};
  const Architecture& architecture = architecture_of(shape);
  for (const NumberKey& number : architecture.number_keys) {
    values.emplace_back(number.key, fmt::format("{}", number.place(shape)));
  }
  for (const RealKey& real : architecture.real_keys) {
    values.emplace_back(real.key, fmt::format("{}", real.place(shape)));
  }
  for (const FlagKey& flag : architecture.flag_keys) {
    values.emplace_back(flag.key, flag.place(shape) ? "true" : "false");
  }
  for (const ScalingKey& scaling : architecture.scaling_keys) {
    values.emplace_back(scaling.key,
                        kRopeScalingNames.at(static_cast<std::size_t>(scaling.place(shape))));
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
