// A run that has everything, and what each analysis says when one kind of row after the other is
// gone from its file.

#include "profiler/analyze/answers.h"

#include <array>
#include <catch2/catch.hpp>
#include <map>

#include "profiler/analyze/advice.h"
#include "profiler/analyze/comparison.h"
#include "storage/rundb/loss_counts.h"
#include "tests/made_stages.h"
#include "tests/profiler/analyze/made_step.h"
#include "tests/storage/rundb/changed_rows.h"

namespace sluice::analyze {
namespace {

using rundb::require_ok;

constexpr std::int64_t kSteps = 24;

struct Tracks {
  std::int64_t compute = 0;
  std::array<std::int64_t, 2> read = {};
  std::int64_t memory = 0;
};

void add_step(rundb::Writer& writer, const Tracks& tracks, std::int64_t step) {
  const TimeNs ts = step * 100 * kMs + 1000;
  rundb::Batch batch;
  // In the order of tracks, as a batch has them.
  batch.spans.push_back({.id = step * 3 + 1,
                         .track_id = tracks.compute,
                         .name_id = writer.string_id("backward"),
                         .submit_ts = ts,
                         .ts = ts,
                         .dur = 60 * kMs,
                         .step_id = step,
                         .layer_id = 0});
  for (std::int64_t d = 0; d < 2; ++d) {
    batch.spans.push_back({.id = step * 3 + 2 + d,
                           .track_id = tracks.read[static_cast<std::size_t>(d)],
                           .name_id = writer.string_id("state_read"),
                           .submit_ts = ts + 50 * kMs,
                           .ts = ts + 50 * kMs,
                           .dur = 50 * kMs,
                           .step_id = step,
                           .subgroup_id = d,
                           .device_id = d,
                           .bytes = 1000});
  }
  batch.flows.push_back({.from_span = step * 3 + 1, .to_span = step * 3 + 2});
  batch.counters.push_back({.track_id = tracks.memory, .ts = ts, .value = 5});
  batch.steps.push_back({.id = step, .ts = ts, .dur = 100 * kMs, .loss = 3, .tokens = 10});
  if (step == 0) {
    for (const std::string_view name : rundb::kLossCounts)
      batch.stats.push_back({std::string(name), rundb::Severity::loss, 0, "of a kind"});
    batch.modes.push_back({ts, 0, "csd \u00b7 nbuffer"});
  }
  if (step == 12) batch.knob_changes.push_back({ts, step, "buffers", "3", "4", "settings"});
  require_ok(writer.append(batch));
}

std::string whole_run(const std::string& path) {
  auto writer = require_ok(rundb::Writer::create(path, rundb::IfExists::refuse));
  require_ok(writer->write_facts(
      {.meta = {{"model", "tiny"},
                {"method", "csd"},
                {"clock", "real"},
                {"record", "all"},
                {"buffers", "3"}},
       .devices = {{.id = 0, .name = "csd0", .kind = "csd"},
                   {.id = 1, .name = "csd1", .kind = "csd"}},
       .links =
           {{.id = 0, .name = "csd0.drive", .read_bytes_per_s = 1e9, .write_bytes_per_s = 1e9},
            {.id = 1, .name = "csd1.drive", .read_bytes_per_s = 1e9, .write_bytes_per_s = 1e9}},
       .stages = made_stages(*writer),
       .knobs = {{.name = "buffers", .type = "integer"}}}));
  Tracks tracks;
  tracks.compute = writer->track_id({}, "compute", "compute");
  for (std::int64_t d = 0; d < 2; ++d) {
    const std::string name = fmt::format("csd{}", d);
    tracks.read[static_cast<std::size_t>(d)] =
        writer->track_id(writer->track_id({}, "device", name), "device", name + " state_read",
                         std::array{rundb::TrackLink{d, rundb::Direction::read}});
  }
  tracks.memory = writer->track_id({}, "counter", "memory used (bytes)");
  for (std::int64_t step = 0; step < kSteps; ++step) add_step(*writer, tracks, step);
  require_ok(writer->close());
  return path;
}

using Outcomes = std::map<std::string, Outcome>;

Outcomes outcomes_of(const std::vector<Answer>& answers) {
  Outcomes outcomes;
  for (const Answer& answer : answers) {
    if (answer.is_of_finding) continue;  // findings are looked for in planted_test.cpp
    CHECK_FALSE(answer.why.empty());
    outcomes[answer.of] = answer.outcome;
  }
  return outcomes;
}

RunAnalysis analysis_of(const std::string& path) {
  const auto reader = require_ok(rundb::Reader::open(path));
  const RunInfo info = require_ok(load_run_info(*reader));
  return require_ok(analyze_run(*reader, info));
}

Outcomes operations(Outcome outcome) {
  return {{"time by cause", outcome},
          {"what set operations off", outcome},
          {"links", outcome},
          {"overlap", outcome},
          {"balance of devices", outcome}};
}

Outcomes with(Outcomes outcomes, const Outcomes& others) {
  for (const auto& [of, outcome] : others) outcomes[of] = outcome;
  return outcomes;
}

constexpr Outcome kBlind = Outcome::could_not_look;

// With everything there.
Outcomes of_whole() {
  return with(operations(Outcome::answer), {{"lost records", Outcome::nothing_found},
                                            {"mode", Outcome::answer},
                                            {"balance of devices", Outcome::nothing_found},
                                            {"lasting change of step time", Outcome::nothing_found},
                                            {"slow steps", Outcome::nothing_found},
                                            {"skipped steps", Outcome::nothing_found},
                                            {"what changes of knobs brought", Outcome::answer},
                                            {"counters", Outcome::answer}});
}

struct Damage {
  std::string sql;
  Outcomes changed;  // beside the whole run
};

std::vector<Damage> damages() {
  const Outcomes blind = operations(kBlind);
  const Outcomes lost = with(blind, {{"lost records", Outcome::answer}});
  const Outcomes no_steps = {
      {"lasting change of step time", kBlind}, {"slow steps", kBlind}, {"skipped steps", kBlind}};
  const Outcomes fewer_steps = with(no_steps, {{"lost records", Outcome::answer}});
  return {
      {"DELETE FROM stat", {{"lost records", kBlind}}},
      {"DELETE FROM stat WHERE name = 'records_dropped_ring_full'", {{"lost records", kBlind}}},
      {"UPDATE stat SET value = 1 WHERE name = 'records_dropped_ring_full'",
       {{"lost records", Outcome::answer}}},
      {"DELETE FROM meta", {{"mode", kBlind}, {"balance of devices", kBlind}}},
      {"DELETE FROM mode", {{"mode", kBlind}}},
      {"DELETE FROM string", blind},
      {"DELETE FROM track", with(blind, {{"counters", kBlind}})},
      {"DELETE FROM span", lost},
      {"DELETE FROM span WHERE name_id = (SELECT id FROM string WHERE value = 'backward')", lost},
      {"DELETE FROM span WHERE name_id = (SELECT id FROM string WHERE value = 'state_read')", lost},
      {"DELETE FROM span WHERE id = 40", lost},
      {"DELETE FROM span WHERE id > 70", lost},
      {"DELETE FROM span_run", lost},
      {"DELETE FROM span_run WHERE first_id > 60", lost},
      {"DELETE FROM span_batch", lost},
      {"DELETE FROM flow", {{"what set operations off", kBlind}}},
      {"DELETE FROM link", blind},
      {"DELETE FROM link WHERE id = 1", blind},
      {"DELETE FROM track_link", blind},
      {"DELETE FROM device", {{"balance of devices", kBlind}}},
      {"DELETE FROM device WHERE id = 0", {{"balance of devices", kBlind}}},
      {"UPDATE link SET read_bytes_per_s = 0, write_bytes_per_s = 0", {{"links", kBlind}}},
      {"DELETE FROM stage", {}},
      {"DELETE FROM step", with(lost, with(no_steps, {{"what changes of knobs brought", kBlind}}))},
      {"DELETE FROM step WHERE id < 4", fewer_steps},
      {"DELETE FROM step WHERE id IN (15, 16)", fewer_steps},
      {"DELETE FROM step WHERE id > 20", fewer_steps},
      {"DELETE FROM knob", {{"what changes of knobs brought", kBlind}}},
      {"DELETE FROM knob_change", {{"what changes of knobs brought", Outcome::nothing_found}}},
      {"DELETE FROM counter", {{"counters", kBlind}}},
      {"DELETE FROM lod", {}},
      {"DELETE FROM long_span", {}},
      {"UPDATE step SET skipped = 1 WHERE id = 3", {{"skipped steps", Outcome::answer}}},
      {"DELETE FROM validation", {}},
      {"DELETE FROM clock_snapshot", {}},
      {"DELETE FROM clock_offset", {}},
      {"DELETE FROM subgroup", {}},
      {"DELETE FROM verdict", {}},
  };
}

}  // namespace

TEST_CASE("each analysis says which of the three it is when one kind of row is gone") {
  const rundb::TempFolder folder;
  const std::string whole = whole_run(folder.file("whole.db"));
  CHECK(outcomes_of(analysis_of(whole).answers) == of_whole());
  for (const Damage& damage : damages()) {
    CAPTURE(damage.sql);
    const std::string path = folder.file("damaged.db");
    std::filesystem::copy_file(whole, path, std::filesystem::copy_options::overwrite_existing);
    rundb::change_rows(path, damage.sql);
    const RunAnalysis analysis = analysis_of(path);
    CHECK(outcomes_of(analysis.answers) == with(of_whole(), damage.changed));
    const bool is_known = !damage.changed.contains("time by cause");
    CHECK(analysis.has_spans() == is_known);
    CHECK(analysis.links.empty() == !is_known);
    CHECK(analysis.devices.empty() == (!is_known || damage.sql == "DELETE FROM device"));
    // The healthy sentence is for what was looked at.
    CHECK((losses_sentence(analysis.answers.front()) == "Nothing was lost while recording.") ==
          !damage.changed.contains("lost records"));
  }
}

TEST_CASE("names that no stage explains are told beside the shares") {
  const rundb::TempFolder folder;
  const std::string path = whole_run(folder.file("run.db"));
  rundb::change_rows(path, "DELETE FROM stage");
  std::string text;
  for (const Remark& finding : remarks(analysis_of(path))) text += finding.text + "\n";
  CHECK_THAT(text, Catch::Contains("Table stage does not say what backward and 1 more are"));
}

TEST_CASE("a level that keeps no operations is the reason, and rows that are gone are another") {
  const rundb::TempFolder folder;
  const std::string path = whole_run(folder.file("run.db"));
  const std::string no_operations =
      "DELETE FROM span; DELETE FROM span_run; DELETE FROM span_batch; DELETE FROM flow;";
  rundb::change_rows(path, no_operations);
  CHECK(analysis_of(path).why_unknown ==
        "record=all was set, but table span has no operations of these steps");
  rundb::change_rows(path, "UPDATE meta SET value = 'steps' WHERE key = 'record'");
  CHECK(analysis_of(path).why_unknown ==
        "operations were not recorded (record=steps); record=transfers or record=all records them");
}

TEST_CASE("a comparison names rows that one of the two lacks") {
  const rundb::TempFolder folder;
  const std::string whole = whole_run(folder.file("whole.db"));
  const std::string other = whole_run(folder.file("other.db"));
  const auto compared = [&] { return outcomes_of(require_ok(compare_runs(whole, other)).answers); };
  CHECK(compared().at("settings that differ") == Outcome::nothing_found);
  CHECK(compared().at("lost records of B") == Outcome::nothing_found);
  rundb::change_rows(other, "DELETE FROM span WHERE id = 7");
  CHECK(compared().at("lost records of B") == Outcome::answer);
  CHECK(compared().at("phases and links") == kBlind);
  rundb::change_rows(other, "DELETE FROM step WHERE id > 1; DELETE FROM meta; DELETE FROM stat");
  CHECK(compared().at("noise") == kBlind);
  CHECK(compared().at("settings that differ") == kBlind);
}

TEST_CASE("a run that skipped steps is not taken for a fast one without a word") {
  const rundb::TempFolder folder;
  const std::string whole = whole_run(folder.file("whole.db"));
  const std::string other = whole_run(folder.file("other.db"));
  const auto cautions = [&] {
    return fmt::format(
        "{}", fmt::join(require_ok(compare_runs(whole, other)).comparability.cautions, "\n"));
  };
  CHECK_THAT(cautions(), !Catch::Contains("overflow"));
  rundb::change_rows(other, "UPDATE step SET skipped = 1 WHERE id > 3");
  CHECK_THAT(cautions(), Catch::Contains("B skipped 20 of its 24 steps for overflow"));
}

TEST_CASE("what to turn next is one of the three, too") {
  CHECK(turn_next_answer({.unavailable = "too few steps"}).words() ==
        "What to turn next: could not look (too few steps).");
  CHECK(turn_next_answer({.simulated_count = 9}).words() ==
        "What to turn next: nothing found (9 changes simulated).");
  PredictedChanges one;
  one.simulated_count = 9;
  one.each.push_back({.settings = {"buffers=4"}, .from = {"buffers=2"}, .change = -0.1});
  CHECK(turn_next_answer(one).outcome == Outcome::answer);
}

TEST_CASE("rows of a file with too many operations are not counted, and that is said") {
  const rundb::TempFolder folder;
  const auto reader = require_ok(rundb::Reader::open(whole_run(folder.file("run.db"))));
  const rundb::Completeness rows = require_ok(rundb::completeness_of(*reader, 10));
  CHECK_FALSE(rows.are_rows_counted);
  CHECK(rows.is_whole());
  const std::vector<rundb::StatRow> stats = require_ok(reader->stats());
  CHECK_THAT(losses_answer(stats, rows).why, Catch::Contains("rows were not counted"));
}

}  // namespace sluice::analyze
