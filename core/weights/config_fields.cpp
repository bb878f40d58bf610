#include "core/weights/config_fields.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/nearest.h"
#include "core/weights/json_text.h"

namespace sluice::weights {

using nlohmann::json;

std::string value_text(const json& value) { return shortened(value.dump()); }

const json* ConfigFields::find(std::string_view key) {
  read_.emplace(key);
  const auto found = fields_.find(key);
  return found == fields_.end() || found->is_null() ? nullptr : &*found;
}

Error ConfigFields::wrong(std::string_view key, const json& value, std::string_view wanted) const {
  return make_error(ErrorCode::config, "{}: '{}' is {}, and takes {}", place_, key,
                    value_text(value), wanted);
}

Error ConfigFields::missing(std::string_view key) const {
  return make_error(ErrorCode::config, "{}: '{}' is missing", place_, key);
}

Result<std::int64_t> ConfigFields::whole(std::string_view key) {
  if (!has(key)) return missing(key);
  return whole_or(key, 0);
}

Result<std::int64_t> ConfigFields::whole_or(std::string_view key, std::int64_t left_out) {
  const json* const value = find(key);
  if (value == nullptr) return left_out;
  if (value->is_number_integer() && *value >= 1 && *value <= std::int64_t{1} << 40) {
    return value->get<std::int64_t>();
  }
  return wrong(key, *value, "a whole number from 1 on");
}

Result<double> ConfigFields::real(std::string_view key) {
  if (!has(key)) return missing(key);
  return real_or(key, 0);
}

Result<double> ConfigFields::real_or(std::string_view key, double left_out) {
  const json* const value = find(key);
  if (value == nullptr) return left_out;
  if (value->is_number() && std::isfinite(value->get<double>())) return value->get<double>();
  return wrong(key, *value, "a number");
}

Result<bool> ConfigFields::flag_or(std::string_view key, bool left_out) {
  const json* const value = find(key);
  if (value == nullptr) return left_out;
  if (value->is_boolean()) return value->get<bool>();
  return wrong(key, *value, "true or false");
}

Result<std::string> ConfigFields::text_or(std::string_view key, const std::string& left_out) {
  const json* const value = find(key);
  if (value == nullptr) return left_out;
  if (value->is_string()) return value->get<std::string>();
  return wrong(key, *value, "a text");
}

Status ConfigFields::only(std::string_view key, const json& supported) {
  const json* const value = find(key);
  if (value == nullptr || *value == supported) return ok_status();
  return refused("'{}' is {}, which is another arithmetic than that of training here; it knows {}",
                 key, value_text(*value), value_text(supported));
}

void ConfigFields::pass_over(std::string_view keys) {
  while (!keys.empty()) {
    const std::size_t end = std::min(keys.find(' '), keys.size());
    read_.emplace(keys.substr(0, end));
    keys.remove_prefix(std::min(end + 1, keys.size()));
  }
}

Status ConfigFields::check_all_read(std::string_view of_what) const {
  for (const auto& [key, value] : fields_.items()) {
    // "_name_or_path" and its like: notes of whoever wrote the file, which no class computes with.
    if (read_.contains(key) || key.starts_with('_')) continue;
    const std::vector<std::string> known(read_.begin(), read_.end());
    return refused(
        "'{}' is {}: nothing is known of this field of {}, and it may change what the model "
        "computes{}; take it out if it does not",
        shortened(key), value_text(value), of_what, did_you_mean(key, known));
  }
  return ok_status();
}

}  // namespace sluice::weights
