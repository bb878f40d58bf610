#include "profiler/analyze/answers.h"

#include <algorithm>

#include "base/figure_text.h"
#include "profiler/analyze/stretches.h"
#include "storage/rundb/loss_counts.h"
#include "storage/rundb/query.h"

namespace sluice::analyze {
namespace {

std::string counted(std::size_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

// All answers but those of the losses and of prediction.
class Answering {
 public:
  Answering(rundb::Reader& reader, const RunInfo& info, const std::vector<rundb::StepRow>& steps,
            const RunAnalysis& analysis)
      : reader_(reader), info_(info), steps_(steps), analysis_(analysis) {}

  Result<std::vector<Answer>> all() {
    ASSIGN_OR_RETURN(const std::vector<rundb::StatRow> stats, reader_.stats());
    std::vector<Answer> answers = {losses_answer(stats, analysis_.evidence.rows),
                                   mode(),
                                   causes(),
                                   flows(),
                                   links(),
                                   overlap(),
                                   devices(),
                                   lasting_change(),
                                   slow_steps(),
                                   skipped_steps()};
    ASSIGN_OR_RETURN(answers.emplace_back(), knob_changes());
    ASSIGN_OR_RETURN(answers.emplace_back(), counters());
    if (analysis_.lateness.is_emulated) answers.push_back(lateness_answer(analysis_.lateness));
    return answers;
  }

 private:
  std::string steps_looked_at() const { return counted(analysis_.steps.size(), "step"); }

  Answer unknown(std::string of) const {
    return {std::move(of), Outcome::could_not_look, analysis_.why_unknown};
  }

  Answer mode() const {
    if (info_.mode.stretches.empty()) {
      return {"mode", Outcome::could_not_look, "table mode has no rows"};
    }
    if (info_.meta_value("clock").empty()) {
      return {"mode", Outcome::could_not_look, "table meta does not say which clock measured"};
    }
    return {"mode", Outcome::answer, info_.mode.line()};
  }

  Answer causes() const {
    if (!analysis_.has_spans()) return unknown("time by cause");
    return {"time by cause", Outcome::answer,
            fmt::format("{}, {}", counted(analysis_.evidence.operations, "operation"),
                        steps_looked_at())};
  }

  // The path of a step goes by order in time where these are not there.
  Answer flows() const {
    const std::string of = "what set operations off";
    if (!analysis_.has_spans()) return unknown(of);
    if (analysis_.evidence.flows > 0) {
      return {of, Outcome::answer, counted(analysis_.evidence.flows, "flow")};
    }
    const std::string level = info_.value_in_force("record");
    return {of, Outcome::could_not_look,
            level == "transfers" ? "record=transfers keeps no flows; record=all does"
                                 : "table flow has no rows of these steps"};
  }

  Answer links() const {
    if (!analysis_.has_spans()) return unknown("links");
    if (analysis_.links.empty()) {
      return {"links", Outcome::nothing_found,
              "no bytes moved over a link in " + steps_looked_at()};
    }
    std::size_t limitless = 0;
    for (const LinkLoad& load : analysis_.links) limitless += load.bytes_per_s_max > 0 ? 0 : 1;
    if (limitless == analysis_.links.size()) {
      return {"links", Outcome::could_not_look, "table link states no limits"};
    }
    return {"links", Outcome::answer,
            counted(analysis_.links.size(), "direction") + " of links" +
                (limitless == 0 ? "" : fmt::format(", {} without a limit", limitless))};
  }

  Answer overlap() const {
    if (!analysis_.has_spans()) return unknown("overlap");
    if (analysis_.overlap.transfer_ns > 0 && analysis_.overlap.compute_ns > 0) {
      return {"overlap", Outcome::answer, steps_looked_at()};
    }
    return {"overlap", Outcome::nothing_found,
            fmt::format("{} in {}",
                        analysis_.overlap.transfer_ns > 0 ? "nothing computed" : "nothing moved",
                        steps_looked_at())};
  }

  Answer devices() const {
    const std::string of = "balance of devices";
    if (!analysis_.has_spans()) return unknown(of);
    const std::size_t unknown_count = analysis_.evidence.unknown_devices.size();
    if (unknown_count > 0) {
      return {of, Outcome::could_not_look,
              counted(unknown_count, "device") + " of operations without a row in table device"};
    }
    if (analysis_.devices.size() < 2) {
      return {of, Outcome::nothing_found,
              analysis_.devices.empty() ? "the run has no storage devices" : "one device"};
    }
    if (!analysis_.evidence.devices_have_shares) {
      return {of, Outcome::could_not_look,
              "another program's drives: what each was to do is not known"};
    }
    if (imbalance_of(analysis_.devices) < kUneven) {
      return {of, Outcome::nothing_found,
              fmt::format("{} devices, none busy {:.0f} % longer than the mean",
                          analysis_.devices.size(), (kUneven - 1) * 100)};
    }
    return {of, Outcome::answer, counted(analysis_.devices.size(), "device")};
  }

  // "nothing found" cannot be said of steps that are not there.
  Answer nothing_in_steps(std::string of, const std::string& why) const {
    const std::int64_t missing = analysis_.evidence.rows.steps_missing;
    if (missing == 0) return {std::move(of), Outcome::nothing_found, why};
    return {std::move(of), Outcome::could_not_look,
            fmt::format("nothing in {}; {} more have no rows", why, missing)};
  }

  Answer lasting_change() const {
    const std::string of = "lasting change of step time";
    if (!analysis_.trend.changes.empty()) {
      return {of, Outcome::answer, counted(analysis_.trend.changes.size(), "change")};
    }
    if (steps_.size() < 2 * kStretchSteps) {
      return {of, Outcome::could_not_look,
              fmt::format("{}; it takes {}", counted(steps_.size(), "step"), 2 * kStretchSteps)};
    }
    return nothing_in_steps(of, counted(steps_.size(), "step"));
  }

  Answer slow_steps() const {
    const std::size_t count = analysis_.stretch_step_count;
    if (!analysis_.outliers.empty()) {
      return {"slow steps", Outcome::answer, counted(analysis_.outliers.size(), "step")};
    }
    const std::optional<SlowestStep>& slowest = analysis_.slowest;
    if (slowest && slowest->is_beyond_noise) {
      return {"slow steps", Outcome::answer, "with earlier settings: " + slowest->words()};
    }
    const std::string of_steps = count < steps_.size()
                                     ? fmt::format("the last {} of {} steps", count, steps_.size())
                                     : counted(count, "step");
    const std::string and_slowest = slowest ? "; slowest: " + slowest->words() : "";
    if (count < kStretchSteps) {
      return {"slow steps", Outcome::could_not_look,
              fmt::format("{}; it takes {}{}", of_steps, kStretchSteps, and_slowest)};
    }
    return nothing_in_steps("slow steps", of_steps + and_slowest);
  }

  Answer skipped_steps() const {
    if (analysis_.skipped_count > 0) {
      return {"skipped steps", Outcome::answer, counted(analysis_.skipped_count, "step")};
    }
    if (steps_.empty()) return {"skipped steps", Outcome::could_not_look, "no step has ended"};
    return nothing_in_steps("skipped steps", counted(steps_.size(), "step"));
  }

  Result<Answer> knob_changes() const {
    const std::string of = "what changes of knobs brought";
    ASSIGN_OR_RETURN(const std::int64_t knobs, count_of("SELECT count(*) FROM knob"));
    ASSIGN_OR_RETURN(const std::int64_t changes, count_of("SELECT count(*) FROM knob_change"));
    const auto named = static_cast<std::int64_t>(info_.knob_changes.size());
    if (changes > named) {
      return Answer{of, Outcome::could_not_look,
                    fmt::format("{} of {} changes name a knob without a row in table knob",
                                changes - named, changes)};
    }
    if (knobs == 0) {
      return Answer{of, Outcome::could_not_look,
                    "table knob has no rows: what may change is not known"};
    }
    if (changes == 0) {
      return Answer{of, Outcome::nothing_found,
                    fmt::format("no change is recorded in {}", counted(steps_.size(), "step"))};
    }
    const std::size_t stretches = countable_stretches(info_, steps_);
    if (stretches < 2) {
      return Answer{of, Outcome::could_not_look,
                    fmt::format("{}, and too few steps before or after; it takes {} on each side",
                                counted(info_.knob_changes.size(), "change"), kSettlingSteps + 1)};
    }
    return Answer{of, Outcome::answer, counted(info_.knob_changes.size(), "change")};
  }

  Result<Answer> counters() const {
    const auto tracks = std::ranges::count_if(
        info_.tracks, [](const auto& entry) { return entry.second.kind == "counter"; });
    // As many as there are tracks are found among the first samples; the rest is not read.
    ASSIGN_OR_RETURN(
        const std::int64_t sampled,
        count_of(fmt::format("SELECT count(*) FROM (SELECT DISTINCT track_id FROM counter "
                             "WHERE track_id IN (SELECT id FROM track WHERE kind = 'counter') "
                             "LIMIT {})",
                             std::max<std::ptrdiff_t>(1, tracks))));
    ASSIGN_OR_RETURN(const std::int64_t any,
                     count_of("SELECT count(*) FROM (SELECT 1 FROM counter LIMIT 1)"));
    if (tracks == 0) {
      return Answer{"counters", Outcome::could_not_look,
                    any > 0 ? "samples have no track that says what they count"
                            : "no counters were recorded"};
    }
    if (sampled >= tracks) {
      return Answer{"counters", Outcome::answer,
                    counted(static_cast<std::size_t>(tracks), "counter")};
    }
    const std::string sampled_words = fmt::format("{} of {} have samples", sampled, tracks);
    ASSIGN_OR_RETURN(const std::string one, unsampled_counter());
    if (one.empty()) {
      return Answer{"counters", Outcome::answer,
                    sampled_words + "; a simulation has none of the recorder's"};
    }
    return Answer{"counters", Outcome::could_not_look, sampled_words + ", " + one + " has none"};
  }

  // The first that should have samples; "": none should. Nobody records a simulation's recorder.
  Result<std::string> unsampled_counter() const {
    const bool is_simulated = info_.meta_value("clock") == "simulated";
    ASSIGN_OR_RETURN(const rundb::TextTable table,
                     rundb::Query(reader_).text_table(fmt::format(
                         "SELECT name FROM track WHERE kind = 'counter' {}AND id NOT IN (SELECT "
                         "track_id FROM counter) ORDER BY id LIMIT 1",
                         is_simulated ? "AND name NOT LIKE 'recorder%' " : "")));
    return table.rows.empty() ? std::string() : table.rows[0][0];
  }

  Result<std::int64_t> count_of(const std::string& sql) const {
    std::int64_t count = 0;
    RETURN_IF_ERROR(rundb::Query(reader_).each_row(sql, [&count](std::span<const rundb::Cell> row) {
      if (const auto* integer = std::get_if<std::int64_t>(&row[0])) count = *integer;
      return ok_status();
    }));
    return count;
  }

  rundb::Reader& reader_;
  const RunInfo& info_;
  const std::vector<rundb::StepRow>& steps_;
  const RunAnalysis& analysis_;
};

}  // namespace

Answer losses_answer(std::span<const rundb::StatRow> stats, const rundb::Completeness& rows) {
  const std::string of = "lost records";
  if (!rows.is_whole()) {
    return {of, Outcome::answer, rows.missing_words() + " have no rows in this file any more"};
  }
  std::size_t lossy = 0;
  std::size_t counts = 0;
  for (const rundb::StatRow& stat : stats) {
    if (stat.severity == rundb::Severity::info) continue;
    counts += 1;
    lossy += stat.value > 0 ? 1 : 0;
  }
  if (lossy > 0) return {of, Outcome::answer, counted(lossy, "kind") + " of loss"};
  for (const std::string_view name : rundb::kLossCounts) {
    if (std::ranges::find(stats, name, &rundb::StatRow::name) == stats.end()) {
      return {
          of, Outcome::could_not_look,
          stats.empty() ? "table stat has no rows" : fmt::format("table stat has no row {}", name)};
    }
  }
  return {of, Outcome::nothing_found,
          fmt::format("{} of losses, all 0{}", counted(counts, "count"),
                      rows.are_rows_counted ? fmt::format("; all {} operations have rows",
                                                          format_whole(rows.operations_recorded))
                                            : "; rows were not counted")};
}

std::string losses_sentence(const Answer& losses) {
  switch (losses.outcome) {
    case Outcome::answer:
      return fmt::format("Not all of the run is in the record: {}.", losses.why);
    case Outcome::nothing_found:
      return "Nothing was lost while recording.";
    case Outcome::could_not_look:
      return fmt::format("Whether something was lost is not known: {}.", losses.why);
  }
  return "";
}

Answer turn_next_answer(const PredictedChanges& predicted) {
  const std::string of = "what to turn next";
  if (!predicted.unavailable.empty()) return {of, Outcome::could_not_look, predicted.unavailable};
  const TurnNext next = turn_next(predicted);
  const std::string why = fmt::format(
      "{} simulated",
      counted(static_cast<std::size_t>(std::max(0, predicted.simulated_count)), "change"));
  const bool has_any = !next.now.empty() || !next.another_run.empty() || next.together;
  return {of, has_any ? Outcome::answer : Outcome::nothing_found, why};
}

Result<std::vector<Answer>> answers_of(rundb::Reader& reader, const RunInfo& info,
                                       const std::vector<rundb::StepRow>& steps,
                                       const RunAnalysis& analysis) {
  return Answering(reader, info, steps, analysis).all();
}

}  // namespace sluice::analyze
