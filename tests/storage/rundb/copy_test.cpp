// A copy that follows a run database: the same rows with the same ids, whatever is recorded
// meanwhile, and nothing else, whatever the other end sends.

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "storage/rundb/copy_writer.h"
#include "storage/rundb/record_tail.h"
#include "storage/rundb/sample_reader.h"
#include "storage/rundb/span_reader.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::rundb {
namespace {

using Catch::Matchers::Contains;

constexpr std::int64_t kRoom = 1'000'000'000;
constexpr std::int64_t kFirstSampledStep = 5;

// Takes turns until nothing is left; how many began anew.
int follow(RecordTail& tail, std::unique_ptr<CopyWriter>& copy, const std::string& path) {
  int begun_anew = 0;
  for (int i = 0; i < 10'000; ++i) {
    const CopyCursor since = copy == nullptr ? CopyCursor() : copy->cursor();
    const CopyTurn turn = require_ok(tail.next(since));
    if (turn.begins_anew) {
      ++begun_anew;
      if (copy != nullptr) require_ok(copy->close());
      copy.reset();
      copy = require_ok(CopyWriter::create(path, kRoom));
    }
    REQUIRE(copy != nullptr);
    require_ok(copy->write(turn.pieces, turn.cursor));
    if (!turn.has_more) return begun_anew;
  }
  FAIL("the turns have no end");
  return begun_anew;
}

// All that travels, table by table.
std::string content_of(const std::string& path) {
  auto reader = require_ok(Reader::open(path));
  const bool has_samples = require_ok(SampleReader(*reader).has_samples());
  std::string all;
  for (std::size_t table = 0; table < kCopiedTables; ++table) {
    if (is_sample_table(table) && !has_samples) continue;
    const std::string name(copied_table_name(table));
    const char* order = name == "span" || name == "step" ? "id" : "1, 2, 3";
    const bool has_two = name == "meta" || name == "string" || name == "flow";
    all += name + "\n" +
           table_of(*reader,
                    fmt::format("SELECT * FROM {} ORDER BY {}", name, has_two ? "1, 2" : order));
  }
  return all;
}

// What the copy's writer has made from its spans, against what it is made of.
void check_made_of_spans(const std::string& path) {
  auto reader = require_ok(Reader::open(path));
  CHECK(table_of(*reader, "SELECT count(*) FROM span") ==
        table_of(*reader, "SELECT coalesce(sum(last_id - first_id + 1), 0) FROM span_run"));
  CHECK(table_of(*reader, "SELECT count(*) FROM span") ==
        table_of(*reader, "SELECT coalesce(sum(last_id - first_id + 1), 0) FROM span_batch"));
  CHECK(
      table_of(*reader, "SELECT track_id, count(*) FROM span GROUP BY track_id") ==
      table_of(*reader, "SELECT track_id, sum(count) FROM lod WHERE level = 1 GROUP BY track_id"));
}

Facts facts_of(Writer& writer) {
  Facts facts;
  facts.meta = {{"name", "tiny"}, {"text", std::string("a\0b", 3)}, {"started_utc", "2026"}};
  facts.devices = {{.id = 0, .name = "csd0", .kind = "csd", .memory_bytes = 1 << 30}};
  facts.links = {{.id = 0,
                  .name = "host",
                  .read_bytes_per_s = 1e9,
                  .write_bytes_per_s = 2.5e9,
                  .latency_ns = 900,
                  .full_duplex = false}};
  facts.stages = {{.name_id = writer.string_id("read"),
                   .kind = "transfer",
                   .place = "host",
                   .drive_file = "state",
                   .colour = "#4e79a7"}};
  facts.subgroups = {{.id = 0, .first = 0, .count = 5000, .device_id = 0}, {.id = 1, .count = 7}};
  facts.knobs = {{.name = "buffers", .type = "integer", .minimum = 1, .default_value = "2"},
                 {.name = "wire", .type = "word", .default_value = "native"}};
  return facts;
}

// Samples of a step: a function that nobody called before, in a thread with a new name. Ids count
// from those that the file had when its writer opened it.
SampleRows samples_of(std::int64_t step, std::int64_t nth) {
  SampleRows rows;
  rows.threads = {{1, 4711, fmt::format("compute {}", step / 9)}};
  rows.functions = {{2 * nth + 1, "main", "program"},
                    {2 * nth + 2, fmt::format("f{}", step), "lib.so"}};
  rows.calls = {{2 * nth + 1, -1, 2 * nth + 1}, {2 * nth + 2, 2 * nth + 1, 2 * nth + 2}};
  for (TimeNs ts = step * 1000; ts < (step + 1) * 1000; ts += 300) {
    rows.samples.push_back({1, ts, static_cast<std::int32_t>(step % 4), 2 * nth + 2});
    rows.times.push_back({.thread_id = 1, .ts = ts, .dur = 300, .running = 200, .waiting = 100});
  }
  return rows;
}

// A step with rows of each table; those of samples begin later.
Batch rich_step(Writer& writer, std::int64_t step, std::mt19937& random) {
  const std::int64_t count = std::uniform_int_distribution<std::int64_t>(1, 40)(random);
  Batch batch = whole_step(writer, step, count);
  const std::int64_t first = writer.next_span_id();
  const std::vector<TrackLink> links = {{.link_id = 0, .direction = Direction::write}};
  const std::int64_t track =
      writer.track_id(std::nullopt, "device", fmt::format("csd {}", step / 7), links);
  for (SpanRow& span : batch.spans) {
    span.ts += std::int64_t{1} << 50;
    if (span.subgroup_id % 3 == 0) span.status = SpanStatus::failed;
    if (span.subgroup_id * 2 > count) span.track_id = track;
  }
  for (std::int64_t i = 1; i < count; ++i) batch.flows.push_back({first + i - 1, first + i});
  // Into a span of an earlier batch.
  if (first > 3) batch.flows.push_back({first - 1, first - 2});
  const std::int64_t counter = writer.track_id(std::nullopt, "counter", "memory");
  batch.counters.push_back({.track_id = counter, .ts = step, .value = step % 4 == 0 ? NAN : 0.5});
  batch.stats.push_back({"records_dropped", Severity::loss, step % 3, "lost"});
  batch.validations.push_back({.ts = step, .step_id = step, .loss = 1.0 / 3, .tokens = 9});
  batch.modes.push_back({.ts = step, .step_id = step, .line = fmt::format("mode {}", step / 5)});
  if (step % 4 == 1) {
    batch.knob_changes.push_back({.ts = step,
                                  .step_id = step,
                                  .knob = "wire",
                                  .old_value = "1",
                                  .new_value = "2",
                                  .who = "me"});
    batch.lateness.push_back({.step_id = step,
                              .stage = "read",
                              .operations = 4,
                              .late = 1,
                              .modelled_ns = 70,
                              .late_ns = 5});
    batch.verdicts.push_back({.step_id = step, .cause = "drive", .share = 0.75});
    batch.clock_offsets.push_back({.at = OffsetAt::end, .ts = -step, .offset = -3, .bound = 2});
  }
  if (step >= kFirstSampledStep) batch.samples = samples_of(step, step - kFirstSampledStep);
  return batch;
}

TEST_CASE("a copy has the rows of its run, with their ids, while the run is recorded") {
  for (const std::int64_t rows_max : {7, 50, 1 << 16}) {
    CAPTURE(rows_max);
    const TempFolder folder;
    std::mt19937 random(19);
    auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
    auto reader = require_ok(Reader::open(folder.file("run.db")));
    RecordTail tail(*reader, rows_max);
    std::unique_ptr<CopyWriter> copy;
    int begun_anew = follow(tail, copy, folder.file("copy.db"));
    require_ok(writer->write_facts(facts_of(*writer)));
    for (std::int64_t step = 0; step < 60; ++step) {
      require_ok(writer->append(rich_step(*writer, step, random)));
      if (random() % 3 == 0) begun_anew += follow(tail, copy, folder.file("copy.db"));
      // A step may be recorded again.
      if (step % 20 == 19) {
        Batch again;
        again.steps.push_back({.id = step - 9, .ts = step * 1000 + 1, .dur = 77, .loss = 2});
        require_ok(writer->append(again));
      }
    }
    require_ok(writer->close(std::array{StatRow{"last", Severity::info, 1, "the last word"}}));
    begun_anew += follow(tail, copy, folder.file("copy.db"));
    CHECK(begun_anew == 1);
    require_ok(copy->close());
    CHECK(content_of(folder.file("copy.db")) == content_of(folder.file("run.db")));
    check_made_of_spans(folder.file("copy.db"));
    CHECK_FALSE(std::filesystem::exists(folder.file("copy.db-wal")));
  }
}

TEST_CASE("a copy goes on where it was, also after it was not closed") {
  const TempFolder folder;
  std::mt19937 random(3);
  auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
  require_ok(writer->write_facts(facts_of(*writer)));
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  std::unique_ptr<CopyWriter> copy;
  for (std::int64_t step = 0; step < 12; ++step) {
    require_ok(writer->append(rich_step(*writer, step, random)));
    RecordTail tail(*reader);
    const int begun_anew = follow(tail, copy, folder.file("copy.db"));
    CHECK(begun_anew == (step == 0 ? 1 : 0));
    const CopyCursor cursor = copy->cursor();
    copy.reset();
    copy = require_ok(CopyWriter::open(folder.file("copy.db"), kRoom));
    CHECK(copy->cursor() == cursor);
  }
  copy.reset();
  CHECK(content_of(folder.file("copy.db")) == content_of(folder.file("run.db")));
}

TEST_CASE("a run that is resumed, or replaced by another, begins its copy anew") {
  const TempFolder folder;
  std::mt19937 random(5);
  std::unique_ptr<CopyWriter> copy;
  {
    auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
    require_ok(writer->write_facts(facts_of(*writer)));
    for (std::int64_t step = 0; step < 9; ++step)
      require_ok(writer->append(rich_step(*writer, step, random)));
  }
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  RecordTail tail(*reader);
  CHECK(follow(tail, copy, folder.file("copy.db")) == 1);
  auto resumed = require_ok(Writer::open_append(folder.file("run.db"), 6));
  CHECK(follow(tail, copy, folder.file("copy.db")) == 1);
  CHECK(content_of(folder.file("copy.db")) == content_of(folder.file("run.db")));
  require_ok(resumed->write_facts(facts_of(*resumed)));
  require_ok(resumed->append(rich_step(*resumed, 6, random)));
  CHECK(follow(tail, copy, folder.file("copy.db")) == 0);
  CHECK(content_of(folder.file("copy.db")) == content_of(folder.file("run.db")));

  auto other = require_ok(Writer::create(folder.file("other.db"), IfExists::refuse));
  auto other_reader = require_ok(Reader::open(folder.file("other.db")));
  RecordTail other_tail(*other_reader);
  CHECK(follow(other_tail, copy, folder.file("copy.db")) == 1);
  CHECK(content_of(folder.file("copy.db")) == content_of(folder.file("other.db")));
}

TEST_CASE("what is thinned after it was copied stays in the copy") {
  const TempFolder folder;
  auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
  writer->set_retention({.full_steps = 5});
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  RecordTail tail(*reader);
  std::unique_ptr<CopyWriter> copy;
  for (std::int64_t step = 0; step < 40; ++step) {
    Batch batch = whole_step(*writer, step, 30);
    batch.samples = samples_of(step, step);
    require_ok(writer->append(batch));
    follow(tail, copy, folder.file("copy.db"));
  }
  require_ok(writer->close());
  follow(tail, copy, folder.file("copy.db"));
  require_ok(copy->close());
  auto copied = require_ok(Reader::open(folder.file("copy.db")));
  CHECK(table_of(*copied, "SELECT count(*) FROM span") == "1200\n");
  CHECK(table_of(*reader, "SELECT count(*) < 400 FROM span") == "1\n");
  CHECK(table_of(*copied, "SELECT count(*) FROM call_sample") == "160\n");
  CHECK(table_of(*reader, "SELECT count(*) < 60 FROM call_sample") == "1\n");
  check_made_of_spans(folder.file("copy.db"));

  // A copy that comes later has what is left.
  std::unique_ptr<CopyWriter> late;
  RecordTail late_tail(*reader);
  follow(late_tail, late, folder.file("late.db"));
  require_ok(late->close());
  CHECK(content_of(folder.file("late.db")) == content_of(folder.file("run.db")));
}

TEST_CASE("a file that is no copy is left as it is") {
  const TempFolder folder;
  {
    auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
    require_ok(writer->close());
  }
  for (const auto& result : {CopyWriter::open(folder.file("run.db"), kRoom).map([](auto&&) {}),
                             CopyWriter::create(folder.file("run.db"), kRoom).map([](auto&&) {})}) {
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code() == ErrorCode::config);
    CHECK_THAT(result.error().message(), Contains("is no copy that follows a run"));
  }
  CHECK_FALSE(CopyWriter::open(folder.file("none.db"), kRoom).ok());
}

