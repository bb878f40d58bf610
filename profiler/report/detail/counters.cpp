#include "profiler/report/detail/counters.h"

#include <algorithm>
#include <cmath>

#include "storage/rundb/span_reader.h"

namespace sluice::report::detail {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kSamplesMax = 1000;  // of a counter in a step: about as many as columns

std::string name_of(const analyze::RunInfo& info, std::int64_t track_id) {
  const auto track = info.tracks.find(track_id);
  return track == info.tracks.end() ? "counter without a name" : track->second.name;
}

Json samples_json(const std::vector<rundb::CounterRow>& samples, TimeNs step_ts) {
  Json rows = Json::array();
  for (const rundb::CounterRow& sample : thinned(samples, kSamplesMax)) {
    rows.push_back(
        {sample.ts - step_ts, std::isfinite(sample.value) ? Json(sample.value) : Json(nullptr)});
  }
  return rows;
}

}  // namespace

std::vector<rundb::CounterRow> thinned(const std::vector<rundb::CounterRow>& samples,
                                       std::size_t count) {
  if (samples.size() <= count) return samples;
  const std::size_t stretches = std::max<std::size_t>(1, count / 2);
  std::vector<rundb::CounterRow> kept;
  for (std::size_t s = 0; s < stretches; ++s) {
    const auto begin =
        samples.begin() + static_cast<std::ptrdiff_t>(samples.size() * s / stretches);
    const auto end =
        samples.begin() + static_cast<std::ptrdiff_t>(samples.size() * (s + 1) / stretches);
    const auto [low, high] =
        std::minmax_element(begin, end, [](const rundb::CounterRow& a, const rundb::CounterRow& b) {
          return std::isfinite(a.value) && (!std::isfinite(b.value) || a.value < b.value);
        });
    kept.push_back(*std::min(low, high));
    if (low != high) kept.push_back(*std::max(low, high));
  }
  return kept;
}

Result<Json> counters_json(rundb::Reader& reader, const analyze::RunInfo& info,
                           const rundb::StepRow& step) {
  ASSIGN_OR_RETURN(const std::vector<rundb::CounterRow> rows,
                   rundb::SpanReader(reader).counters_between(step.ts, step.ts + step.dur));
  Json counters = Json::array();
  for (auto row = rows.begin(); row != rows.end();) {
    const auto end = std::find_if(
        row, rows.end(), [&](const rundb::CounterRow& r) { return r.track_id != row->track_id; });
    counters.push_back(
        {{"name", name_of(info, row->track_id)}, {"samples", samples_json({row, end}, step.ts)}});
    row = end;
  }
  return counters;
}

}  // namespace sluice::report::detail
