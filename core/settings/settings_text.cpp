// The table of settings as people read it.

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "core/control/knob.h"
#include "core/settings/detail/setting_table.h"

namespace sluice::settings {
namespace {

using detail::Setting;

// The defaults of the optimizers that have another one than the default optimizer.
std::string other_defaults(const Setting& setting, const RunConfig& defaults) {
  if (setting.required || setting.type != SettingType::number) return "";
  std::vector<std::string> others;
  for (const RuleKind rule : {RuleKind::adamw, RuleKind::sgd, RuleKind::adagrad}) {
    RunConfig config;
    config.update = optimizer::default_options(rule);
    const std::string text = detail::value_text(setting, config);
    if (text != detail::value_text(setting, defaults))
      others.push_back(fmt::format("{} {}", optimizer::rule_info(rule).name, text));
  }
  return fmt::format("{}", fmt::join(others, ", "));
}

std::vector<SettingInfo> make_settings() {
  const RunConfig defaults;
  std::vector<SettingInfo> infos;
  for (const Setting& setting : detail::setting_table()) {
    infos.push_back(
        {.key = setting.key,
         .section = setting.section,
         .type = setting.type,
         .decides = setting.decides,
         .values = detail::allowed_values(setting),
         .unit = setting.unit,
         .default_value = setting.required ? "required" : detail::value_text(setting, defaults),
         .other_defaults = other_defaults(setting, defaults),
         .help = setting.help});
  }
  return infos;
}

std::string_view word_of(Decides decides) {
  switch (decides) {
    case Decides::origin:
      return "origin";
    case Decides::numbers:
      return "numbers";
    case Decides::together:
      return "together";
    case Decides::own:
      break;
  }
  return "";
}

const char* const kPageHead = R"(# Settings of a run

A run file (`sample_models/runs/*.toml`) sets these keys; `--set key=value` sets them once more,
after the file. Table names such as `[offload]` are headings for the reader: a key means the same
under any of them and may be set only once. A path in the file is relative to the file's folder; a
path given to `--set` is relative to the working directory. Sizes in bytes may be written `4096`,
`"64MiB"` or `"2 GB"`. The devices' shares are one string: `device_map = "3,1,1,1"`. Where
optimizers have defaults of their own, these stand in brackets.

The column *decides* says who is to have the same value. All ranks of a run compare what is not empty
there before anything is made. *origin*: what a state is of; a resume with another value is refused.
*numbers*: what is learnt; a resume with another value says so and records it as a change at its step.
*together*: what ranks do with one another; a resume may have another value. Empty: where things lie
and how long they take, which changes no number.

A key that does not exist, a value of the wrong type and a value out of range each stop the run
before anything is written, with the file and the line.

This page is made from the table in `core/settings/setting_table.cpp`, and `core_settings_test` holds it
to that; with `SLUICE_WRITE_DOCS=1` in its environment the test writes the page instead.
)";

}  // namespace

const std::vector<SettingInfo>& settings() {
  static const std::vector<SettingInfo> infos = make_settings();
  return infos;
}

std::string describe_settings() {
  std::size_t key_width = 0;
  for (const SettingInfo& info : settings()) key_width = std::max(key_width, info.key.size());
  std::string text;
  std::string section;
  for (const SettingInfo& info : settings()) {
    if (info.section != section) text += fmt::format("[{}]\n", section = info.section);
    text += fmt::format("  {:<{}}  {}\n", info.key, key_width, info.help);
    text += fmt::format("  {:<{}}    {}", "", key_width, info.values);
    if (!info.default_value.empty()) text += fmt::format("; default {}", info.default_value);
    if (!info.other_defaults.empty()) text += fmt::format(" ({})", info.other_defaults);
    text += '\n';
  }
  return text;
}

std::string settings_markdown() {
  std::string text = kPageHead;
  std::string section;
  for (const SettingInfo& info : settings()) {
    if (info.section != section) {
      section = info.section;
      text += fmt::format("\n## {}\n\n| key | values | unit | default | decides | meaning |\n",
                          section);
      text += "|---|---|---|---|---|---|\n";
    }
    const std::string others =
        info.other_defaults.empty() ? "" : fmt::format(" ({})", info.other_defaults);
    text += fmt::format("| `{}` | {} | {} | {}{} | {} | {} |\n", info.key, info.values, info.unit,
                        info.default_value, others, word_of(info.decides), info.help);
  }
  return text;
}

namespace {
const char* type_name(SettingType type) {
  switch (type) {
    case SettingType::integer:
      return "integer";
    case SettingType::number:
      return "number";
    case SettingType::boolean:
      return "boolean";
    case SettingType::bytes:
      return "bytes";
    case SettingType::word:
      return "word";
    case SettingType::shares:
      return "shares";
    case SettingType::layers:
      return "layers";
    case SettingType::text:
    case SettingType::path:
      break;
  }
  return "text";
}
}  // namespace

std::vector<control::Knob> knobs(const RunConfig& config) {
  const RunConfig defaults;
  RunConfig fields_of = config;  // a field is a place in a config, so in one that may be written
  std::vector<control::Knob> knobs;
  for (const std::string_view key : detail::knob_keys()) {
    const Setting& setting = *detail::find_setting(key);
    control::Knob knob;
    knob.key = key;
    knob.type = setting.range.automatic ? "text" : type_name(setting.type);
    knob.values = detail::allowed_values(setting);
    knob.unit = setting.unit;
    knob.default_value = detail::value_text(setting, defaults);
    knob.help = setting.help;
    knob.value = detail::value_text(setting, config);
    const bool is_number = !setting.range.automatic && (setting.type == SettingType::integer ||
                                                        setting.type == SettingType::number ||
                                                        setting.type == SettingType::bytes);
    if (is_number) knob.min = setting.range.min;
    if (is_number && std::isfinite(setting.range.max)) knob.max = setting.range.max;
    const detail::Field field = setting.field(fields_of);
    if (const auto* word = std::get_if<detail::WordField>(&field)) {
      for (const auto& [text, meaning] : word->words) knob.words.push_back(text);
    }
    knobs.push_back(std::move(knob));
  }
  return knobs;
}

std::vector<KnobChange> knob_changes(const RunConfig& before, const RunConfig& after) {
  std::vector<KnobChange> changes;
  for (const std::string_view key : detail::knob_keys()) {
    const Setting& setting = *detail::find_setting(key);
    KnobChange change{std::string(key), detail::value_text(setting, before),
                      detail::value_text(setting, after)};
    if (change.from != change.to) changes.push_back(std::move(change));
  }
  return changes;
}

bool is_setting(std::string_view key) { return detail::find_setting(key) != nullptr; }

std::string value_of(const RunConfig& config, std::string_view key) {
  const Setting* setting = detail::find_setting(key);
  CHECK(setting != nullptr);
  return detail::value_text(*setting, config);
}

std::vector<std::pair<std::string, std::string>> setting_values(const RunConfig& config) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const Setting& setting : detail::setting_table()) {
    values.emplace_back(setting.key, detail::value_text(setting, config));
  }
  return values;
}

}  // namespace sluice::settings
