#include "profiler/watch/condition.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "base/nearest.h"
#include "base/units.h"
#include "profiler/analyze/condition_text.h"

namespace sluice::watch {
namespace {

struct Figure {
  const char* key;
  Subject subject;
  double (*of)(const rundb::StepRow& step);
  bool is_time;
  const char* example;
};
double tokens_per_second(const rundb::StepRow& step) {
  if (step.tokens == 0 || step.dur <= 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(step.tokens) / step_seconds(step);
}
constexpr std::array kFigures = {
    Figure{"step_time", Subject::step, step_seconds, true, "'step_time>+20%' or 'step_time>2s'"},
    Figure{"tokens_per_second", Subject::step, tokens_per_second, false,
           "'tokens_per_second<-10%'"},
    Figure{"loss", Subject::step, [](const rundb::StepRow& step) { return step.loss; }, false,
           "'loss>4.5', 'loss>+10%' or 'loss=nan'"},
    Figure{"grad_norm", Subject::step, [](const rundb::StepRow& step) { return step.grad_norm; },
           false, "'grad_norm>100' or 'grad_norm=nan'"},
    Figure{"loss_scale", Subject::step, [](const rundb::StepRow& step) { return step.loss_scale; },
           false, "'loss_scale<128'"},
    Figure{"lost_records", Subject::lost_records, nullptr, false, "'lost_records>0'"},
    Figure{"no_step_for", Subject::no_step, nullptr, true, "'no_step_for>60s'"},
};

std::optional<double> bound_of(const Figure& figure, const analyze::ConditionText& split) {
  if (split.is_percent || !figure.is_time) return analyze::finite_number(split.bound);
  if (const auto seconds = analyze::finite_number(split.bound)) return seconds;
  const Result<TimeNs> duration = parse_duration(split.bound);
  if (!duration.ok()) return std::nullopt;
  return static_cast<double>(*duration) / 1e9;
}

bool is_allowed(const Figure& figure, const analyze::ConditionText& split) {
  if (figure.subject != Subject::step) return split.sign == '>' && !split.is_percent;
  return split.sign != '=' || (split.bound == "nan" && !split.is_percent && !figure.is_time);
}

}  // namespace

Result<Condition> parse_condition(const std::string& text) {
  const auto split = analyze::split_condition(text, "<>=");
  if (!split) {
    return make_error(ErrorCode::config,
                      "--when {}: write a figure, > or <, and a bound, like 'step_time>+20%' or "
                      "'loss=nan'",
                      text);
  }
  std::vector<std::string> keys;
  for (const Figure& figure : kFigures) keys.emplace_back(figure.key);
  const auto figure = std::ranges::find(kFigures, split->key, &Figure::key);
  if (figure == kFigures.end()) {
    return make_error(ErrorCode::config, "--when {}: there is no figure '{}'{}; there are {}", text,
                      split->key, did_you_mean(split->key, keys), fmt::join(keys, ", "));
  }
  const auto bound = split->sign == '=' ? std::optional(0.0) : bound_of(*figure, *split);
  if (!is_allowed(*figure, *split) || !bound) {
    return make_error(ErrorCode::config, "--when {}: write it as {}", text, figure->example);
  }
  return Condition{.text = text,
                   .subject = figure->subject,
                   .figure = figure->of,
                   .is_time = figure->is_time,
                   .sign = split->sign,
                   .is_percent = split->is_percent,
                   .bound = split->is_percent ? *bound / 100 : *bound};
}

}  // namespace sluice::watch
