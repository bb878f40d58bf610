#include "core/control/effect_watch.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/nearest.h"

namespace sluice::control {
namespace {

struct Figure {
  const char* name;
  double RunStatus::* of;
  const char* unit;
};

constexpr std::array<Figure, 5> kFigures = {{{"step_time", &RunStatus::step_seconds, " s"},
                                             {"forward", &RunStatus::forward_seconds, " s"},
                                             {"backward", &RunStatus::backward_seconds, " s"},
                                             {"update", &RunStatus::update_seconds, " s"},
                                             {"loss", &RunStatus::loss, ""}}};

const Figure* find_figure(const std::string& name) {
  const auto found =
      std::ranges::find_if(kFigures, [&](const Figure& f) { return name == f.name; });
  return found == kFigures.end() ? nullptr : &*found;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

Result<RevertRule> parse_revert_rule(const std::string& text) {
  const auto wrong = [&](const std::string& why) {
    return Error(ErrorCode::config,
                 fmt::format("'{}': {}; expected FIGURE>+N%, as in step_time>+5%", text, why));
  };
  const std::size_t sign = text.find('>');
  if (sign == std::string::npos) return wrong("there is no '>'");
  RevertRule rule;
  rule.figure = text.substr(0, sign);
  if (find_figure(rule.figure) == nullptr) {
    std::vector<std::string> names;
    for (const Figure& figure : kFigures) names.emplace_back(figure.name);
    return wrong(fmt::format("there is no figure '{}'{}, only {}", rule.figure,
                             did_you_mean(rule.figure, names), fmt::join(names, ", ")));
  }
  std::string_view limit = std::string_view(text).substr(sign + 1);
  if (limit.starts_with('+')) limit.remove_prefix(1);
  if (!limit.ends_with('%')) return wrong("the limit is not a percentage");
  limit.remove_suffix(1);
  double percent = 0;
  const auto [end, error] = std::from_chars(limit.data(), limit.data() + limit.size(), percent);
  if (error != std::errc() || end != limit.data() + limit.size() || !std::isfinite(percent) ||
      percent < 0 || percent > 1e6) {
    return wrong("the limit is not a percentage of 0 or more");
  }
  rule.more_than = percent / 100;
  return rule;
}

std::optional<std::int64_t> EffectWatch::on_change() {
  comes_with_another_ = has_changed_ && last_.empty();
  has_changed_ = true;
  before_ = std::move(last_);
  last_.clear();
  if (!watch_) return std::nullopt;
  const std::int64_t change = watch_->change;
  watch_.reset();
  return change;
}

void EffectWatch::begin(std::int64_t change, const RevertRule& rule, std::int64_t step_count,
                        std::vector<std::string> undo) {
  if (before_.empty()) {
    result_ = WatchResult{
        change, false, std::move(undo),
        comes_with_another_ ? "another change came in force with it, so its own effect is not known"
                            : "there is no step before the change to compare with"};
    return;
  }
  std::vector<double> values;
  for (const RunStatus& status : before_) values.push_back(status.*find_figure(rule.figure)->of);
  watch_ = Watch{change, rule, step_count, std::move(undo), median(std::move(values)), {}, false};
}

void EffectWatch::on_step(const RunStatus& status) {
  last_.push_back(status);
  if (last_.size() > kBeforeStepsMax) last_.pop_front();
  if (!watch_) return;
  if (!watch_->first_is_over) {
    watch_->first_is_over = true;
    return;
  }
  const Figure& figure = *find_figure(watch_->rule.figure);
  watch_->after.push_back(status.*figure.of);
  if (std::ssize(watch_->after) < watch_->step_count) return;
  const double after = median(watch_->after);
  const double more = watch_->before > 0 ? after / watch_->before - 1 : 0;
  // A figure that is no number any more is harm of the worst kind.
  const bool harmed = !(more <= watch_->rule.more_than);
  result_ = WatchResult{watch_->change, harmed, std::move(watch_->undo),
                        fmt::format("{} {:.4g}{} -> {:.4g}{} ({:+.1f} %, limit {:+.4g} %)",
                                    figure.name, watch_->before, figure.unit, after, figure.unit,
                                    more * 100, watch_->rule.more_than * 100)};
  watch_.reset();
}

std::optional<WatchResult> EffectWatch::take_result() {
  std::optional<WatchResult> result;
  std::swap(result, result_);
  return result;
}

}  // namespace sluice::control
