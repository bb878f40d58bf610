#include "core/toml_file/depth.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace sluice::toml_file {
namespace {

class DepthScan {
 public:
  explicit DepthScan(std::string_view toml) : toml_(toml) {}

  // The line of the first place that is too deep; 0 if there is none.
  int first_line_too_deep() {
    while (at_ < toml_.size()) {
      take(toml_[at_]);
      if (std::accumulate(levels_.begin(), levels_.end(), 0) > kDepthMax) return line_;
    }
    return 0;
  }

 private:
  enum class Place { key, header, value };

  void take(char c) {
    if (c == '"' || c == '\'') return skip_text(c);
    if (c == '#') return skip_comment();
    at_ += 1;
    if (c == '\n') return take_line_end();
    switch (place_) {
      case Place::header:
        if (c == '.') levels_[kHeader] += 1;
        return;
      case Place::key:
        return take_in_key(c);
      case Place::value:
        return take_in_value(c);
    }
  }

  void take_line_end() {
    line_ += 1;
    if (open_.empty()) begin_key();  // arrays go over several lines
  }

  void take_in_key(char c) {
    if (c == '.') levels_.back() += 1;
    if (c == '=') place_ = Place::value;
    if (c == '}') close();  // { }
    if (c == '[' && open_.empty()) {
      place_ = Place::header;
      levels_ = {1, 0};
    }
  }

  void take_in_value(char c) {
    if (c == '[' || c == '{') {
      open_.push_back(c);
      levels_.push_back(1);
      if (c == '{') begin_key();
    }
    if (c == ']' || c == '}') close();
    if (c == ',' && !open_.empty() && open_.back() == '{') begin_key();
  }

  void begin_key() {
    place_ = Place::key;
    levels_.back() = 1;
  }

  // A bracket that closes nothing is a fault, at which the parser stops.
  void close() {
    place_ = Place::value;
    if (open_.empty()) return;
    open_.pop_back();
    levels_.pop_back();
  }

  void skip_comment() { at_ = std::min(toml_.find('\n', at_), toml_.size()); }

  // How many of this quote stand here, up to `most`.
  std::size_t quotes(char quote, std::size_t most) const {
    std::size_t count = 0;
    while (count < most && at_ + count < toml_.size() && toml_[at_ + count] == quote) ++count;
    return count;
  }

  void skip_text(char quote) {
    const bool has_lines = quotes(quote, 3) == 3;
    at_ += has_lines ? 3 : 1;
    while (at_ < toml_.size()) {
      const char c = toml_[at_];
      if (c == '\n' && !has_lines) return;  // a fault: the text is not closed
      if (c == quote) {
        // The three that close a text of several lines may follow two that belong to it.
        const std::size_t count = has_lines ? quotes(quote, 5) : 1;
        at_ += count;
        if (!has_lines || count >= 3) return;
        continue;
      }
      const bool is_escape = c == '\\' && quote == '"' && at_ + 1 < toml_.size();
      line_ += static_cast<int>(std::ranges::count(toml_.substr(at_, is_escape ? 2 : 1), '\n'));
      at_ += is_escape ? 2 : 1;
    }
  }

  static constexpr std::size_t kHeader = 0;

  std::string_view toml_;
  std::size_t at_ = 0;
  int line_ = 1;
  Place place_ = Place::key;
  // Parts of the header, of the key, and of the key in each bracket that is open (in an array 1).
  std::vector<int> levels_ = {0, 1};
  std::vector<char> open_;  // the brackets around this place
};

}  // namespace

Status check_depth(std::string_view toml, const std::string& path) {
  const int line = DepthScan(toml).first_line_too_deep();
  if (line == 0) return ok_status();
  return make_error(ErrorCode::config,
                    "{}:{}: keys, tables and arrays nest deeper than {} levels here; no model, "
                    "platform or run file needs more than three",
                    path, line, kDepthMax);
}

}  // namespace sluice::toml_file
