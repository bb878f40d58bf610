#include "core/weights/adapter_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "core/model/architecture.h"
#include "core/weights/config_fields.h"
#include "core/weights/json_text.h"
#include "core/weights/tensor_names.h"

namespace sluice::weights {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::int64_t kConfigMaxBytes = 4 << 20;

// Fields that say how an adapter came about, or nothing at all.
constexpr const char* kNoArithmetic =
    "auto_mapping inference_mode init_lora_weights megatron_core peft_version revision "
    "ensure_weight_tying task_type qalora_group_size runtime_config";
// Fields of other kinds of adapters, which are empty or false here.
constexpr const char* kOtherKinds[] = {"alora_invocation_tokens",
                                       "alpha_pattern",
                                       "arrow_config",
                                       "corda_config",
                                       "eva_config",
                                       "exclude_modules",
                                       "kasa_config",
                                       "layer_replication",
                                       "layers_pattern",
                                       "loftq_config",
                                       "layers_to_transform",
                                       "lora_bias",
                                       "lora_ga_config",
                                       "megatron_config",
                                       "modules_to_save",
                                       "monteclora_config",
                                       "rank_pattern",
                                       "target_parameters",
                                       "trainable_token_indices",
                                       "use_bdlora",
                                       "use_dora",
                                       "use_qalora",
                                       "use_rslora",
                                       "velora_config"};

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

// PEFT takes all linear layers whose names end so. Where these are others, too, names are whole.
std::vector<std::string> target_modules(const model::ModelShape& shape) {
  std::set<std::string> ends;
  for (const std::string& name : shape.lora.modules) ends.insert(last_part(name));
  std::size_t count = 0;
  for (const model::LinearModule& module : model::linear_modules(shape))
    count += ends.contains(last_part(module.name)) ? 1 : 0;
  if (count == shape.lora.modules.size()) return {ends.begin(), ends.end()};
  std::vector<std::string> names;
  for (const std::string& name : shape.lora.modules)
    names.push_back(name_in_files(shape.family, name));
  return names;
}

json number_of(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return static_cast<std::int64_t>(value);
  return value;
}

Status check_kind(ConfigFields& fields) {
  RETURN_IF_ERROR(fields.only("peft_type", "LORA"));
  RETURN_IF_ERROR(fields.only("bias", "none"));
  for (const char* key : kOtherKinds) {
    const json* const value = fields.find(key);
    if (value == nullptr || value->empty() || *value == false) continue;
    return fields.refused("'{}' is {}, and the adapters that are trained here have none", key,
                          value_text(*value));
  }
  fields.pass_over(kNoArithmetic);
  return ok_status();
}

Result<std::string> targets_of(ConfigFields& fields, model::Family family) {
  const json* const value = fields.find("target_modules");
  if (value != nullptr && value->is_string() && *value == std::string(model::kAllLinear))
    return std::string(model::kAllLinear);
  std::string targets;
  const bool is_list = value != nullptr && value->is_array() && !value->empty();
  for (const json& one : is_list ? *value : json::array()) {
    if (!one.is_string()) break;
    const std::string name = name_in_layout(family, one.get<std::string>());
    targets += (targets.empty() ? "" : ",") + name;
  }
  if (!targets.empty()) return targets;
  return fields.refused("'target_modules' is {}, and takes a list of names, or \"{}\"",
                        value == nullptr ? "missing" : value_text(*value), model::kAllLinear);
}

Result<AdapterConfig> config_of(ConfigFields& fields, model::Family family) {
  RETURN_IF_ERROR(check_kind(fields));
  AdapterConfig config;
  ASSIGN_OR_RETURN(config.choice.rank, fields.whole("r"));
  ASSIGN_OR_RETURN(config.choice.alpha, fields.real("lora_alpha"));
  ASSIGN_OR_RETURN(config.choice.targets, targets_of(fields, family));
  ASSIGN_OR_RETURN(config.base, fields.text_or("base_model_name_or_path", ""));
  ASSIGN_OR_RETURN(const bool is_in_out, fields.flag_or("fan_in_fan_out", false));
  const model::Architecture& architecture =
      *model::architectures()[static_cast<std::size_t>(family)];
  if (is_in_out && !architecture.is_in_out) {
    return fields.refused("'fan_in_fan_out' is true, and the matrices of a {} are [out, in]",
                          architecture.name);
  }
  ASSIGN_OR_RETURN(const double dropout, fields.real_or("lora_dropout", 0));
  if (dropout > 0) {
    config.notes.push_back(fmt::format("{}: lora_dropout is {}; training here drops nothing out",
                                       fields.place(), dropout));
  }
  RETURN_IF_ERROR(fields.check_all_read("an adapter_config.json"));
  return config;
}

}  // namespace

std::string adapter_config_text(const model::ModelShape& shape, const std::string& base) {
  const bool is_causal = model::architecture_of(shape).is_causal;
  const char* const task = shape.has_decoder() ? "SEQ_2_SEQ_LM" : "CAUSAL_LM";
  const json config = {{"peft_type", "LORA"},
                       {"task_type", is_causal || shape.has_decoder() ? json(task) : json(nullptr)},
                       {"base_model_name_or_path", base},
                       {"r", shape.lora.rank},
                       {"lora_alpha", number_of(shape.lora.alpha)},
                       {"lora_dropout", 0.0},
                       {"target_modules", target_modules(shape)},
                       {"bias", "none"},
                       {"fan_in_fan_out", model::architecture_of(shape).is_in_out},
                       {"init_lora_weights", true},
                       {"use_rslora", false},
                       {"use_dora", false},
                       {"modules_to_save", nullptr},
                       {"inference_mode", true}};
  return config.dump(2) + "\n";
}

Result<AdapterConfig> load_adapter_config(const std::string& folder, model::Family family) {
  const std::string path = folder + "/" + kAdapterConfigFile;
  std::error_code error;
  if (!fs::exists(path, error)) {
    return make_error(ErrorCode::not_found,
                      "{}: has no {}; an adapter is a folder in PEFT's layout, as `sluice weights "
                      "export` writes it of a run with lora_rank",
                      folder, kAdapterConfigFile);
  }
  ASSIGN_OR_RETURN(const std::string text, read_text(path, kConfigMaxBytes, "configuration"));
  ASSIGN_OR_RETURN(const json values, parse_json(text, {path}));
  ConfigFields fields(values, path);
  return config_of(fields, family);
}

}  // namespace sluice::weights
