// Each planted slow step has the planted cause with the right reason, device, link and operations
// as evidence; healthy ones have none. SLUICE_SLOW_STEPS_FOLDER=DIR keeps the databases there, with
// slow.csv: name, first and last step, cause, kind, operation, device, link; and in ranks/ those of
// a run with a step in which a rank is late.

#include "profiler/analyze/step_explanation.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "storage/rundb/span_reader.h"
#include "tests/profiler/analyze/slow_steps.h"
#include "tests/profiler/made_ranks.h"

namespace sluice::analyze {
namespace {

using rundb::require_ok;

struct OpenRecord {
  explicit OpenRecord(const std::string& path)
      : reader(require_ok(rundb::Reader::open(path))),
        info(require_ok(load_run_info(*reader))),
        steps(require_ok(reader->steps())) {}
  StepExplanation explain(StepRange range) {
    return require_ok(explain_steps(*reader, info, steps, range));
  }
  std::unique_ptr<rundb::Reader> reader;
  RunInfo info;
  std::vector<rundb::StepRow> steps;
};

// For whoever reads why a check failed.
std::string all_words(const StepExplanation& explanation) {
  std::string text = explanation.words() + "\n" + explanation.why_unknown + "\n";
  for (const std::string& note : explanation.notes) text += note + "\n";
  for (const ExplainedCause& cause : explanation.causes) {
    text += explanation.words_of(cause);
    if (cause.reason)
      text += fmt::format(" [{}] {}", reason_name(cause.reason->kind), cause.reason->words);
    text += "\n";
  }
  return text;
}

const ExplainedCause* cause_of(const StepExplanation& explanation, Cause cause) {
  const auto found = std::ranges::find(explanation.causes, cause, &ExplainedCause::cause);
  return found == explanation.causes.end() ? nullptr : &*found;
}

// All evidence is of the step, and of the operation that is named.
void check_spans(OpenRecord& record, const StepReason& reason, StepRange steps) {
  CHECK(reason.spans.size() <= kReasonSpansMax);
  CHECK((!reason.spans.empty() || reason.kind == ReasonKind::nothing_running));
  for (const std::int64_t id : reason.spans) {
    require_ok(
        rundb::SpanReader(*record.reader).each_span_of_ids(id, id, [&](const rundb::SpanRow& span) {
          CHECK(span.step_id >= steps.first);
          CHECK(span.step_id <= steps.last);
          const std::string& name = record.info.strings.at(span.name_id);
          const bool is_wait = record.info.tracks.at(span.track_id).is_waiting();
          if (reason.kind != ReasonKind::slower_link && !is_wait) CHECK(name == reason.operation);
        }));
  }
}

void check_slow(OpenRecord& record, const SlowStep& slow, const StepExplanation& explanation) {
  CHECK(explanation.has_usual());
  CHECK(explanation.is_beyond_noise);
  CHECK(explanation.more_ns() > 0);
  const ExplainedCause* cause = cause_of(explanation, slow.cause);
  REQUIRE(cause != nullptr);
  CHECK(cause == &explanation.causes.front());
  CHECK_FALSE(cause->is_within_noise);
  REQUIRE(cause->reason.has_value());
  const StepReason& reason = *cause->reason;
  CHECK(explanation.first_reason() == &reason);
  CHECK(reason_name(reason.kind) == reason_name(slow.kind));
  if (!slow.operation.empty()) CHECK(reason.operation == slow.operation);
  CHECK(reason.device == slow.device);
  if (!slow.link.empty()) CHECK(reason.link == slow.link);
  CHECK(reason.words.ends_with("."));
  for (const std::string& named : {slow.device, slow.operation})
    CHECK(reason.words.find(named) != std::string::npos);
  check_spans(record, reason, slow.steps);
  // Nothing else is blamed: causes with a reason are those that were planted.
  for (const ExplainedCause& other : explanation.causes) {
    if (other.reason) CHECK((other.cause == slow.cause || other.cause == slow.second));
  }
  if (slow.second != Cause::count_) {
    const ExplainedCause* second = cause_of(explanation, slow.second);
    REQUIRE(second != nullptr);
    CHECK(second->reason.has_value());
  }
  const bool has_note = std::ranges::any_of(explanation.notes, [&](const std::string& note) {
    return note.find(slow.note) != std::string::npos;
  });
  CHECK((slow.note.empty() || has_note));
}

std::string kept_folder(const rundb::TempFolder& temporary) {
  const char* kept = std::getenv("SLUICE_SLOW_STEPS_FOLDER");
  return kept != nullptr ? kept : temporary.file(".");
}

}  // namespace

TEST_CASE("planted slow steps have their cause, the right reason and its operations") {
  const rundb::TempFolder temporary;
  const std::string folder = kept_folder(temporary);
  std::ofstream list(folder + "/slow.csv");
  const std::vector<SlowStep> all = write_slow_steps(folder);
  CHECK(all.size() >= 20);
  for (const SlowStep& slow : all) {
    list << slow.name << "," << slow.steps.first + 1 << "," << slow.steps.last + 1 << ","
         << cause_name(slow.cause) << "," << reason_name(slow.kind) << "," << slow.operation << ","
         << slow.device << "," << slow.link << "\n";
    OpenRecord record(folder + "/" + slow.name + ".db");
    const StepExplanation explanation = record.explain(slow.steps);
    INFO(slow.name);
    INFO(all_words(explanation));
    check_slow(record, slow, explanation);
  }
}

TEST_CASE("healthy steps have no reason, and a quicker one has what it took less") {
  const rundb::TempFolder temporary;
  const std::string folder = kept_folder(temporary);
  for (const HealthyStep& healthy : write_healthy_steps(folder)) {
    OpenRecord record(folder + "/" + healthy.name + ".db");
    const StepExplanation explanation = record.explain({healthy.step, healthy.step});
    INFO(healthy.name);
    INFO(all_words(explanation));
    CHECK_FALSE(explanation.is_beyond_noise);
    CHECK(explanation.first_reason() == nullptr);
    CHECK(explanation.usual_count >= 20);
    CHECK_FALSE(explanation.causes.empty());
    for (const ExplainedCause& cause : explanation.causes) CHECK(cause.is_within_noise);
  }
  OpenRecord record(folder + "/quicker.db");
  const StepExplanation quicker = record.explain({20, 20});
  INFO(all_words(quicker));
  CHECK(quicker.is_beyond_noise);
  CHECK(quicker.more_ns() < 0);
  CHECK(quicker.first_reason() == nullptr);
  CHECK(quicker.causes[0].cause == Cause::compute);
  CHECK(quicker.causes[1].cause == Cause::read);
  CHECK(quicker.causes[1].more_ns() < 0);
  CHECK(quicker.words().find(" less than the median of ") != std::string::npos);
}

TEST_CASE("a step in which nothing was running has the host's counters that changed meanwhile") {
  const rundb::TempFolder folder;
  write_slow_steps(folder.file("."));
  for (const auto& [name, has_change] :
       {std::pair("memory_taken", true), {"nothing_running", false}}) {
    OpenRecord record(folder.file(std::string(name) + ".db"));
    const StepExplanation explanation = record.explain({20, 20});
    REQUIRE(explanation.first_reason() != nullptr);
    const std::string& words = explanation.first_reason()->words;
    INFO(words);
    CHECK((words.find("; meanwhile resident memory (bytes) fell to 1.00 GB, usually at least 3.00 "
                      "GB.") != std::string::npos) == has_change);
  }
}

TEST_CASE("the causes of a step add up to it") {
  const rundb::TempFolder folder;
  for (const SlowStep& slow : write_slow_steps(folder.file("."))) {
    OpenRecord record(folder.file(slow.name + ".db"));
    const StepExplanation explanation = record.explain(slow.steps);
    TimeNs sum = 0;
    for (const ExplainedCause& cause : explanation.causes) sum += cause.ns;
    INFO(slow.name);
    CHECK(std::abs(sum - explanation.dur) < 100);
  }
}

TEST_CASE("a step in which a rank is late names the rank and what it took longer for") {
  const rundb::TempFolder folder;
  MadeRanks made;
  made.step_count = 20;
  made.only_step = 12;
  const std::vector<std::string> paths = write_made_ranks(folder, made);
  if (const char* kept = std::getenv("SLUICE_SLOW_STEPS_FOLDER")) {
    for (std::size_t rank = 0; rank < paths.size(); ++rank) {
      const auto place = std::filesystem::path(kept) / "ranks" / fmt::format("rank-{}", rank);
      std::filesystem::create_directories(place);
      std::filesystem::copy_file(paths[rank], place / "run.db",
                                 std::filesystem::copy_options::overwrite_existing);
    }
  }
  const std::vector<RankRecord> records = require_ok(open_rank_records(paths));
  const RankRecord& first = records.front();
  const StepExplanation explanation =
      require_ok(explain_steps(*first.reader, *first.info, first.steps, {12, 12}, records));
  INFO(all_words(explanation));
  const StepReason* reason = explanation.first_reason();
  REQUIRE(reason != nullptr);
  CHECK(reason->kind == ReasonKind::late_rank);
  CHECK(reason->rank == 2);
  CHECK(reason->operation == "all_reduce");
  CHECK(reason->words.find("its backward took 40 ms longer") != std::string::npos);
  SECTION("which the record of one rank does not say") {
    const StepExplanation alone =
        require_ok(explain_steps(*first.reader, *first.info, first.steps, {12, 12}));
    REQUIRE(alone.first_reason() != nullptr);
    CHECK(alone.first_reason()->kind == ReasonKind::late_rank);
    CHECK(alone.first_reason()->rank == -1);
  }
}

TEST_CASE("a step that is not there is refused with those that are") {
  const rundb::TempFolder folder;
  write_healthy_steps(folder.file("."));
  OpenRecord record(folder.file("healthy.db"));
  for (const StepRange range :
       {StepRange{30, 30}, StepRange{28, 31}, StepRange{-1, -1}, StepRange{9, 4}}) {
    const auto refused = explain_steps(*record.reader, record.info, record.steps, range);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code() == ErrorCode::config);
    CHECK(refused.error().message().find("the record has 1 to 30") != std::string::npos);
  }
  const auto refused = explain_steps(*record.reader, record.info, {}, {0, 0});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message().find("no step of this run has ended") != std::string::npos);
}

