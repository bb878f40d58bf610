// Whole runs, written as a collector writes them and analysed from the file.

#include "profiler/analyze/run_analysis.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "profiler/analyze/advice.h"
#include "profiler/analyze/step_verdicts.h"
#include "storage/rundb/writer.h"
#include "tests/made_stages.h"
#include "tests/profiler/analyze/made_step.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::analyze {
namespace {

using rundb::require_ok;

// Steps of 100 ms: 60 ms of backward, then a device's read of 40 ms, each scaled by what is given.
class MadeRun {
 public:
  explicit MadeRun(const std::string& path)
      : writer_(require_ok(rundb::Writer::create(path, rundb::IfExists::refuse))) {
    require_ok(writer_->write_facts(
        {.meta = {{"method", "csd"},
                  {"pipeline", "nbuffer"},
                  {"buffers", "3"},
                  {"devices", "1"},
                  {"clock", "real"}},
         .devices = {{.id = 0, .name = "csd0", .kind = "csd"}},
         .links =
             {{.id = 0, .name = "csd0.drive", .read_bytes_per_s = 1e9, .write_bytes_per_s = 1e9}},
         .stages = made_stages(*writer_)}));
    compute_ = writer_->track_id({}, "compute", "compute");
    const std::int64_t device = writer_->track_id({}, "device", "csd0");
    read_ = writer_->track_id(device, "device", "csd0 state_read",
                              std::array{rundb::TrackLink{0, rundb::Direction::read}});
  }

  bool is_skipped = false;  // the next steps, whose loss this is
  double loss = 3;
  void add_step(double compute_factor, double read_factor) {
    const auto compute = static_cast<TimeNs>(60 * kMs * compute_factor);
    const auto read = static_cast<TimeNs>(40 * kMs * read_factor);
    rundb::Batch batch;
    batch.spans.push_back({.track_id = compute_,
                           .name_id = writer_->string_id("backward"),
                           .submit_ts = now_,
                           .ts = now_,
                           .dur = compute,
                           .step_id = step_});
    batch.spans.push_back({.track_id = read_,
                           .name_id = writer_->string_id("state_read"),
                           .submit_ts = now_ + compute,
                           .ts = now_ + compute,
                           .dur = read,
                           .step_id = step_,
                           .subgroup_id = 0,
                           .device_id = 0,
                           .bytes = read});
    batch.steps.push_back({.id = step_,
                           .ts = now_,
                           .dur = compute + read,
                           .loss = loss,
                           .tokens = 10,
                           .skipped = is_skipped});
    require_ok(writer_->append(batch));
    now_ += compute + read;
    step_ += 1;
  }
  void keep(const std::vector<rundb::VerdictRow>& verdicts) {
    require_ok(writer_->append({.verdicts = verdicts}));
  }
  void change_knob(std::int64_t step) {
    require_ok(writer_->write_facts({.knobs = {{.name = "buffers", .type = "integer"}}}));
    require_ok(writer_->append({.knob_changes = {{0, step, "buffers", "3", "4", "settings"}}}));
  }
  void close() { require_ok(writer_->close()); }

 private:
  std::unique_ptr<rundb::Writer> writer_;
  std::int64_t compute_ = 0;
  std::int64_t read_ = 0;
  std::int64_t step_ = 0;
  TimeNs now_ = 1000;
};

RunAnalysis run_analysis_of(const std::string& path) {
  const auto reader = require_ok(rundb::Reader::open(path));
  const RunInfo info = require_ok(load_run_info(*reader));
  return require_ok(analyze_run(*reader, info));
}

}  // namespace

