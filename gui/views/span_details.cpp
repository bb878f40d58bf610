#include "gui/views/span_details.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "gui/data/span_lookup.h"
#include "gui/data/step_paths.h"
#include "gui/widgets/figures.h"

namespace sluice::gui {
namespace {

// One place more than tables have: of a single span somebody compares it with another one.
std::string exact_time_text(TimeNs dur_ns) {
  const auto ns = static_cast<double>(dur_ns);
  if (std::abs(ns) >= 1e9) return fmt::format("{:.6f}\u2009s", ns / 1e9);
  if (std::abs(ns) >= 1e6) return fmt::format("{:.3f}\u2009ms", ns / 1e6);
  if (std::abs(ns) >= 1e3) return fmt::format("{:.3f}\u2009us", ns / 1e3);
  return fmt::format("{}\u2009ns", dur_ns);
}

std::string place_words(const RunFacts& facts, const rundb::SpanRow& row) {
  std::string text = facts.string_of(row.name_id);
  if (row.device_id >= 0) text += ", " + facts.device_name(row.device_id);
  if (row.layer_id >= 0) text += fmt::format(", layer {}", row.layer_id);
  if (row.subgroup_id >= 0) text += fmt::format(", subgroup {}", row.subgroup_id);
  return text;
}

class Lines {
 public:
  Lines(const RunPieces& pieces, const rundb::SpanRow& row)
      : pieces_(pieces), facts_(pieces.facts()), row_(row) {}

  std::vector<DetailLine> all() {
    add_times();
    add_bytes();
    add_place();
    add_rank();
    add_path();
    add("span id", std::to_string(row_.id));
    return std::move(lines_);
  }

 private:
  void add(const char* label, std::string text) { lines_.push_back({label, std::move(text)}); }

  void add_times() {
    const rundb::StepRow* step = step_at(pieces_.steps(), row_.ts);
    if (step != nullptr) add("step", step_text(step->id));
    if (row_.step_id >= 0 && (step == nullptr || step->id != row_.step_id))
      add("work of step", step_text(row_.step_id));
    std::string start = exact_time_text(row_.ts - pieces_.run->begin_ts);
    if (step != nullptr) start += fmt::format(", {} into the step", time_text(row_.ts - step->ts));
    add("start", std::move(start));
    add("duration", exact_time_text(row_.dur));
    add("waited before", exact_time_text(std::max<TimeNs>(0, row_.ts - row_.submit_ts)));
  }

  void add_bytes() {
    if (row_.bytes > 0) {
      add("bytes", grouped_text(row_.bytes) +
                       (row_.padding_bytes > 0
                            ? fmt::format(" and {} of padding", grouped_text(row_.padding_bytes))
                            : ""));
      const double rate = static_cast<double>(row_.bytes + row_.padding_bytes) * 1e9 /
                          static_cast<double>(std::max<TimeNs>(1, row_.dur));
      const TrackFacts* track = facts_.track(row_.track_id);
      const double limit = track == nullptr ? 0 : track->limit_bytes_per_s;
      // Others may have been under way over the same link: no share of its limit.
      add("bandwidth", limit > 0 ? fmt::format("{} alone; the limit of all is {}", rate_text(rate),
                                               rate_text(limit))
                                 : rate_text(rate));
    }
    const std::string note = facts_.info.clock_note();
    const std::string clock = facts_.info.meta_value("clock");
    if (!note.empty() || !clock.empty()) add("clock", note.empty() ? clock + " clock" : note);
  }

  void add_place() {
    const TrackFacts* track = facts_.track(row_.track_id);
    if (track != nullptr)
      add("track", track->name.empty() ? track->group : track->group + ", " + track->name);
    if (row_.device_id >= 0) add("device", facts_.device_name(row_.device_id));
    if (row_.layer_id >= 0) add("layer", std::to_string(row_.layer_id));
    if (row_.subgroup_id >= 0) add("subgroup", std::to_string(row_.subgroup_id));
  }

  void add_rank() {
    const SpanRank* rank = pieces_.rank.get();
    const bool is_there = rank != nullptr && rank->span_id == row_.id;
    add("rank",
        is_there ? rank_words(*rank, facts_.string_of(row_.name_id)) : "being counted\u2026");
  }

  void add_path() {
    const StepPaths* paths = pieces_.paths.get();
    if (paths == nullptr || paths->is_too_wide) return;
    std::map<std::pair<std::int64_t, analyze::Cause>, TimeNs> sums;
    for (const SpanOnPath& span : paths->of_span(row_.id))
      sums[{span.step, span.cause}] += span.dur;
    std::string text;
    for (const auto& [of, dur] : sums) {
      if (!text.empty()) text += "; ";
      text += fmt::format("{} of step {}, as {}", time_text(dur), step_text(of.first),
                          analyze::cause_label(of.second));
    }
    // Whether it is on none is known where the paths of all the steps that it touches are there.
    const auto covers = [this](const std::shared_ptr<const StepPath>& step) {
      return step->ts < row_.ts + row_.dur && step->end_ts > row_.ts;
    };
    if (text.empty() && std::ranges::any_of(paths->steps, covers) && paths->is_complete)
      text = "not on it";
    if (!text.empty()) add("critical path", std::move(text));
  }