TEST_CASE("the first step stands beside settled ones, and few steps beside nothing") {
  const rundb::TempFolder folder;
  write_healthy_steps(folder.file("."));
  OpenRecord record(folder.file("healthy.db"));
  const StepExplanation first = record.explain({0, 0});
  CHECK(first.has_usual());
  REQUIRE_FALSE(first.notes.empty());
  CHECK(first.notes.front().find("first steps of the record") != std::string::npos);
  record.steps.resize(4);
  const StepExplanation alone = record.explain({3, 3});
  CHECK_FALSE(alone.has_usual());
  CHECK(alone.first_reason() == nullptr);
  CHECK_FALSE(alone.causes.empty());
  CHECK(alone.words().find("Nothing says what is usual") != std::string::npos);
  CHECK(alone.words_of(alone.causes.front()).find("instead") == std::string::npos);
}

TEST_CASE("a step whose operations are not in the record says so, with its time") {
  const rundb::TempFolder folder;
  const auto writer =
      require_ok(rundb::Writer::create(folder.file("steps.db"), rundb::IfExists::refuse));
  require_ok(writer->write_facts({.meta = {{"model", "tiny.toml"}, {"record", "steps"}}}));
  rundb::Batch batch;
  for (std::int64_t i = 0; i < 12; ++i) {
    const TimeNs dur = i == 9 ? 500 : 100;
    batch.steps.push_back({.id = i, .ts = 1000 * i, .dur = dur, .loss = 2, .tokens = 1});
  }
  require_ok(writer->append(batch));
  require_ok(writer->close());
  OpenRecord record(folder.file("steps.db"));
  const StepExplanation explanation = record.explain({9, 9});
  CHECK(explanation.causes.empty());
  CHECK(explanation.is_beyond_noise);
  CHECK(explanation.why_unknown.find("record=steps") != std::string::npos);
}

