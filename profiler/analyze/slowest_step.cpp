#include "profiler/analyze/slowest_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "profiler/analyze/trend.h"

namespace sluice::analyze {
namespace {

// Fewer steps have no median to stand beside.
constexpr std::size_t kFewestBeside = 3;
constexpr std::size_t kCausesNamed = 3;

struct FoundSlowest {
  SlowestPlace place;
  double times = 1;  // as long as the median
};

FoundSlowest slowest_in(std::span<const rundb::StepRow> steps,
                        const std::vector<std::size_t>& indices) {
  std::vector<double> durs;
  for (const std::size_t i : indices) durs.push_back(static_cast<double>(steps[i].dur));
  const double median = median_of(durs);
  const auto from_median = [&](std::size_t i) {
    return std::abs(static_cast<double>(steps[i].dur) - median);
  };
  const auto dur = [&](std::size_t i) { return steps[i].dur; };
  const std::size_t slowest = *std::ranges::max_element(indices, {}, dur);
  const std::size_t typical = *std::ranges::min_element(indices, {}, from_median);
  const double times = median > 0 ? static_cast<double>(steps[slowest].dur) / median : 1;
  return {{slowest, typical}, steps[slowest].dur > steps[typical].dur ? times : 1};
}

}  // namespace

std::optional<SlowestPlace> slowest_of(std::span<const rundb::StepRow> steps,
                                       std::span<const std::size_t> borders,
                                       const std::vector<bool>& unsettled) {
  FoundSlowest most;
  std::vector<std::size_t> indices;
  auto border = borders.begin();
  const auto end_stretch = [&] {
    if (indices.size() >= kFewestBeside) {
      const FoundSlowest found = slowest_in(steps, indices);
      if (found.times > most.times) most = found;
    }
    indices.clear();
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    while (border != borders.end() && *border <= i) {
      end_stretch();
      ++border;
    }
    if (!unsettled[i] && !steps[i].skipped) indices.push_back(i);
  }
  end_stretch();
  return most.times > 1 ? std::optional(most.place) : std::nullopt;
}

std::vector<CauseBeside> more_than(const StepVerdict& slow, const StepVerdict& typical) {
  const auto ns_of = [](const StepVerdict& verdict, std::size_t cause) {
    return static_cast<TimeNs>(
        std::llround(verdict.share[cause] * static_cast<double>(verdict.dur)));
  };
  std::vector<CauseBeside> more;
  for (std::size_t c = 0; c < kCauseCount; ++c) {
    const CauseBeside beside = {static_cast<Cause>(c), ns_of(slow, c), ns_of(typical, c)};
    if (beside.ns > beside.typical_ns) more.push_back(beside);
  }
  std::ranges::stable_sort(more, std::greater<>(),
                           [](const CauseBeside& beside) { return beside.ns - beside.typical_ns; });
  more.resize(std::min(more.size(), kCausesNamed));
  return more;
}

std::string SlowestStep::causes_words() const {
  std::string words;
  for (const CauseBeside& beside : more) {
    words +=
        fmt::format("{}{} {} instead of {}", words.empty() ? "" : ", ", cause_phrase(beside.cause),
                    format_duration(beside.ns), format_duration(beside.typical_ns));
  }
  return words;
}

std::string SlowestStep::words() const {
  const std::string causes = causes_words();
  return fmt::format("step {} took {}, {} more than step {}, the median{}{}; {} the noise",
                     step + 1, format_duration(dur), format_duration(dur - typical_dur),
                     typical_step + 1, causes.empty() ? "" : ": ", causes,
                     is_beyond_noise ? "beyond" : "within");
}

}  // namespace sluice::analyze
