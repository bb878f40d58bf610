#include "profiler/analyze/run_data.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <sstream>

namespace sluice::analyze {
std::string RunInfo::meta_value(std::string_view key) const {
  const auto row = std::ranges::find(meta, key, &rundb::MetaRow::key);
  return row == meta.end() ? "" : row->value;
}

double RunInfo::meta_number(std::string_view key, double otherwise) const {
  const std::string text = meta_value(key);
  double value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

double RunInfo::processor_count() const { return meta_number("processors", 0); }

double RunInfo::time_scale() const {
  return meta_value("clock") == "emulated" ? meta_number("time_scale", 1) : 1;
}

// Lines like `100:pipeline=serial`.
std::vector<KnobChange> RunInfo::knob_changes() const {
  std::vector<KnobChange> changes;
  std::istringstream lines(meta_value("changes"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    KnobChange change;
    std::from_chars(line.data(), line.data() + colon, change.step);
    change.text = line.substr(colon + 1);
    changes.push_back(std::move(change));
  }
  return changes;
}

Result<RunInfo> load_run_info(rundb::Reader& reader) {
  RunInfo info;
  ASSIGN_OR_RETURN(info.meta, reader.meta());
  ASSIGN_OR_RETURN(info.links, reader.links());
  ASSIGN_OR_RETURN(info.devices, reader.devices());
  ASSIGN_OR_RETURN(const std::vector<rundb::TrackRow> tracks, reader.tracks());
  for (const rundb::TrackRow& row : tracks) {
    info.tracks[row.id] = {row.id, row.parent_id, row.kind, row.name, {}, {}};
  }
  ASSIGN_OR_RETURN(const std::vector<rundb::TrackLinkRow> crossings, reader.track_links());
  for (const rundb::TrackLinkRow& row : crossings) {
    TrackInfo& track = info.tracks[row.track_id];
    track.links.push_back(row.link_id);
    track.direction = row.direction;
  }
  ASSIGN_OR_RETURN(const auto strings, reader.strings());
  for (const auto& [id, text] : strings) info.strings[id] = text;
  return info;
}

Result<StepData> load_step(rundb::Reader& reader, const RunInfo& info, const rundb::StepRow& step) {
  StepData data;
  data.row = step;
  data.info = &info;
  ASSIGN_OR_RETURN(const std::vector<rundb::SpanRow> rows,
                   reader.spans_between(step.ts, step.ts + step.dur));
  for (const rundb::SpanRow& row : rows) {
    const auto track = info.tracks.find(row.track_id);
    const auto name = info.strings.find(row.name_id);
    if (track == info.tracks.end() || name == info.strings.end()) {
      return make_error(ErrorCode::corrupt, "span {} names a track or string that has no row",
                        row.id);
    }
    data.spans.push_back({.id = row.id,
                          .track = &track->second,
                          .name = &name->second,
                          .submit_ts = row.submit_ts,
                          .ts = row.ts,
                          .end_ts = row.ts + row.dur,
                          .step = static_cast<std::int32_t>(row.step_id),
                          .subgroup = static_cast<std::int32_t>(row.subgroup_id),
                          .device = static_cast<std::int32_t>(row.device_id),
                          .layer = static_cast<std::int32_t>(row.layer_id),
                          .bytes = row.bytes,
                          .padding_bytes = row.padding_bytes});
  }
  ASSIGN_OR_RETURN(const std::vector<rundb::FlowRow> flows,
                   reader.flows_between(step.ts, step.ts + step.dur));
  for (const rundb::FlowRow& row : flows) data.flows.push_back({row.from_span, row.to_span});
  return data;
}

Result<std::vector<rundb::StepRow>> steps_with_operations(
    rundb::Reader& reader, const std::vector<rundb::StepRow>& steps) {
  TimeNs first_ts = std::numeric_limits<TimeNs>::min();
  RETURN_IF_ERROR(reader.each_row("SELECT min(ts) FROM span_run WHERE end_ts > ts",
                                  [&first_ts](std::span<const rundb::Cell> row) {
                                    const auto* ts = std::get_if<std::int64_t>(&row[0]);
                                    if (ts != nullptr) first_ts = *ts;
                                    return ok_status();
                                  }));
  std::vector<rundb::StepRow> kept;
  std::ranges::copy_if(steps, std::back_inserter(kept), [first_ts](const rundb::StepRow& step) {
    return step.ts + step.dur / 4 >= first_ts;  // its first operation begins a little after it
  });
  return kept.empty() ? steps : kept;
}

}  // namespace sluice::analyze