class Sent {
 public:
  Sent() {
    std::mt19937 random(8);
    auto writer = require_ok(Writer::create(folder_.file("run.db"), IfExists::refuse));
    require_ok(writer->write_facts(facts_of(*writer)));
    for (std::int64_t step = 0; step < 10; ++step)
      require_ok(writer->append(rich_step(*writer, step, random)));
    auto reader = require_ok(Reader::open(folder_.file("run.db")));
    turn = require_ok(RecordTail(*reader).next({}));
    copy = require_ok(CopyWriter::create(folder_.file("copy.db"), kRoom));
  }
  CopiedPiece& of(std::string_view table) {
    return *std::ranges::find_if(turn.pieces, [table](const CopiedPiece& piece) {
      return copied_table_name(piece.table) == table;
    });
  }
  std::string refusal() {
    const Status status = copy->write(turn.pieces, turn.cursor);
    REQUIRE_FALSE(status.ok());
    CHECK(copy->cursor() == CopyCursor());
    return status.error().message();
  }
  std::string path() const { return folder_.file("copy.db"); }

 private:
  TempFolder folder_;

 public:
  CopyTurn turn;
  std::unique_ptr<CopyWriter> copy;
};

TEST_CASE("rows that no run has are refused, and nothing of their turn is written") {
  Sent sent;
  SECTION("a piece twice") {
    sent.turn.pieces.push_back(sent.of("span"));
    CHECK_THAT(sent.refusal(), Contains("ids ascend"));
  }
  SECTION("a name twice") {
    sent.turn.pieces.push_back(sent.of("string"));
    CHECK_THAT(sent.refusal(), Contains("string"));
  }
  SECTION("operations that are taken back") {
    sent.of("span").replaces = true;
    CHECK_THAT(sent.refusal(), Contains("it only grows"));
  }
  SECTION("a function of samples twice") {
    sent.turn.pieces.push_back(sent.of("sampled_function"));
    CHECK_THAT(sent.refusal(), Contains("sampled_function"));
  }
  SECTION("samples that are taken back") {
    sent.of("call_sample").replaces = true;
    CHECK_THAT(sent.refusal(), Contains("it only grows"));
  }
  SECTION("a table that there is not") {
    sent.of("span").table = kCopiedTables;
    CHECK_THAT(sent.refusal(), Contains("and there is none"));
  }
  SECTION("a row that is cut") {
    sent.of("step").bytes.pop_back();
    CHECK_THAT(sent.refusal(), Contains("a piece of table step is cut"));
  }
  SECTION("rows of another table") {
    sent.of("step").table = sent.of("track").table;
    CHECK_THAT(sent.refusal(), Contains("table track"));
  }
  auto reader = require_ok(Reader::open(sent.path()));
  CHECK(table_of(*reader,
                 "SELECT (SELECT count(*) FROM span) + (SELECT count(*) FROM string) + "
                 "(SELECT count(*) FROM step)") == "0\n");
}