TEST_CASE("the shares of a run are the sums of its steps' paths, to the microsecond") {
  const rundb::TempFolder folder;
  MadeRun made(folder.file("run.db"));
  for (int s = 0; s < 12; ++s) made.add_step(1 + 0.013 * (s % 3), 1 + 0.007 * (s % 5));
  made.close();
  const auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  const RunInfo info = require_ok(load_run_info(*reader));
  const RunAnalysis analysis = require_ok(analyze_run(*reader, info));
  REQUIRE(analysis.steps.size() >= 8);
  std::array<double, kCauseCount> on_path_ns{};
  double all_ns = 0;
  double most = 0;
  std::int64_t step_of_most = -1;
  for (const rundb::StepRow& row : require_ok(reader->steps())) {
    if (std::ranges::count(analysis.steps, row.id) == 0) continue;
    const StepData step = require_ok(load_step(*reader, info, row));
    for (const PathPiece& piece : verdict_of(step).path) {
      on_path_ns[index_of(piece.cause)] += static_cast<double>(piece.dur);
    }
    all_ns += static_cast<double>(row.dur);
    const double share = verdict_of(step).share_of(Cause::read);
    if (share > most) step_of_most = row.id;
    most = std::max(most, share);
  }
  CHECK(analysis.step_of_most[index_of(Cause::read)] == step_of_most);
  CHECK_FALSE(analysis.step_of_most[index_of(Cause::commit)].has_value());
  for (std::size_t c = 0; c < kCauseCount; ++c) {
    INFO(cause_name(static_cast<Cause>(c)));
    CHECK(std::abs(on_path_ns[c] - analysis.share[c] * all_ns) < 1000);
  }
  CHECK(on_path_ns[index_of(Cause::read)] > 0);
}

TEST_CASE("shares of a run are those of its steps") {
  const rundb::TempFolder folder;
  MadeRun run(folder.file("run.db"));
  for (int i = 0; i < 40; ++i) run.add_step(1, 1);
  run.close();
  const RunAnalysis analysis = run_analysis_of(folder.file("run.db"));
  CHECK(analysis.step_count == 40);
  CHECK(analysis.steps.size() == 20);
  CHECK(analysis.steps.front() == 2);
  CHECK(analysis.steps.back() == 39);
  CHECK(analysis.dur == 100 * kMs);
  CHECK(analysis.share[index_of(Cause::compute)] == Approx(0.6));
  CHECK(analysis.share[index_of(Cause::read)] == Approx(0.4));
  CHECK(std::accumulate(analysis.share.begin(), analysis.share.end(), 0.0) == Approx(1));
  REQUIRE(analysis.links.size() == 1);
  CHECK(analysis.links[0].bytes == 40 * kMs);
  CHECK(analysis.links[0].share == Approx(0.4));
  CHECK(analysis.overlap.achieved() == 0);
}

TEST_CASE("steps that were skipped, and a loss that is lost, are told before anything else") {
  const rundb::TempFolder folder;
  const auto told = [&](const char* name, int good, int skipped, int lost) {
    MadeRun run(folder.file(name));
    for (int i = 0; i < good; ++i) run.add_step(1, 1);
    run.is_skipped = true;
    for (int i = 0; i < skipped; ++i) {
      if (i >= skipped - lost) run.loss = std::numeric_limits<double>::quiet_NaN();
      run.add_step(1, 0.1);
    }
    run.close();
    return remarks(run_analysis_of(folder.file(name)));
  };
  const std::vector<Remark> many = told("many.db", 2, 10, 4);
  CHECK(many[0].text == "From step 9 on the loss is not finite.");
  CHECK(many[0].step == 8);
  CHECK(many[0].is_warning);
  CHECK(
      many[1].text ==
      "10 of 12 steps were skipped for overflow, the last 10 among them: they changed no weight.");
  CHECK(many[1].is_warning);
  CHECK(told("one.db", 30, 1, 0)[0].text ==
        "1 of 31 steps was skipped for overflow: it changed no weight.");
  CHECK_FALSE(told("again.db", 30, 1, 0)[0].is_warning);
  for (const Remark& finding : told("none.db", 12, 0, 0)) {
    CHECK_THAT(finding.text, !Catch::Contains("skipped") && !Catch::Contains("finite"));
  }
}

