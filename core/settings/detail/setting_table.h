#pragma once
// The table behind run_config.h: each setting once, with the place in RunConfig that it fills.
//
// Thread contract: made once, then immutable.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/settings/run_config.h"

namespace sluice::settings::detail {

// A choice among words, whatever enum stands behind it.
struct WordField {
  std::vector<std::pair<std::string, int>> words;
  int current = 0;
  std::function<void(int)> assign;
};

// Where a setting lives. Which alternative it is follows from the setting's type.
using Field = std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<double>*,
                           model::LayerActivations*, WordField>;

// Numbers only, and always with two ends: what is made of a number is right at both of them. An
// open end is not itself allowed.
struct Range {
  double min = 0;
  double max = 0;
  bool open_max = false;
  std::int64_t multiple = 1;
  bool automatic = false;  // the word "auto" is a value too, kept as kAutomatic (bytes only)
};

struct Setting {
  const char* key;
  const char* section;
  Decides decides;  // before what has a default, so that no row can leave it out
  SettingType type;
  Field (*field)(RunConfig&);
  Range range;
  const char* unit;
  const char* help;
  bool required = false;
};

// A value that a TOML file can say, and that the text of a --set becomes.
using Value = std::variant<bool, std::int64_t, double, std::string>;

std::span<const Setting> setting_table();
const Setting* find_setting(std::string_view key);
std::vector<std::string> setting_keys();
// Those that may change between the steps of a run.
std::span<const std::string_view> knob_keys();

// Reads the text of `--set key=TEXT` as the setting's type.
Result<Value> parse_value(const Setting& setting, std::string_view text);
// Checks type and range, and writes to the setting's place. Messages begin with the key.
Status store_value(const Setting& setting, const Value& value, RunConfig& config);

std::string allowed_values(const Setting& setting);
// As --set would take it.
std::string value_text(const Setting& setting, const RunConfig& config);

}  // namespace sluice::settings::detail