TEST_CASE("a copy does not grow beyond what was allowed") {
  const TempFolder folder;
  Sent sent;
  auto small = require_ok(CopyWriter::create(folder.file("small.db"), 50'000));
  const Status status = small->write(sent.turn.pieces, sent.turn.cursor);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::config);
  CHECK_THAT(status.error().message(), Contains("--size-max"));
  require_ok(small->close());
  CHECK(std::filesystem::file_size(folder.file("small.db")) < 200'000);
}

TEST_CASE("bytes that are damaged on the way never do harm") {
  Sent sent;
  std::mt19937 random(77);
  const std::vector<CopiedPiece> whole = sent.turn.pieces;
  int refused = 0;
  int taken = 0;
  for (int round = 0; round < 3000; ++round) {
    CopiedPiece piece = whole[random() % whole.size()];
    for (std::uint32_t change = random() % 4; change > 0 && !piece.bytes.empty(); --change) {
      const std::size_t at = random() % piece.bytes.size();
      if (random() % 4 == 0)
        piece.bytes.erase(at, random() % 9);
      else
        piece.bytes[at] = static_cast<char>(random());
    }
    if (random() % 16 == 0) piece.table = random() % (kCopiedTables + 2);
    if (random() % 16 == 0) piece.replaces = !piece.replaces;
    CopyCursor cursor = sent.copy->cursor();
    cursor.run = 1;
    (sent.copy->write(std::array{piece}, cursor).ok() ? taken : refused) += 1;
  }
  CHECK(refused > 500);
  CHECK(taken > 100);
  require_ok(sent.copy->close());
  auto reader = require_ok(Reader::open(sent.path()));
  CHECK(table_of(*reader, "PRAGMA integrity_check") == "ok\n");
  require_ok(SpanReader(*reader).spans_between(-(std::int64_t{1} << 60), std::int64_t{1} << 60));
  require_ok(reader->steps());
}

}  // namespace
}  // namespace sluice::rundb