TEST_CASE("what a run's steps take now is told from what they took, and from one that stalled") {
  const rundb::TempFolder folder;
  MadeRun run(folder.file("run.db"));
  for (int i = 0; i < 30; ++i) run.add_step(1, 1);
  for (int i = 0; i < 30; ++i) run.add_step(1, i == 20 ? 9 : 2);
  run.close();
  const RunAnalysis analysis = run_analysis_of(folder.file("run.db"));
  CHECK(analysis.dur == 140 * kMs);
  CHECK(analysis.share[index_of(Cause::read)] == Approx(80.0 / 140));
  CHECK(analysis.change_steps == std::vector<std::int64_t>{30});
  REQUIRE(analysis.outliers.size() == 1);
  CHECK(analysis.outliers[0].step == 50);
  CHECK(analysis.outliers[0].cause == Cause::read);
  CHECK(analysis.outliers[0].more_ns == 280 * kMs);

  std::string text;
  for (const Remark& finding : remarks(analysis)) text += finding.text + "\n";
  CHECK_THAT(text, Catch::StartsWith("57 % of a step is reading state and gradients from drives"));
  CHECK_THAT(text, Catch::Contains("Since step 31 a step takes 40 % longer"));
  CHECK_THAT(text, Catch::Contains("Step 51 took 420 ms, 280 ms more than others"));
}

TEST_CASE("three slow steps are told, and the others are counted") {
  const rundb::TempFolder folder;
  MadeRun run(folder.file("run.db"));
  for (int i = 0; i < 80; ++i) run.add_step(1, i > 0 && i % 10 == 0 ? 9 : 1);
  run.close();
  const RunAnalysis analysis = run_analysis_of(folder.file("run.db"));
  CHECK(analysis.outlier_count == 7);
  std::string text;
  for (const Remark& finding : remarks(analysis)) text += finding.text + "\n";
  std::size_t told = 0;
  for (std::size_t at = 0; (at = text.find("more than others", at)) != text.npos; ++at) told += 1;
  CHECK(told == 3);
  CHECK_THAT(text, Catch::Contains("4 more steps took clearly longer than others with the same "
                                   "settings."));
}

TEST_CASE("slow steps from before the last change are not told beside today's") {
  const rundb::TempFolder folder;
  MadeRun run(folder.file("run.db"));
  for (int i = 0; i < 30; ++i) run.add_step(1, i == 10 ? 9 : 1);
  run.change_knob(30);
  for (int i = 0; i < 30; ++i) run.add_step(1, i == 15 ? 9 : 2);
  run.close();
  const RunAnalysis analysis = run_analysis_of(folder.file("run.db"));
  CHECK(analysis.trend.outliers == std::vector<std::size_t>{10, 45});
  REQUIRE(analysis.outliers.size() == 1);
  CHECK(analysis.outliers[0].step == 45);
}

TEST_CASE("the slowest step is named beside the median, within the noise or beyond it") {
  const rundb::TempFolder folder;
  MadeRun run(folder.file("run.db"));
  // Steps scatter so much that twice as long is no outlier.
  for (int i = 0; i < 60; ++i)
    run.add_step(i % 3 == 0 ? 0.4 : 1.0 + 0.4 * (i % 2), i == 19 ? 4 : 1);
  run.close();
  const RunAnalysis analysis = run_analysis_of(folder.file("run.db"));
  CHECK(analysis.outliers.empty());
  REQUIRE(analysis.slowest.has_value());
  CHECK(analysis.slowest->step == 19);
  CHECK_FALSE(analysis.slowest->is_beyond_noise);
  CHECK(analysis.slowest->dur == 244 * kMs);
  CHECK(analysis.slowest->typical_dur == 100 * kMs);
  REQUIRE(analysis.slowest->more.size() == 2);
  CHECK(analysis.slowest->more[0].cause == Cause::read);
  CHECK(analysis.slowest->causes_words() ==
        "reading state and gradients from drives 160 ms instead of 40 ms, forward and backward "
        "84 ms instead of 60 ms");
  const auto answer = std::ranges::find(analysis.answers, "slow steps", &Answer::of);
  CHECK(answer->outcome == Outcome::nothing_found);
  CHECK_THAT(answer->why, Catch::Contains("58 of 60 steps; slowest: step 20 took 244 ms, 144 ms "
                                          "more than step ") &&
                              Catch::EndsWith("within the noise"));
  const std::vector<Remark> found = remarks(analysis);
  CHECK(std::ranges::count(found, 19, &Remark::step) == 1);
  CHECK_FALSE(std::ranges::find(found, 19, &Remark::step)->is_warning);
}

