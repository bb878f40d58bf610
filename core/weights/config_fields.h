#pragma once
// The fields of a config.json, each read once and by name, so that what nobody read is known and
// refused: a field that is passed over may be the one that changes the arithmetic.
//
// Thread contract: one owner.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::weights {

class ConfigFields {
 public:
  // `fields` outlives it. `place` begins messages: the file, and the object in it.
  ConfigFields(const nlohmann::json& fields, std::string place)
      : fields_(fields), place_(std::move(place)) {}

  // The value of a field, which is read with that; null: it is not there, or is null.
  const nlohmann::json* find(std::string_view key);
  bool has(std::string_view key) { return find(key) != nullptr; }

  // Errors (ErrorCode::config): the field is missing, or of another kind.
  Result<std::int64_t> whole(std::string_view key);  // 1 or more
  Result<std::int64_t> whole_or(std::string_view key, std::int64_t left_out);
  Result<double> real(std::string_view key);
  Result<double> real_or(std::string_view key, double left_out);
  Result<bool> flag_or(std::string_view key, bool left_out);
  Result<std::string> text_or(std::string_view key, const std::string& left_out);

  // The field may be missing, or say what is computed in any case. ErrorCode::unsupported.
  Status only(std::string_view key, const nlohmann::json& supported);
  // Fields that change no number, with a space between two of them.
  void pass_over(std::string_view keys);

  // Refuses what nobody has read, with the nearest field that `of_what` has.
  Status check_all_read(std::string_view of_what) const;

  template <typename... Args>
  Error refused(fmt::format_string<Args...> format, Args&&... args) const {
    return make_error(ErrorCode::unsupported, "{}: {}", place_,
                      fmt::format(format, std::forward<Args>(args)...));
  }
  const std::string& place() const { return place_; }

 private:
  Error wrong(std::string_view key, const nlohmann::json& value, std::string_view wanted) const;
  Error missing(std::string_view key) const;

  const nlohmann::json& fields_;
  std::string place_;
  std::set<std::string, std::less<>> read_;
};

// A value as messages show it.
std::string value_text(const nlohmann::json& value);

}  // namespace sluice::weights
