#include "core/settings/run_config.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/nearest.h"
#include "base/setting_text.h"
#include "core/model/device_name.h"
#include "core/settings/detail/setting_table.h"
#include "core/toml_file/file_kind.h"
#include "core/toml_file/toml_file.h"

namespace sluice::settings {
namespace {

using detail::Setting;
using detail::Value;

// A run being read: what is known so far, and where each key was said, for later messages.
struct Reading {
  RunConfig config;
  std::string path;
  std::map<std::string, std::string> where;  // key -> "FILE:LINE" or "--set key=value"

  std::string place(const std::string& key) const {
    const auto found = where.find(key);
    return found == where.end() ? path : found->second;
  }
};

Error unknown_key(const std::string& where, std::string_view key) {
  return make_error(ErrorCode::config, "{}: unknown key '{}'{}", where, key,
                    did_you_mean(key, detail::setting_keys()));
}

std::string relative_to_file(const std::string& file, const std::string& path) {
  const std::filesystem::path given(path);
  if (path.empty() || given.is_absolute()) return path;
  return (std::filesystem::path(file).parent_path() / given).lexically_normal().string();
}

Result<Value> value_of(const toml::node& node, const std::string& where, std::string_view key) {
  if (const auto* flag = node.as_boolean()) return Value(flag->get());
  if (const auto* whole = node.as_integer()) return Value(whole->get());
  if (const auto* real = node.as_floating_point()) return Value(real->get());
  if (const auto* text = node.as_string()) return Value(text->get());
  std::ostringstream kind;
  kind << node.type();
  return make_error(ErrorCode::config, "{}: {} cannot be of type {}", where, key, kind.str());
}

Status read_key(Reading& reading, const toml::key& key, const toml::node& node) {
  const std::string name(key.str());
  const std::string where = fmt::format("{}:{}", reading.path, key.source().begin.line);
  const Setting* setting = detail::find_setting(name);
  if (setting == nullptr) return unknown_key(where, name);
  const auto [first, is_new] = reading.where.emplace(name, where);
  if (!is_new) {
    return make_error(ErrorCode::config, "{}: '{}' is said twice, first at {}", where, name,
                      first->second);
  }
  ASSIGN_OR_RETURN(Value value, value_of(node, where, name));
  if (auto* text = std::get_if<std::string>(&value);
      text != nullptr && setting->type == SettingType::path) {
    *text = relative_to_file(reading.path, *text);
  }
  const Status stored = detail::store_value(*setting, value, reading.config);
  return stored.ok() ? ok_status() : stored.error().with_context(where);
}

// Sections are headings for the reader: keys are unique without them. A TOML table is sorted by
// key; messages should come in the order of the file.
Status read_file(Reading& reading, const toml::table& root) {
  std::vector<std::pair<const toml::key*, const toml::node*>> entries;
  for (const auto& [key, node] : root) {
    if (const toml::table* section = node.as_table()) {
      for (const auto& [inner_key, inner_node] : *section) {
        entries.emplace_back(&inner_key, &inner_node);
      }
    } else {
      entries.emplace_back(&key, &node);
    }
  }
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.first->source().begin.line < b.first->source().begin.line;
  });
  for (const auto& [key, node] : entries) RETURN_IF_ERROR(read_key(reading, *key, *node));
  return ok_status();
}

Status read_override(Reading& reading, const std::string& text, const std::string& option) {
  const std::string where = option + " " + text;
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return make_error(ErrorCode::config, "{}: expected key=value", where);
  }
  const std::string key = text.substr(0, equals);
  const Setting* setting = detail::find_setting(key);
  if (setting == nullptr) return unknown_key(where, key);
  reading.where[key] = where;
  const auto value = detail::parse_value(*setting, std::string_view(text).substr(equals + 1));
  if (!value.ok()) return value.error().with_context(where);
  const Status stored = detail::store_value(*setting, *value, reading.config);
  return stored.ok() ? ok_status() : stored.error().with_context(where);
}

Status check_required(const Reading& reading) {
  for (const Setting& setting : detail::setting_table()) {
    if (setting.required && detail::value_text(setting, reading.config).empty()) {
      return make_error(ErrorCode::config, "{}: '{}' is missing ({})", reading.path, setting.key,
                        setting.help);
    }
  }
  return ok_status();
}

// A setting that nobody gave has the default of the optimizer that was chosen.
void fill_rule_defaults(Reading& reading) {
  optimizer::UpdateOptions& update = reading.config.update;
  const optimizer::UpdateOptions defaults = optimizer::default_options(update.rule);
  const auto fill = [&](const char* key, double& value, double default_value) {
    if (!reading.where.contains(key)) value = default_value;
  };
  fill("lr", update.lr, defaults.lr);
  fill("eps", update.eps, defaults.eps);
  fill("weight_decay", update.weight_decay, defaults.weight_decay);
}

