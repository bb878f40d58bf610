#include "profiler/report/detail/averages.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "profiler/analyze/critical_path.h"
#include "profiler/analyze/link_use.h"

namespace sluice::report::detail {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLastSteps = 100;
constexpr std::int64_t kWarmSteps = 2;

const char* direction_name(rundb::Direction direction) {
  return direction == rundb::Direction::read ? "read" : "write";
}

struct LinkSums {
  analyze::LinkLoad load;  // of the first step: name and limits
  double bytes = 0;
  double busy_ns = 0;
  double share = 0;
};

struct DeviceSums {
  double read_bytes = 0;
  double written_bytes = 0;
  double update_ns = 0;
  double busy_ns = 0;  // something of it was under way
};

class Averages {
 public:
  explicit Averages(const analyze::RunInfo& info) : info_(info), devices_(info.devices.size()) {}

  void add(const analyze::StepData& step) {
    step_count_ += 1;
    dur_sum_ += static_cast<double>(step.row.dur);
    span_count_ += step.spans.size();
    add_verdict(analyze::verdict_of(step));
    add_links(step);
    add_devices(step);
  }

  Json json() const { return {{"verdict", verdict()}, {"links", links()}, {"devices", devices()}}; }

 private:
  void add_verdict(const analyze::StepVerdict& verdict) {
    for (std::size_t i = 0; i < analyze::kCauseCount; ++i)
      cause_ns_[i] += verdict.share[i] * static_cast<double>(verdict.dur);
  }

  void add_links(const analyze::StepData& step) {
    const analyze::LinkUse use(step);
    for (const analyze::LinkLoad& load : use.loads()) {
      LinkSums& sums = links_[{load.link_id, load.direction}];
      if (sums.load.name.empty()) sums.load = load;
      sums.bytes += static_cast<double>(load.bytes);
      sums.busy_ns += static_cast<double>(load.busy_ns);
      sums.share += load.share;
    }
  }

  // What goes on in the step's time, whichever step it belongs to: with pipeline=nbuffer a step's
  // updates run in the next one. Of what is only partly in it, that part.
  void add_devices(const analyze::StepData& step) {
    const TimeNs step_end_ts = step.row.ts + step.row.dur;
    std::vector<TimeNs> busy_until(devices_.size(), step.row.ts);
    for (const analyze::Span& span : step.spans) {
      if (span.device < 0 || static_cast<std::size_t>(span.device) >= devices_.size()) continue;
      const TimeNs begin_ts = std::max(span.ts, step.row.ts);
      const TimeNs end_ts = std::min(span.end_ts, step_end_ts);
      if (begin_ts >= end_ts) continue;
      const auto index = static_cast<std::size_t>(span.device);
      const auto inside_ns = static_cast<double>(end_ts - begin_ts);
      DeviceSums& sums = devices_[index];
      if (!span.track->links.empty()) {
        (span.track->direction == rundb::Direction::read ? sums.read_bytes : sums.written_bytes) +=
            static_cast<double>(span.bytes + span.padding_bytes) * inside_ns /
            static_cast<double>(span.end_ts - span.ts);
      } else if (*span.name == "update") {
        sums.update_ns += inside_ns;
      }
      // Spans come in order of their begin.
      sums.busy_ns +=
          static_cast<double>(std::max<TimeNs>(0, end_ts - std::max(begin_ts, busy_until[index])));
      busy_until[index] = std::max(busy_until[index], end_ts);
    }
  }

  std::string why_nothing() const {
    if (step_count_ == 0) return "No step has ended yet.";
    return "The run recorded its steps but no operations; record=transfers or record=all records "
           "them.";
  }

  double mean(double sum) const {
    return step_count_ == 0 ? 0 : sum / static_cast<double>(step_count_);
  }

  Json verdict() const {
    Json causes = Json::array();
    if (span_count_ > 0) {
      std::vector<std::size_t> order;
      for (std::size_t i = 0; i < analyze::kCauseCount; ++i) {
        if (cause_ns_[i] > 0) order.push_back(i);
      }
      std::ranges::stable_sort(order, std::greater<>(),
                               [this](std::size_t i) { return cause_ns_[i]; });
      for (const std::size_t i : order) {
        const auto cause = static_cast<analyze::Cause>(i);
        causes.push_back({{"cause", analyze::cause_name(cause)},
                          {"phrase", analyze::cause_phrase(cause)},
                          {"share", cause_ns_[i] / dur_sum_},
                          {"ns", mean(cause_ns_[i])}});
      }
    }
    return {{"step_count", step_count_},
            {"dur", mean(dur_sum_)},
            {"why_empty", causes.empty() ? why_nothing() : ""},
            {"causes", std::move(causes)}};
  }

