#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

#include "base/check.h"
#include "base/nearest.h"
#include "core/settings/detail/setting_table.h"

namespace sluice::settings::detail {
namespace {

constexpr const char* kAutoWord = "auto";

// With the unit that makes it shortest and keeps it exact: what parse_bytes reads back as the same.
std::string bytes_text(std::int64_t bytes) {
  struct Unit {
    const char* name;
    std::int64_t bytes;
  };
  constexpr std::array<Unit, 6> kUnits = {{{"GiB", std::int64_t{1} << 30},
                                           {"TB", 1'000'000'000'000},
                                           {"GB", 1'000'000'000},
                                           {"MiB", std::int64_t{1} << 20},
                                           {"MB", 1'000'000},
                                           {"KiB", std::int64_t{1} << 10}}};
  std::string text;
  for (const Unit& unit : kUnits) {
    if (bytes <= 0 || bytes % unit.bytes != 0) continue;
    const std::string candidate = fmt::format("{}{}", bytes / unit.bytes, unit.name);
    if (text.empty() || candidate.size() < text.size()) text = candidate;
  }
  return text.empty() ? fmt::format("{}", bytes) : text;
}

std::string limit_text(const Setting& setting, double limit) {
  if (setting.type == SettingType::number) return fmt::format("{}", limit);
  const auto whole = static_cast<std::int64_t>(limit);
  return setting.type == SettingType::bytes ? bytes_text(whole) : fmt::format("{}", whole);
}

std::string number_range_text(const Setting& setting) {
  const Range& range = setting.range;
  const std::string min = limit_text(setting, range.min);
  const std::string max = limit_text(setting, range.max);
  if (range.open_max) return fmt::format("at least {}, below {}", min, max);
  if (range.multiple > 1) {
    return fmt::format("{} to {}, a multiple of {}", min, max,
                       limit_text(setting, static_cast<double>(range.multiple)));
  }
  return fmt::format("{} to {}", min, max);
}

std::string range_text(const Setting& setting) {
  return (setting.range.automatic ? "auto, or " : "") + number_range_text(setting);
}

template <typename Number>
bool is_inside(const Range& range, Number value) {
  const auto number = static_cast<double>(value);
  if (!std::isfinite(number)) return false;
  if (number < range.min) return false;
  return range.open_max ? number < range.max : number <= range.max;
}

const char* type_text(const Setting& setting) {
  switch (setting.type) {
    case SettingType::integer:
      return "an integer";
    case SettingType::number:
      return "a number";
    case SettingType::boolean:
      return "true or false";
    case SettingType::text:
    case SettingType::path:
      return "a string";
    case SettingType::bytes:
      return setting.range.automatic ? "\"auto\", or a number of bytes such as 4096 or \"2GiB\""
                                     : "a number of bytes, such as 4096 or \"2GiB\"";
    case SettingType::word:
      return "one of the words";
    case SettingType::shares:
      return "\"even\" or numbers such as \"3,1,1,1\"";
    case SettingType::layers:
      return "a word, or words with layers such as \"offload:1-3,keep\"";
  }
  return "";
}

struct ShownValue {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return fmt::format("{}", value); }
  std::string operator()(const std::string& value) const { return fmt::format("\"{}\"", value); }
};

Error wrong_type(const Setting& setting, const std::string& shown) {
  return make_error(ErrorCode::config, "{} must be {}{}{}, got {}", setting.key, type_text(setting),
                    setting.type == SettingType::word ? " " : "",
                    setting.type == SettingType::word ? allowed_values(setting) : "", shown);
}

Error out_of_range(const Setting& setting, const std::string& shown) {
  return make_error(ErrorCode::config, "{} = {} is out of range: it must be {}", setting.key, shown,
                    range_text(setting));
}

template <typename Number>
Result<Number> parse_whole(const Setting& setting, std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return out_of_range(setting, std::string(text));
  if (error != std::errc() || end != text.data() + text.size()) {
    return wrong_type(setting, fmt::format("'{}'", text));
  }
  return value;
}

Result<std::int64_t> bytes_of(const Setting& setting, const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return wrong_type(setting, std::visit(ShownValue(), value));
  auto bytes = parse_bytes(*text);
  if (!bytes.ok() && setting.range.automatic)
    return wrong_type(setting, fmt::format("'{}'", *text));
  if (!bytes.ok()) return bytes.error().with_context(setting.key);
  return *bytes;
}

Status store_integer(const Setting& setting, std::int64_t value, std::int64_t& into) {
  if (!is_inside(setting.range, value) || value % setting.range.multiple != 0) {
    return out_of_range(setting, fmt::format("{}", value));
  }
  into = value;
  return ok_status();
}

Status store_word(const Setting& setting, const std::string& text, const WordField& field) {
  std::vector<std::string> known;
  for (const auto& [word, meaning] : field.words) {
    if (word == text) {
      field.assign(meaning);
      return ok_status();
    }
    known.push_back(word);
  }
  if (known.size() == 1) {
    return make_error(ErrorCode::config, "{} = \"{}\": this version has {} only", setting.key, text,
                      known.front());
  }
  return make_error(ErrorCode::config, "{} = \"{}\" is not one of {}{}", setting.key, text,
                    allowed_values(setting), did_you_mean(text, known));
}

Status store_shares(const Setting& setting, std::string_view text, std::vector<double>& into) {
  into.clear();
  if (text == "even") return ok_status();
  double sum = 0;
  while (true) {
    const std::size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    ASSIGN_OR_RETURN(const double share, parse_whole<double>(setting, item));
    if (!is_inside(Range{.min = 0, .max = 1e6}, share)) {
      return make_error(ErrorCode::config, "{}: a share of {} is out of range: 0 to 1000000",
                        setting.key, share);
    }
    into.push_back(share);
    sum += share;
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  if (sum > 0) return ok_status();
  return make_error(ErrorCode::config, "{}: at least one share must be above 0", setting.key);
}

Status store_layers(const Setting& setting, std::string_view text, model::LayerActivations& into) {
  auto parsed = model::LayerActivations::parse(text);
  if (!parsed.ok())
    return parsed.error().with_context(fmt::format("{} = \"{}\"", setting.key, text));
  into = *parsed;
  return ok_status();
}

std::string shares_text(const std::vector<double>& shares) {
  return shares.empty() ? "even" : fmt::format("{}", fmt::join(shares, ","));
}

}  // namespace

Result<Value> parse_value(const Setting& setting, std::string_view text) {
  switch (setting.type) {
    case SettingType::integer: {
      ASSIGN_OR_RETURN(const auto value, parse_whole<std::int64_t>(setting, text));
      return Value(value);
    }
    case SettingType::number: {
      ASSIGN_OR_RETURN(const auto value, parse_whole<double>(setting, text));
      return Value(value);
    }
    case SettingType::boolean:
      if (text == "true") return Value(true);
      if (text == "false") return Value(false);
      return wrong_type(setting, fmt::format("'{}'", text));
    case SettingType::text:
    case SettingType::path:
    case SettingType::bytes:
    case SettingType::word:
    case SettingType::shares:
    case SettingType::layers:
      break;
  }
  return Value(std::string(text));
}

Status store_value(const Setting& setting, const Value& value, RunConfig& config) {
  Field field = setting.field(config);
  const auto* text = std::get_if<std::string>(&value);
  const auto* whole = std::get_if<std::int64_t>(&value);
  if (auto** into = std::get_if<std::int64_t*>(&field)) {
    if (setting.range.automatic && text != nullptr && *text == kAutoWord) {
      **into = kAutomatic;
      return ok_status();
    }
    if (setting.type == SettingType::bytes) {
      ASSIGN_OR_RETURN(const std::int64_t size_bytes, bytes_of(setting, value));
      return store_integer(setting, size_bytes, **into);
    }
    if (whole != nullptr) return store_integer(setting, *whole, **into);
  } else if (auto** number = std::get_if<double*>(&field)) {
    const auto* real = std::get_if<double>(&value);
    if (real != nullptr || whole != nullptr) {
      const double wanted = real != nullptr ? *real : static_cast<double>(*whole);
      if (!is_inside(setting.range, wanted))
        return out_of_range(setting, fmt::format("{}", wanted));
      **number = wanted;
      return ok_status();
    }
  } else if (auto** flag = std::get_if<bool*>(&field)) {
    if (const auto* wanted = std::get_if<bool>(&value)) {
      **flag = *wanted;
      return ok_status();
    }
  } else if (text != nullptr) {
    if (const auto* words = std::get_if<WordField>(&field)) {
      return store_word(setting, *text, *words);
    }
    if (auto** shares = std::get_if<std::vector<double>*>(&field)) {
      return store_shares(setting, *text, **shares);
    }
    if (auto** layers = std::get_if<model::LayerActivations*>(&field)) {
      return store_layers(setting, *text, **layers);
    }
    *std::get<std::string*>(field) = *text;
    return ok_status();
  }
  return wrong_type(setting, std::visit(ShownValue(), value));
}

std::string allowed_values(const Setting& setting) {
  RunConfig config;
  switch (setting.type) {
    case SettingType::integer:
    case SettingType::number:
    case SettingType::bytes:
      return range_text(setting);
    case SettingType::boolean:
      return "true, false";
    case SettingType::text:
      return "text";
    case SettingType::path:
      return "path";
    case SettingType::shares:
      return "even or shares";
    case SettingType::layers:
      return "keep, recompute, offload, offload_inputs, or a mix by layer";
    case SettingType::word: {
      std::vector<std::string> words;
      const Field field = setting.field(config);
      for (const auto& [word, meaning] : std::get<WordField>(field).words) words.push_back(word);
      return fmt::format("{}", fmt::join(words, ", "));
    }
  }
  return "";
}

std::string value_text(const Setting& setting, const RunConfig& config) {
  // A field is a place to read from and to write to; here it is read.
  const Field field = setting.field(const_cast<RunConfig&>(config));
  if (const auto* whole = std::get_if<std::int64_t*>(&field)) {
    if (setting.range.automatic && **whole == kAutomatic) return kAutoWord;
    return setting.type == SettingType::bytes ? bytes_text(**whole) : fmt::format("{}", **whole);
  }
  if (const auto* number = std::get_if<double*>(&field)) return fmt::format("{}", **number);
  if (const auto* flag = std::get_if<bool*>(&field)) return **flag ? "true" : "false";
  if (const auto* text = std::get_if<std::string*>(&field)) return **text;
  if (const auto* shares = std::get_if<std::vector<double>*>(&field)) return shares_text(**shares);
  if (const auto* layers = std::get_if<model::LayerActivations*>(&field)) return (*layers)->text();
  const auto& words = std::get<WordField>(field);
  for (const auto& [word, meaning] : words.words) {
    if (meaning == words.current) return word;
  }
  CHECK(false);  // an enum value that the table has no word for
  return "";
}

}  // namespace sluice::settings::detail