// Settings of some optimizers only. One for another optimizer may stand in a file, so that the
// optimizer can be changed by --set alone; whoever runs it is told.
void note_unused_settings(Reading& reading) {
  struct OfRules {
    const char* key;
    std::vector<RuleKind> rules;
  };
  const std::vector<OfRules> settings = {{"beta1", {RuleKind::adamw}},
                                         {"beta2", {RuleKind::adamw}},
                                         {"momentum", {RuleKind::sgd}},
                                         {"eps", {RuleKind::adamw, RuleKind::adagrad}}};
  const RuleKind rule = reading.config.update.rule;
  for (const OfRules& setting : settings) {
    if (!reading.where.contains(setting.key) || std::ranges::count(setting.rules, rule) > 0)
      continue;
    std::vector<std::string> names;
    for (const RuleKind of : setting.rules) names.emplace_back(optimizer::rule_info(of).name);
    reading.config.warnings.push_back(fmt::format(
        "{}: {} has no effect with optimizer={}; it is a setting of {}", reading.place(setting.key),
        setting.key, optimizer::rule_info(rule).name, fmt::join(names, " and ")));
  }
}

void note_settings_without_adapters(Reading& reading) {
  if (reading.config.lora.rank > 0) return;
  for (const char* key : {"lora_alpha", "lora_targets", "lora_adapter"}) {
    if (!reading.where.contains(key)) continue;
    reading.config.warnings.push_back(fmt::format(
        "{}: {} has no effect with lora_rank=0: no adapters are trained", reading.place(key), key));
  }
}

// The faults that no single key can be blamed for; the message stands at the key most likely to be
// changed.
Status check_together(const Reading& reading) {
  const RunConfig& config = reading.config;
  const auto fail = [&](const char* key, const std::string& message) {
    return Error(ErrorCode::config, fmt::format("{}: {}", reading.place(key), message));
  };
  const std::string& name = config.files.name;
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
    return fail("name", fmt::format("name = \"{}\" must be fit to name a folder", name));
  }
  const std::size_t share_count = config.offload.device_shares.size();
  if (share_count != 0 && share_count != static_cast<std::size_t>(config.offload.devices)) {
    return fail("device_map",
                fmt::format("device_map has {} shares but devices = {}: give one share a device, "
                            "or \"even\"",
                            share_count, config.offload.devices));
  }
  if (config.offload.gradient_tier == GradientTier::memory &&
      config.offload.method != Method::host) {
    return fail("gradient_tier",
                "gradient_tier = \"memory\" needs method = \"host\": with csd the update is beside "
                "the drives, and so are the gradients");
  }
  if (config.offload.parameters == ParameterTier::storage && config.offload.method == Method::csd &&
      config.offload.backend == Backend::xrt) {
    return fail(
        "parameter_tier",
        "parameter_tier = \"storage\" with method = \"csd\" has the device write the "
        "parameters to its drive, which backend = \"xrt\" cannot: use parameter_tier = \"memory\" "
        "or method = \"host\"");
  }
  const StateFormat& format = config.offload.state_format;
  if (format.is_split() && config.arithmetic.precision != ParameterKind::bf16) {
    return fail(
        "state_format",
        "state_format = \"exact\" and \"compact\" store of a master weight what its bf16 copy "
        "does not say, so they need precision = \"bf16\"; use state_format = \"fp32\"");
  }
  if (format.remainder_bits != 16 && format.remainder_bits != 8) {
    return fail("remainder_bits", fmt::format("remainder_bits = {}: a remainder has 16 bits or 8",
                                              format.remainder_bits));
  }
  if (config.offload.overlap == offload::Overlap::local &&
      config.arithmetic.precision == ParameterKind::fp16) {
    return fail("overlap",
                "overlap = \"local\" needs precision = \"bf16\" or \"fp32\": fp16 has a loss scale "
                "that may "
                "overflow, and then one decision for all subgroups skips the step; use overlap = "
                "\"exact\"");
  }
  if (const auto device = model::parse_device_name(config.resources.device); !device.ok()) {
    return fail("device", device.error().message());
  }
  if (config.offload.backend == Backend::xrt && config.offload.xclbin.empty()) {
    return fail("backend",
                "backend = \"xrt\" needs xclbin = PATH: the file that the cards are programmed "
                "with (docs/hls.md)");
  }
  if (config.record_samples > 0 && config.record == record::Level::off) {
    return fail("record_samples",
                fmt::format("record_samples = {} needs a database to write the samples to: use "
                            "record = \"steps\" or more",
                            config.record_samples));
  }
  if (config.schedule.min_lr > config.update.lr) {
    return fail("min_lr", fmt::format("min_lr = {} is above lr = {}", config.schedule.min_lr,
                                      config.update.lr));
  }
  if (config.sample.tokens > 0 && config.sample.prompt.empty()) {
    return fail("sample_prompt", "sample_prompt is empty: the sampled text must begin somewhere");
  }
  return ok_status();
}

