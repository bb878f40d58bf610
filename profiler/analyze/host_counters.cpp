#include "profiler/analyze/host_counters.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "storage/rundb/span_reader.h"

namespace sluice::analyze {
namespace {

constexpr double kDiffersFrom = 1.2;
constexpr std::size_t kCountersNamed = 3;

struct RangeOfCounter {
  double least = 0;
  double most = 0;
};

bool is_of_host(const RunInfo& info, std::int64_t track_id) {
  const auto track = info.tracks.find(track_id);
  if (track == info.tracks.end() || track->second.kind != "counter") return false;
  const auto above = info.tracks.find(track->second.parent_id);
  return above != info.tracks.end() && above->second.kind == "host";
}

Result<std::map<std::int64_t, RangeOfCounter>> ranges_in(rundb::Reader& reader, const RunInfo& info,
                                                         Interval when) {
  std::map<std::int64_t, RangeOfCounter> ranges;
  ASSIGN_OR_RETURN(const std::vector<rundb::CounterRow> samples,
                   rundb::SpanReader(reader).counters_between(when.first, when.second));
  for (const rundb::CounterRow& sample : samples) {
    if (std::isnan(sample.value) || !is_of_host(info, sample.track_id)) continue;
    const auto [range, is_new] =
        ranges.try_emplace(sample.track_id, RangeOfCounter{sample.value, sample.value});
    range->second.least = std::min(range->second.least, sample.value);
    range->second.most = std::max(range->second.most, sample.value);
  }
  return ranges;
}

std::string value_text(const TrackInfo& track, double value) {
  return track.name.ends_with("(bytes)") ? format_bytes(static_cast<std::int64_t>(value))
                                         : fmt::format("{:g}", value);
}

// "" where it is about the same.
std::string change_of(const TrackInfo& track, const RangeOfCounter& here,
                      const RangeOfCounter& usual) {
  if (here.most > kDiffersFrom * usual.most) {
    return fmt::format("{} rose to {}, usually at most {}", track.name,
                       value_text(track, here.most), value_text(track, usual.most));
  }
  if (kDiffersFrom * here.least < usual.least) {
    return fmt::format("{} fell to {}, usually at least {}", track.name,
                       value_text(track, here.least), value_text(track, usual.least));
  }
  return "";
}

}  // namespace

Result<std::string> host_counters_beside(rundb::Reader& reader, const RunInfo& info, Interval here,
                                         Interval usual) {
  ASSIGN_OR_RETURN(const auto now, ranges_in(reader, info, here));
  ASSIGN_OR_RETURN(const auto then, ranges_in(reader, info, usual));
  std::string words;
  std::size_t count = 0;
  for (const auto& [track, range] : now) {
    const auto before = then.find(track);
    if (before == then.end() || count == kCountersNamed) continue;
    const std::string change = change_of(info.tracks.at(track), range, before->second);
    if (change.empty()) continue;
    words += (words.empty() ? "" : ", ") + change;
    ++count;
  }
  return words;
}

}  // namespace sluice::analyze