  const RunPieces& pieces_;
  const RunFacts& facts_;
  const rundb::SpanRow& row_;
  std::vector<DetailLine> lines_;
};

DetailLink cause_link(const RunFacts& facts, const rundb::SpanRow& row,
                      const rundb::SpanRow& chosen) {
  const TimeNs before_ns = chosen.ts - (row.ts + row.dur);
  return {row, fmt::format("{}: {}, ended {} {}", place_words(facts, row), time_text(row.dur),
                           time_text(std::abs(before_ns)),
                           before_ns >= 0 ? "before this began" : "after this began")};
}

DetailLink effect_link(const RunFacts& facts, const rundb::SpanRow& row,
                       const rundb::SpanRow& chosen) {
  const TimeNs after_ns = row.ts - (chosen.ts + chosen.dur);
  return {row, fmt::format("{}: {}, began {} {}", place_words(facts, row), time_text(row.dur),
                           time_text(std::abs(after_ns)),
                           after_ns >= 0 ? "after this ended" : "before this ended")};
}

// Thin spaces are for eyes; a search in a text finds plain ones.
std::string plain(std::string text) {
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"\u2009", " "}, {"\u2026", "..."}, {"\u2212", "-"}}) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at))
      text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace

const rundb::StepRow* step_at(const std::vector<rundb::StepRow>& steps, TimeNs ts) {
  const auto behind = std::ranges::upper_bound(steps, ts, {}, &rundb::StepRow::ts);
  if (behind == steps.begin()) return nullptr;
  const rundb::StepRow& step = *std::prev(behind);
  return ts < step.ts + step.dur ? &step : nullptr;
}

std::string rank_words(const SpanRank& rank, const std::string& name) {
  const std::string all = fmt::format("{} {}", grouped_text(rank.count), name);
  if (rank.count <= 1) return "the only " + name;
  if (rank.shorter_count == 0 && rank.longer_count == 0) return "as long as all of " + all;
  if (rank.longer_count == 0) return "the longest of " + all;
  if (rank.shorter_count == 0) return "the shortest of " + all;
  const double share = static_cast<double>(rank.shorter_count) / static_cast<double>(rank.count);
  // 99.97 % is not all of them.
  const double floor = std::floor(share * 1000) / 10;
  const int digits = floor > 99 || floor < 1 ? 1 : 0;
  return fmt::format("longer than {:.{}f}\u2009% of {}", digits == 1 ? floor : std::floor(floor),
                     digits, all);
}

SpanDetails details_of(const RunPieces& pieces, const ChosenSpan& chosen) {
  const RunFacts& facts = pieces.facts();
  SpanDetails details{.span_id = chosen.row.id,
                      .name = facts.string_of(chosen.row.name_id),
                      .colour = facts.stage_colour(chosen.row.name_id),
                      .is_failed = chosen.row.status == rundb::SpanStatus::failed,
                      .lines = Lines(pieces, chosen.row).all(),
                      .causes = {},
                      .effects = {}};
  for (const FlowEnd& flow : chosen.flows) {
    if (flow.is_cause)
      details.causes.push_back(cause_link(facts, flow.row, chosen.row));
    else
      details.effects.push_back(effect_link(facts, flow.row, chosen.row));
  }
  return details;
}

std::string details_text(const SpanDetails& details) {
  std::string text = details.name + (details.is_failed ? " (failed)" : "") + "\n";
  for (const DetailLine& line : details.lines)
    text += fmt::format("{}: {}\n", line.label, line.text);
  for (const DetailLink& link : details.causes)
    text += fmt::format("set off by: {} (span {})\n", link.text, link.row.id);
  for (const DetailLink& link : details.effects)
    text += fmt::format("set off: {} (span {})\n", link.text, link.row.id);
  return plain(std::move(text));
}

std::string details_question(std::int64_t span_id) {
  return fmt::format(
      "SELECT span.id, string.value AS name, track.name AS track, ts, dur, ts - submit_ts AS "
      "waited,\n  bytes, step_id + 1 AS step, device_id, subgroup_id, layer_id\n"
      "FROM span JOIN string ON string.id = name_id JOIN track ON track.id = track_id\n"
      "WHERE span.id IN (SELECT {0} UNION SELECT from_span FROM flow WHERE to_span = {0})",
      span_id);
}

}  // namespace sluice::gui