void fill_names(RunFiles& files, const std::string& path) {
  if (files.name.empty()) files.name = std::filesystem::path(path).stem().string();
  if (files.output.empty()) files.output = "out/" + files.name;
  const bool is_in_output = files.state_directory.empty();
  if (is_in_output) files.state_directory = files.output + "/state";
  files.state_places = {files.state_directory,
                        (is_in_output ? files.output : files.state_directory) + "/rank-",
                        is_in_output ? "/state" : ""};
  if (files.database.empty()) files.database = files.output + "/run.db";
}

// An array of a subgroup takes whole pages on its drive, and in memory: more than half of
// each would be empty.
void note_small_subgroups(Reading& reading) {
  constexpr std::int64_t kElementBytes = 4;
  const std::int64_t elements = reading.config.offload.subgroup_elements;
  if (elements >= kPageBytes / kElementBytes / 2) return;
  const std::int64_t sensible = OffloadConfig().subgroup_elements;
  reading.config.warnings.push_back(fmt::format(
      "{}: each array of a subgroup takes {} of the {} bytes of its page; it counts elements, not "
      "MiB: {} makes arrays of {} MiB",
      reading.place("subgroup_elements"), elements * kElementBytes, kPageBytes, sensible,
      sensible * kElementBytes >> 20));
}

// Each number of a start as if it had been read.
Status check_values(const Reading& reading) {
  RunConfig scratch;
  for (const Setting& setting : detail::setting_table()) {
    const auto value = detail::parse_value(setting, detail::value_text(setting, reading.config));
    const Status stored =
        value.ok() ? detail::store_value(setting, *value, scratch) : Status(value.error());
    if (!stored.ok()) return stored.error().with_context(reading.path);
  }
  return ok_status();
}

// The checks and defaults that belong to no single place of a run that has been read.
Result<RunConfig> finish(Reading& reading) {
  RETURN_IF_ERROR(check_required(reading));
  fill_rule_defaults(reading);
  fill_names(reading.config.files, reading.path);
  RETURN_IF_ERROR(check_together(reading));
  note_unused_settings(reading);
  note_settings_without_adapters(reading);
  note_small_subgroups(reading);
  return std::move(reading.config);
}

}  // namespace

bool may_be_exact(const RunConfig& config) {
  return config.offload.state_format.kind != StateFormatKind::compact &&
         config.arithmetic.precision == ParameterKind::bf16;
}

Result<RunConfig> parse_run_config(std::string_view toml, const std::string& path_for_messages,
                                   std::span<const std::string> overrides,
                                   const std::string& option) {
  Reading reading;
  reading.path = path_for_messages;
  ASSIGN_OR_RETURN(const toml::table table, toml_file::parse(toml, path_for_messages));
  RETURN_IF_ERROR(toml_file::check_kind(table, toml_file::FileKind::run, path_for_messages));
  RETURN_IF_ERROR(read_file(reading, table));
  for (const std::string& text : overrides) RETURN_IF_ERROR(read_override(reading, text, option));
  return finish(reading);
}

Result<RunConfig> override_run_config(const RunConfig& start, const std::string& path_for_messages,
                                      std::span<const std::string> overrides,
                                      const std::string& option) {
  Reading reading;
  reading.path = path_for_messages;
  reading.config = start;
  RETURN_IF_ERROR(check_values(reading));
  for (const std::string& text : overrides) RETURN_IF_ERROR(read_override(reading, text, option));
  return finish(reading);
}

Status check_setting(const std::string& text, const std::string& option) {
  Reading reading;
  return read_override(reading, text, option);
}

double density_at(std::int64_t step, double density, std::int64_t warmup_steps) {
  if (step >= warmup_steps) return density;
  return std::pow(density, static_cast<double>(4 * step / warmup_steps) / 4);
}

Result<RunConfig> with_knobs(const RunConfig& config, std::span<const std::string> changes,
                             const std::string& option) {
  Reading reading;
  reading.config = config;
  reading.path = option;
  for (const std::string& text : changes) {
    const std::string key = key_of(text);
    const auto knobs = detail::knob_keys();
    if (detail::find_setting(key) != nullptr && std::ranges::find(knobs, key) == knobs.end()) {
      return make_error(ErrorCode::config, "{} {}: {} cannot change in a live run; these can: {}",
                        option, text, key, fmt::join(knobs, ", "));
    }
    RETURN_IF_ERROR(read_override(reading, text, option));
  }
  RETURN_IF_ERROR(check_together(reading));
  return std::move(reading.config);
}

Result<RunConfig> load_run_config(const std::string& path, std::span<const std::string> overrides) {
  ASSIGN_OR_RETURN(const std::string text, toml_file::read(path, "run file"));
  return parse_run_config(text, path, overrides);
}

}  // namespace sluice::settings