TEST_CASE("a slow step with earlier settings is told beside steps with its own") {
  const rundb::TempFolder folder;
  MadeRun run(folder.file("run.db"));
  for (int i = 0; i < 30; ++i) run.add_step(1, i == 10 ? 9 : 1);
  run.change_knob(30);
  for (int i = 0; i < 8; ++i) run.add_step(5, 5);
  run.close();
  const RunAnalysis analysis = run_analysis_of(folder.file("run.db"));
  CHECK(analysis.outliers.empty());
  REQUIRE(analysis.slowest.has_value());
  CHECK(analysis.slowest->step == 10);
  CHECK(analysis.slowest->is_beyond_noise);
  CHECK(analysis.slowest->typical_dur == 100 * kMs);
  CHECK(analysis.slowest->more[0].ns == 360 * kMs);
  CHECK(std::ranges::find(analysis.answers, "slow steps", &Answer::of)->outcome == Outcome::answer);
  const std::vector<Remark> found = remarks(analysis);
  const auto said = std::ranges::find(found, 10, &Remark::step);
  REQUIRE(said != found.end());
  CHECK(said->is_warning);
  CHECK_THAT(said->text, Catch::StartsWith("Slowest: step 11 took 420 ms, 320 ms more than step "));
}

TEST_CASE("steps that all take the same have no slowest") {
  const rundb::TempFolder folder;
  MadeRun run(folder.file("run.db"));
  for (int i = 0; i < 10; ++i) run.add_step(1, 1);
  run.close();
  CHECK_FALSE(run_analysis_of(folder.file("run.db")).slowest.has_value());
}

TEST_CASE("what is suggested follows from the cause and from what the run has set") {
  const rundb::TempFolder folder;
  MadeRun run(folder.file("run.db"));
  for (int i = 0; i < 10; ++i) run.add_step(1, 1);
  run.close();
  const auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  RunInfo info = require_ok(load_run_info(*reader));
  info.meta.push_back({"model", "name = \"made\""});  // a run of ours
  const RunAnalysis analysis = require_ok(analyze_run(*reader, info));
  std::vector<std::string> settings;
  for (const Suggestion& suggestion : suggestions(analysis, info)) {
    settings.push_back(suggestion.setting);
  }
  CHECK(settings == std::vector<std::string>{"buffers=6", "devices=2"});
  // A change of a knob counts, not what the run began with.
  info.knob_changes.push_back(
      {.step_id = 2, .knob = "buffers", .old_value = "3", .new_value = "6", .who = "set"});
  CHECK(suggestions(analysis, info).front().setting == "buffers=12");
  std::ranges::find(info.meta, "pipeline", &rundb::MetaRow::key)->value = "serial";
  CHECK(suggestions(analysis, info).front().setting == "pipeline=nbuffer");
  // A program that we did not train has none of our settings.
  std::erase_if(info.meta, [](const rundb::MetaRow& row) { return row.key == "model"; });
  CHECK(suggestions(analysis, info).empty());
}