  Json links() const {
    Json rows = Json::array();
    const double scale = info_.time_scale();
    for (const auto& [key, sums] : links_) {
      rows.push_back({{"name", sums.load.name},
                      {"direction", direction_name(sums.load.direction)},
                      {"is_shared", sums.load.is_shared},
                      {"bytes", mean(sums.bytes)},
                      {"bytes_per_s", sums.busy_ns > 0 ? sums.bytes * 1e9 / sums.busy_ns : 0},
                      {"bytes_per_s_max", sums.load.bytes_per_s_max / scale},
                      {"busy_ns", mean(sums.busy_ns)},
                      {"share", mean(sums.share)}});
    }
    const std::string why = !rows.empty()      ? ""
                            : span_count_ == 0 ? why_nothing()
                                               : "Nothing moved over a link.";
    return {{"rows", std::move(rows)}, {"why_empty", why}};
  }

  Json devices() const {
    Json rows = Json::array();
    if (span_count_ > 0) {
      for (std::size_t d = 0; d < devices_.size(); ++d) {
        const DeviceSums& sums = devices_[d];
        rows.push_back({{"name", info_.devices[d].name},
                        {"kind", info_.devices[d].kind},
                        {"read_bytes", mean(sums.read_bytes)},
                        {"written_bytes", mean(sums.written_bytes)},
                        {"update_ns", mean(sums.update_ns)},
                        {"busy_ns", mean(sums.busy_ns)}});
      }
    }
    const std::string why = !rows.empty()      ? ""
                            : span_count_ == 0 ? why_nothing()
                                               : "The run has no storage devices.";
    return {{"rows", std::move(rows)}, {"why_empty", why}};
  }

  const analyze::RunInfo& info_;
  std::size_t step_count_ = 0;
  std::size_t span_count_ = 0;
  double dur_sum_ = 0;
  std::array<double, analyze::kCauseCount> cause_ns_{};
  std::map<std::pair<std::int64_t, rundb::Direction>, LinkSums> links_;
  std::vector<DeviceSums> devices_;
};

}  // namespace

std::vector<rundb::StepRow> steady_steps(const std::vector<rundb::StepRow>& steps,
                                         const std::vector<Change>& changes) {
  std::vector<rundb::StepRow> left = steps;
  // What would leave nothing is not asked for.
  const auto keep = [&left](auto&& is_kept) {
    std::vector<rundb::StepRow> kept;
    std::ranges::copy_if(left, std::back_inserter(kept), is_kept);
    if (!kept.empty()) left = std::move(kept);
  };
  std::int64_t first_step = 0;  // with the settings as they are at the end
  for (const Change& change : changes) {
    if (!steps.empty() && change.step <= steps.back().id)
      first_step = std::max(first_step, change.step);
  }
  keep([&](const rundb::StepRow& step) { return step.id >= first_step; });
  keep([&](const rundb::StepRow& step) { return step.id >= first_step + kWarmSteps; });
  keep([](const rundb::StepRow& step) { return !step.skipped; });
  if (left.size() > kLastSteps) left.erase(left.begin(), left.end() - kLastSteps);
  if (left.size() <= kSteadyStepsMax) return left;
  std::vector<rundb::StepRow> chosen;
  for (std::size_t i = 0; i < kSteadyStepsMax; ++i)
    chosen.push_back(left[i * (left.size() - 1) / (kSteadyStepsMax - 1)]);
  return chosen;
}

Result<Json> averages_json(rundb::Reader& reader, const analyze::RunInfo& info,
                           const std::vector<rundb::StepRow>& steady) {
  Averages averages(info);
  for (const rundb::StepRow& row : steady) {
    ASSIGN_OR_RETURN(const analyze::StepData step, analyze::load_step(reader, info, row));
    averages.add(step);
  }
  Json json = averages.json();
  json["verdict"]["first_step"] = steady.empty() ? 0 : steady.front().id;
  json["verdict"]["last_step"] = steady.empty() ? 0 : steady.back().id;
  return json;
}

}  // namespace sluice::report::detail
