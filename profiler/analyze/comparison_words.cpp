#include "profiler/analyze/comparison_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/units.h"
#include "profiler/analyze/phase.h"

namespace sluice::analyze {
namespace {

std::string seconds_text(double seconds) { return format_seconds(std::abs(seconds)); }

std::string noise_text(const ComparedFigure& figure, std::string_view plus_minus) {
  return figure.noise > 0 && figure.a != 0
             ? fmt::format("noise {}{:.1f} %", plus_minus, 100 * figure.noise_share())
             : "";
}

std::string headline_of(const ComparedFigure& step, std::string_view plus_minus) {
  if (step.a == step.b) return fmt::format("A step takes {} in both.", seconds_text(step.a));
  const std::string noise = noise_text(step, plus_minus);
  const std::string change = fmt::format("{:.1f} %", 100 * std::abs(step.change()));
  if (!step.is_more_than_noise()) {
    return fmt::format(
        "No difference beyond noise: a step takes {} in A and {} in B ({:+.1f} %, {}).",
        seconds_text(step.a), seconds_text(step.b), 100 * step.change(), noise);
  }
  return fmt::format("B is {}: a step takes {}, {} {} than the {} of A{}.",
                     step.is_better() ? "faster" : "slower", seconds_text(step.b), change,
                     step.is_better() ? "less" : "more", seconds_text(step.a),
                     noise.empty() ? "" : "; " + noise);
}

// Below this share of the difference, phases do not say where it comes from.
constexpr double kExplains = 0.5;

// Medians of phases need not add up to that of steps: what they leave open is said.
std::string unexplained(const Comparison& comparison, const std::vector<ComparedFigure>& moved) {
  const ComparedFigure* step = comparison.figure("step_time");
  if (step == nullptr || step->a == step->b || !step->is_more_than_noise()) return "";
  double explained = 0;
  for (const ComparedFigure& figure : moved) explained += figure.b - figure.a;
  const double share = explained / (step->b - step->a);
  if (share >= kExplains) return "";
  return fmt::format(
      " That is {:.0f} % of the difference; the rest is in phases that scatter, whose medians do "
      "not "
      "add up to that of the steps.",
      100 * std::max(0.0, share));
}

std::string where_of(const Comparison& comparison) {
  std::vector<ComparedFigure> moved;
  std::vector<std::string> still;
  for (const PhaseInfo& phase : kPhases) {
    const ComparedFigure* figure = comparison.figure(phase.name);
    if (figure == nullptr) continue;
    if (figure->a != figure->b && figure->is_more_than_noise()) {
      moved.push_back(*figure);
    } else {
      still.push_back(figure->key);
    }
  }
  std::ranges::stable_sort(moved, std::greater<>(), [](const ComparedFigure& figure) {
    return std::abs(figure.b - figure.a);
  });
  std::vector<std::string> parts;
  for (const ComparedFigure& figure : moved) {
    parts.push_back(fmt::format("{} takes {} {}", figure.key, seconds_text(figure.b - figure.a),
                                figure.is_better() ? "less" : "more"));
  }
  if (!still.empty()) {
    parts.push_back(fmt::format("{} {} by no more than noise", listed(still),
                                still.size() == 1 ? "differs" : "differ"));
  }
  if (parts.empty()) return "";
  return fmt::format("By phases: {}.{}", fmt::join(parts, "; "), unexplained(comparison, moved));
}

}  // namespace

ComparisonWords words_of(const Comparison& comparison, std::string_view plus_minus) {
  const ComparedFigure* step = comparison.figure("step_time");
  if (step == nullptr) return {};  // compare_runs() refuses runs without steps
  if (!comparison.comparability.is_comparable()) {
    return {
        .headline = fmt::format("As recorded, a step takes {} in A and {} in B; how much of that "
                                "comes from the settings cannot be said.",
                                seconds_text(step->a), seconds_text(step->b)),
        .where = ""};
  }
  return {.headline = headline_of(*step, plus_minus), .where = where_of(comparison)};
}

std::string judgement_of(const ComparedFigure& figure, std::string_view plus_minus) {
  const std::string noise = noise_text(figure, plus_minus);
  if (figure.a == figure.b) return noise.empty() ? "the same" : "the same, " + noise;
  if (!figure.is_more_than_noise()) return "within the " + noise;
  const std::string word = figure.b > figure.a ? "MORE" : "LESS";
  return noise.empty() ? word : word + ", " + noise;
}

std::string incomparable_words(const Comparability& comparability) {
  if (comparability.is_comparable()) return "";
  return fmt::format("A and B cannot be compared: {} {}.", names_of(comparability.mismatches),
                     comparability.mismatches.size() == 1 ? "differs" : "differ");
}

}  // namespace sluice::analyze