TEST_CASE("runs of no step, of one, and without operations are analysed as far as they go") {
  const rundb::TempFolder folder;
  MadeRun(folder.file("none.db")).close();
  CHECK(run_analysis_of(folder.file("none.db")).steps.empty());
  CHECK(remarks(run_analysis_of(folder.file("none.db"))).empty());

  MadeRun one(folder.file("one.db"));
  one.add_step(1, 1);
  one.close();
  CHECK(run_analysis_of(folder.file("one.db")).steps == std::vector<std::int64_t>{0});

  const auto writer =
      require_ok(rundb::Writer::create(folder.file("steps.db"), rundb::IfExists::refuse));
  require_ok(writer->append({.steps = {{.id = 0, .ts = 5, .dur = 50, .loss = std::nan("")}}}));
  require_ok(writer->close());
  const RunAnalysis bare = run_analysis_of(folder.file("steps.db"));
  CHECK_FALSE(bare.has_spans());
  CHECK_THAT(remarks(bare).front().text, Catch::Contains("operations were not recorded"));
}

TEST_CASE("verdicts are kept by step, and read as they were computed") {
  const rundb::TempFolder folder;
  MadeRun run(folder.file("run.db"));
  for (int i = 0; i < 10; ++i) run.add_step(1, i < 5 ? 1 : 2);
  const auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  const RunInfo info = require_ok(load_run_info(*reader));
  const auto rows = require_ok(compute_verdicts(*reader, info, 3));
  CHECK(std::ranges::count(rows, 3, &rundb::VerdictRow::step_id) == 2);  // compute and read
  CHECK(std::ranges::count(rows, 2, &rundb::VerdictRow::step_id) == 0);
  CHECK(require_ok(stored_verdicts(*reader, 0)).empty());
  run.keep(rows);
  run.keep(rows);  // once more changes nothing
  const auto stored = require_ok(stored_verdicts(*reader, 0));
  REQUIRE(stored.size() == 7);
  for (const auto& [step, shares] : stored) {
    const rundb::StepRow row = require_ok(reader->steps())[static_cast<std::size_t>(step)];
    const StepData data = require_ok(load_step(*reader, info, row));
    CHECK(shares == verdict_of(data).share);
    CHECK(std::accumulate(shares.begin(), shares.end(), 0.0) == Approx(1));
  }
  CHECK(require_ok(stored_verdicts(*reader, 8)).size() == 2);
  // The last steps of a run with more operations than are looked at.
  const auto few = require_ok(compute_verdicts(*reader, info, 0, 5));
  CHECK(few.front().step_id == 9);
  CHECK(std::ranges::count(few, 0, &rundb::VerdictRow::step_id) == 0);
}

TEST_CASE("steps before a change of a knob are not typical ones") {
  const rundb::TempFolder folder;
  MadeRun run(folder.file("run.db"));
  for (int i = 0; i < 20; ++i) run.add_step(1, 1);
  run.change_knob(10);
  const RunAnalysis analysis = run_analysis_of(folder.file("run.db"));
  CHECK(analysis.steps.front() == 12);
}

TEST_CASE("a track's label says as much of its route as tells it from others") {
  const rundb::TempFolder folder;
  auto writer = require_ok(rundb::Writer::create(folder.file("run.db"), rundb::IfExists::refuse));
  require_ok(writer->write_facts({.links = {{.id = 0, .name = "host"}, {.id = 1, .name = "a"}}}));
  const std::int64_t device = writer->track_id({}, "device", "csd0");
  const auto track = [&](const char* name, std::int64_t link) {
    return writer->track_id(device, "device", name,
                            std::array{rundb::TrackLink{link, rundb::Direction::read}});
  };
  const std::int64_t over_host = track("csd0 state_read over host, drive", 0);
  const std::int64_t inside = track("csd0 state_read over drive, internal", 1);
  const std::int64_t alone = track("csd0 load_state over host, drive", 0);
  require_ok(writer->append({}));
  require_ok(writer->close());
  auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  const RunInfo info = require_ok(load_run_info(*reader));
  CHECK(info.tracks.at(over_host).label == "csd0 state_read \u00b7 host");
  CHECK(info.tracks.at(inside).label == "csd0 state_read \u00b7 internal");
  CHECK(info.tracks.at(alone).label == "csd0 load_state");
  CHECK(info.tracks.at(device).label == "csd0");
}

}  // namespace sluice::analyze