TEST_CASE("a cause is worth a line by its part of the step, its difference or its reason") {
  StepExplanation step;
  step.dur = 100'000;
  const auto is_worth_it = [&step](TimeNs ns, TimeNs usual_ns) {
    ExplainedCause cause;
    cause.ns = ns;
    cause.usual_ns = usual_ns;
    return step.is_worth_a_line(cause);
  };
  CHECK(is_worth_it(1000, 1000));
  CHECK_FALSE(is_worth_it(999, 999));
  CHECK(is_worth_it(0, 100));
  CHECK(is_worth_it(100, 0));
  CHECK_FALSE(is_worth_it(99, 0));
  ExplainedCause named;
  named.reason.emplace();
  CHECK(step.is_worth_a_line(named));
}

TEST_CASE("the time between two steps is in a note") {
  const rundb::TempFolder folder;
  write_healthy_steps(folder.file("."));
  OpenRecord record(folder.file("healthy.db"));
  for (std::size_t i = 12; i < record.steps.size(); ++i) record.steps[i].ts += 500'000'000;
  const StepExplanation explanation = record.explain({12, 12});
  REQUIRE_FALSE(explanation.notes.empty());
  CHECK(explanation.notes.back().find("since the end of step 12") != std::string::npos);
}

}  // namespace sluice::analyze
