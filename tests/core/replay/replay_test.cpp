// Programs whose times are computed here by a rule of a line or two for a machine of known rates:
// the replay of their records is compared with these rules, on the same machine and on another.

#include "core/replay/what_if_answer.h"
#include "tests/core/replay/made_program.h"

namespace sluice::replay {
namespace {

constexpr int kStepCount = 5;
constexpr int kRounds = 8;  // in a step

TimeNs ns_of(double bytes, double bytes_per_s) {
  return static_cast<TimeNs>(bytes / bytes_per_s * 1e9);
}

ReplayAnswer answer_of(rundb::Reader& reader, const std::vector<std::string>& links = {}) {
  std::vector<Change> changes;
  for (const std::string& text : links)
    changes.push_back(rundb::require_ok(parse_link_change(text)));
  return rundb::require_ok(replay_record(reader, changes));
}

// What a test computes of a program: its record, and how long a step took in it.
struct Made {
  std::unique_ptr<MadeProgram> program;
  double step_seconds = 0;
};

// The steps from the third on are those looked at.
double seconds_of(const std::vector<std::pair<TimeNs, TimeNs>>& steps) {
  return static_cast<double>(steps.back().second - steps.at(2).first) / 1e9 /
         static_cast<double>(steps.size() - 2);
}

// Reads and computes in turn, with work of its own between that nothing records. A read takes 100
// us and its bytes.
Made serial_reader(double bytes_per_s) {
  Made made{.program = std::make_unique<MadeProgram>(std::vector<MadeLink>{{"nvme0.drive"}})};
  const std::int64_t main = made.program->thread("main");
  const std::int64_t reads = made.program->thread("out of nvme0", {"nvme0.drive"}, main);
  std::vector<std::pair<TimeNs, TimeNs>> steps;
  TimeNs now = kMs;
  for (int step = 0; step < kStepCount; ++step) {
    steps.emplace_back(now, now);
    for (int i = 0; i < kRounds; ++i) {
      const double bytes = i % 2 == 0 ? 1e6 : 8e6;
      const TimeNs end = now + 100 * kUs + ns_of(bytes, bytes_per_s);
      made.program->add(reads, "read", now, end, static_cast<std::int64_t>(bytes));
      made.program->add(main, "compute", end + 300 * kUs, end + 2 * kMs);
      now = end + 2 * kMs + 150 * kUs;
    }
    steps.back().second = now;
    made.program->step(step, steps.back().first, now);
  }
  made.step_seconds = seconds_of(steps);
  return made;
}

// A thread that reads into two buffers and one that computes: a read waits for a free buffer.
Made two_buffers(double bytes_per_s) {
  Made made{.program = std::make_unique<MadeProgram>(std::vector<MadeLink>{{"nvme0.drive"}})};
  const std::int64_t reader = made.program->thread("reader", {"nvme0.drive"});
  const std::int64_t worker = made.program->thread("worker");
  std::vector<std::pair<TimeNs, TimeNs>> steps;
  std::vector<TimeNs> computed{0, 0};  // of the buffer's last use
  TimeNs read_end = kMs;
  TimeNs compute_end = kMs;
  for (int step = 0; step < kStepCount; ++step) {
    const TimeNs begin = step == 0 ? kMs : steps.back().second;
    for (std::size_t i = 0; i < kRounds; ++i) {
      const TimeNs read_begin = std::max(read_end, computed[i % 2]);
      read_end = read_begin + ns_of(6e6, bytes_per_s);
      const auto read = made.program->add(reader, "read", read_begin, read_end, 6'000'000);
      const TimeNs compute_begin = std::max(read_end, compute_end);
      compute_end = compute_begin + (i % 3 == 0 ? 4 : 2) * kMs;
      computed[i % 2] = compute_end;
      const auto compute = made.program->add(worker, "compute", compute_begin, compute_end);
      made.program->flow(read, compute);
    }
    steps.emplace_back(begin, compute_end);
    made.program->step(step, begin, compute_end);
  }
  made.step_seconds = seconds_of(steps);
  return made;
}

// Two drives behind one link. Each is read alone, and then both at once: they share the link as
// soon as it gives less than the two.
Made two_drives(double link_bytes_per_s) {
  constexpr double kDrive = 2e9;
  Made made{.program = std::make_unique<MadeProgram>(
                std::vector<MadeLink>{{"host"}, {"nvme0.drive"}, {"nvme1.drive"}})};
  std::array<std::int64_t, 2> reads{};
  for (std::size_t d = 0; d < 2; ++d) {
    const std::string name = std::to_string(d);
    reads[d] = made.program->thread("drive " + name, {"host", "nvme" + name + ".drive"});
  }
  const std::int64_t worker = made.program->thread("worker");
  std::vector<std::pair<TimeNs, TimeNs>> steps;
  TimeNs now = kMs;
  for (int step = 0; step < kStepCount; ++step) {
    const TimeNs begin = now;
    for (int i = 0; i < kRounds; ++i) {
      const double alone = std::min(kDrive, link_bytes_per_s);
      const TimeNs single = now + ns_of(4e6, alone);
      const auto first =
          made.program->add(reads[static_cast<std::size_t>(i % 2)], "read", now, single, 4'000'000);
      const TimeNs both = single + ns_of(8e6, std::min(kDrive, link_bytes_per_s / 2));
      const auto work = made.program->add(worker, "compute", both, both + kMs);
      for (const std::int64_t track : reads) {
        const auto read = made.program->add(track, "read", single, both, 8'000'000);
        made.program->flow(first, read);
        made.program->flow(read, work);
      }
      now = both + kMs;
    }
    steps.emplace_back(begin, now);
    made.program->step(step, begin, now);
  }
  made.step_seconds = seconds_of(steps);
  return made;
}

// Three readers on drives of their own; what combines waits for all of them.
Made fan_in(double slow_bytes_per_s) {
  Made made{.program = std::make_unique<MadeProgram>(
                std::vector<MadeLink>{{"a.drive"}, {"b.drive"}, {"c.drive"}})};
  const std::array<std::string, 3> drives{"a.drive", "b.drive", "c.drive"};
  const std::array<double, 3> rates{slow_bytes_per_s, 2.5e9, 2e9};
  const std::int64_t main = made.program->thread("main");
  std::vector<std::pair<TimeNs, TimeNs>> steps;
  TimeNs now = kMs;
  for (int step = 0; step < kStepCount; ++step) {
    const TimeNs begin = now;
    for (int i = 0; i < kRounds; ++i) {
      std::vector<std::int64_t> ids;
      TimeNs all = now;
      for (std::size_t d = 0; d < 3; ++d) {
        const TimeNs end = now + ns_of(9e6, rates[d]);
        ids.push_back(made.program->add(made.program->thread(drives[d], {drives[d]}), "read", now,
                                        end, 9'000'000));
        all = std::max(all, end);
      }
      const auto combine = made.program->add(main, "combine", all, all + kMs);
      for (const std::int64_t id : ids) made.program->flow(id, combine);
      now = all + kMs;
    }
    steps.emplace_back(begin, now);
    made.program->step(step, begin, now);
  }
  made.step_seconds = seconds_of(steps);
  return made;
}

// A thread hands over a write, computes meanwhile, and waits for the write if it is not done yet.
// Nothing records the wait, and no flow says what ended it.
Made waiting_thread(double bytes_per_s) {
  Made made{.program = std::make_unique<MadeProgram>(std::vector<MadeLink>{{"nvme0.drive"}})};
  const std::int64_t writes = made.program->thread("writer", {"nvme0.drive"});
  const std::int64_t main = made.program->thread("main");
  std::vector<std::pair<TimeNs, TimeNs>> steps;
  TimeNs now = kMs;
  for (int step = 0; step < kStepCount; ++step) {
    const TimeNs begin = now;
    for (int i = 0; i < kRounds; ++i) {
      made.program->add(main, "prepare", now, now + kMs);
      const TimeNs written = now + kMs + ns_of(8e6, bytes_per_s);
      made.program->add(writes, "write", now + kMs, written, 8'000'000);
      made.program->add(main, "compute", now + kMs, now + 3 * kMs);
      const TimeNs waited = std::max(written, now + 3 * kMs);
      made.program->add(main, "finish", waited, waited + kMs);
      now = waited + kMs;
    }
    steps.emplace_back(begin, now);
    made.program->step(step, begin, now);
  }
  made.step_seconds = seconds_of(steps);
  return made;
}

// A thread waits for another's read and then works for a while that nothing records, so that only
// all its pauses together say what it waits for.
Made late_thread(double bytes_per_s) {
  Made made{.program = std::make_unique<MadeProgram>(std::vector<MadeLink>{{"nvme0.drive"}})};
  const std::int64_t reads = made.program->thread("reader", {"nvme0.drive"});
  const std::int64_t main = made.program->thread("main");
  std::vector<std::pair<TimeNs, TimeNs>> steps;
  TimeNs now = kMs;
  for (int step = 0; step < kStepCount; ++step) {
    const TimeNs begin = now;
    for (int i = 0; i < kRounds; ++i) {
      const double bytes = (1 + i % 3) * 4e6;
      const TimeNs read = now + ns_of(bytes, bytes_per_s);
      made.program->add(reads, "read", now, read, static_cast<std::int64_t>(bytes));
      made.program->add(main, "compute", read + 500 * kUs, read + 2 * kMs);
      now = read + 2 * kMs;
    }
    steps.emplace_back(begin, now);
    made.program->step(step, begin, now);
  }
  made.step_seconds = seconds_of(steps);
  return made;
}

struct Case {
  std::string name;
  Made (*make)(double bytes_per_s);
  std::string link;
  double bytes_per_s;
};
const std::vector<Case> kCases = {{"a serial reader", serial_reader, "nvme0.drive", 2e9},
                                  {"a pipeline with two buffers", two_buffers, "drive", 2e9},
                                  {"two drives behind one link", two_drives, "host", 3e9},
                                  {"a fan-in", fan_in, "a.drive", 2e9},
                                  {"a thread that waits", waiting_thread, "drive", 2e9},
                                  {"a thread that goes on later", late_thread, "drive", 2e9}};

TEST_CASE("the replay of a record gives its time again") {
  for (const Case& made_case : kCases) {
    INFO(made_case.name);
    const Made made = made_case.make(made_case.bytes_per_s);
    const ReplayAnswer answer = answer_of(*made.program->reader());
    CHECK(answer.step_count == kStepCount - 2);
    CHECK(answer.recorded_seconds == Approx(made.step_seconds).epsilon(1e-6));
    CHECK(std::abs(answer.error()) < 0.05);
    CHECK(answer.why_not.empty());
  }
}

TEST_CASE("half a link in a replay takes what a record with half a link takes") {
  for (const Case& made_case : kCases) {
    INFO(made_case.name);
    const Made whole = made_case.make(made_case.bytes_per_s);
    const Made half = made_case.make(made_case.bytes_per_s / 2);
    REQUIRE(half.step_seconds > 1.05 * whole.step_seconds);
    const ReplayAnswer answer =
        answer_of(*whole.program->reader(), {made_case.link + "=x0.5", made_case.link + "=x1"});
    REQUIRE(answer.changes.size() == 3);  // and both together
    CHECK(answer.changes[0].step_seconds == Approx(half.step_seconds).epsilon(0.1));
    CHECK(answer.changes[1].step_seconds == Approx(answer.replayed_seconds).epsilon(1e-9));
    CHECK(answer.changes[2].step_seconds == answer.changes[0].step_seconds);
  }
}

TEST_CASE("a faster link in a replay takes what a record with one takes") {
  for (const Case& made_case : kCases) {
    INFO(made_case.name);
    const Made slow = made_case.make(made_case.bytes_per_s / 2);
    const Made fast = made_case.make(made_case.bytes_per_s);
    const ReplayAnswer answer = answer_of(*slow.program->reader(), {made_case.link + "=x2"});
    CHECK(answer.changes.at(0).step_seconds == Approx(fast.step_seconds).epsilon(0.1));
  }
}

// The rest of the cases -------------------------------------------------------------------------

TEST_CASE("a run without steps counts as one, from its first operation to its last") {
  MadeProgram program({{"nvme0.drive"}});
  const std::int64_t reads = program.thread("main", {"nvme0.drive"});
  for (int i = 0; i < 10; ++i) program.add(reads, "read", i * kMs, (i + 1) * kMs, 1'000'000);
  const ReplayAnswer answer = answer_of(*program.reader(), {"drive=x2"});
  CHECK_FALSE(answer.has_steps);
  CHECK(answer.recorded_seconds == Approx(0.01));
  CHECK(answer.replayed_seconds == Approx(0.01));
  CHECK(answer.changes.at(0).step_seconds == Approx(0.005));
  CHECK(answer.changes.at(0).limit.name == "nvme0.drive (read)");
}

TEST_CASE("a record whose time is mostly in no operation is not answered") {
  MadeProgram program({{"nvme0.drive"}});
  const std::int64_t reads = program.thread("main", {"nvme0.drive"});
  for (int i = 0; i < 10; ++i)
    program.add(reads, "read", 3 * i * kMs, (3 * i + 1) * kMs, 1'000'000);
  const ReplayAnswer answer = answer_of(*program.reader(), {"drive=x2"});
  CHECK(answer.why_not.find("no recorded operation was under way") != std::string::npos);
  CHECK(answer.why_not.find("64 %") != std::string::npos);
  CHECK(answer.changes.empty());
}

// Reads that take now 1 ms and now 20 for as many bytes, in no order: no rate explains them, and
// what computes meanwhile waits now for one and now for the other.
TEST_CASE("a record whose links have no rate is not answered") {
  MadeProgram program({{"nvme0.drive"}});
  const std::int64_t main = program.thread("main");
  TimeNs now = 0;
  for (int i = 0; i < 24; ++i) {
    std::vector<std::int64_t> ids;
    TimeNs all = now;
    for (int d = 0; d < 2; ++d) {
      const TimeNs end = now + ((i * 7 + d * 3) % 4 == 0 ? 20 : 1) * kMs;
      const auto reads = program.thread("reader " + std::to_string(d), {"nvme0.drive"});
      ids.push_back(program.add(reads, "read", now, end, 1'000'000));
      all = std::max(all, end);
    }
    const auto use = program.add(main, "use", all, all + kMs);
    for (const std::int64_t id : ids) program.flow(id, use);
    now = all + kMs;
  }
  const ReplayAnswer answer = answer_of(*program.reader(), {"drive=x2"});
  INFO(answer.error());
  CHECK(answer.why_not.find("does not give its time again") != std::string::npos);
  CHECK(answer.changes.empty());
}

TEST_CASE("changes name links and operations that are there, or get the nearest") {
  const auto refusal = [](const std::string& link) {
    const auto reader = two_drives(3e9).program->reader();
    const std::vector<Change> changes{rundb::require_ok(parse_link_change(link))};
    const auto answer = replay_record(*reader, changes);
    REQUIRE_FALSE(answer.ok());
    CHECK(answer.error().code() == ErrorCode::config);
    return answer.error().message();
  };
  CHECK(refusal("hots=x2").find("did you mean 'host'?") != std::string::npos);
  CHECK(refusal("nvme7.drive=x2").find("did you mean 'nvme0.drive'?") != std::string::npos);
  for (const char* wrong : {"host", "host=", "=x2", "host=x", "host=x0", "host=x-1", "host=fast"})
    CHECK_FALSE(parse_link_change(wrong).ok());
  for (const char* wrong : {"read", "read=", "read=0", "read=1.5", "read=-1", "read=nan"})
    CHECK_FALSE(parse_compression(wrong).ok());
}

TEST_CASE("a link that was never full has no rate to be doubled, and may be given one") {
  MadeProgram program({{"host"}, {"nvme0.drive"}, {"nvme1.drive"}});
  for (int d = 0; d < 2; ++d) {
    const std::string name = "nvme" + std::to_string(d);
    const std::int64_t reads = program.thread(name, {"host", name + ".drive"});
    for (int i = 0; i < 10; ++i)
      program.add(reads, "read", (2 * i + d) * kMs, (2 * i + d + 1) * kMs, 2'000'000);
  }
  const auto reader = program.reader();
  const std::vector<Change> doubled{rundb::require_ok(parse_link_change("host=x2"))};
  const auto refused = replay_record(*reader, doubled);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message().find("is not known") != std::string::npos);
  const ReplayAnswer answer = answer_of(*reader, {"host=1GB/s"});
  CHECK(answer.changes.at(0).step_seconds > 1.9 * answer.replayed_seconds);
}

TEST_CASE("operations move less, or are left out, and drives are more") {
  const Made made = serial_reader(2e9);
  const auto reader = made.program->reader();
  const std::vector<Change> changes{
      rundb::require_ok(parse_compression("read=0.5")),
      {.kind = ChangeKind::drives, .text = "--drives 2", .name = {}, .count = 2},
      {.kind = ChangeKind::without, .text = "--without compute", .name = "compute"}};
  const ReplayAnswer answer = rundb::require_ok(replay_record(*reader, changes));
  const double reads = 4 * (1e6 + 8e6) / 2e9;  // of a step
  CHECK(answer.changes.at(0).step_seconds ==
        Approx(answer.replayed_seconds - reads / 2).epsilon(1e-3));
  CHECK(answer.changes.at(1).step_seconds ==
        Approx(answer.replayed_seconds - reads / 2).epsilon(1e-3));
  CHECK(answer.changes.at(2).step_seconds ==
        Approx(answer.replayed_seconds - kRounds * 1.7e-3).epsilon(1e-3));
}

TEST_CASE("a record that does not say what its state is keeps it where it is") {
  const auto reader = serial_reader(2e9).program->reader();
  const std::vector<Change> changes{{.kind = ChangeKind::on_csd, .text = "--on-csd", .name = {}}};
  const auto answer = replay_record(*reader, changes);
  REQUIRE_FALSE(answer.ok());
  CHECK(answer.error().message().find("does not say which operations") != std::string::npos);
}

// 2 ms of forward with a read of 1 ms within it, and behind that a write that forward asks for and
// nobody waits for.
TEST_CASE("what a thread does within a span stays in it, and what it only asked for does not") {
  MadeProgram program({{"nvme0.drive"}, {"nvme1.drive"}});
  const std::int64_t main = program.thread("main");
  const std::int64_t reads = program.thread("out of nvme0", {"nvme0.drive"}, main);
  const std::int64_t writes = program.thread("asynchronous", {"nvme1.drive"}, main);
  for (int i = 0; i < 10; ++i) {
    const TimeNs now = i * 3 * kMs;
    program.add(main, "forward", now, now + 2 * kMs);
    program.add(reads, "read", now + kMs / 4, now + kMs / 4 + kMs, 1'000'000);
    program.add(writes, "write", now + 3 * kMs / 2, now + 5 * kMs / 2, 4'000'000);
    program.add(main, "backward", now + 2 * kMs, now + 3 * kMs);
  }
  const auto reader = program.reader();
  const std::vector<Change> changes{
      {.kind = ChangeKind::without, .text = "--without read", .name = "read"},
      {.kind = ChangeKind::without, .text = "--without write", .name = "write"},
      {.kind = ChangeKind::without, .text = "--without forward", .name = "forward"}};
  const ReplayAnswer answer = rundb::require_ok(replay_record(*reader, changes));
  CHECK(std::abs(answer.error()) < 0.01);
  CHECK(answer.changes.at(0).step_seconds == Approx(0.020).epsilon(0.05));
  CHECK(answer.changes.at(1).step_seconds == Approx(0.030).epsilon(0.01));
  CHECK(answer.changes.at(2).step_seconds == Approx(0.020).epsilon(0.05));
}

// Each operation is looked at beside a few others, and not beside all: with all this takes minutes.
TEST_CASE("a thread of a hundred thousand operations is replayed") {
  MadeProgram program({{"nvme0.drive"}});
  const std::int64_t reads = program.thread("main", {"nvme0.drive"});
  for (int i = 0; i < 100'000; ++i)
    program.add(reads, "read", i * 10 * kUs, (i * 10 + 8) * kUs, 8'000);
  const ReplayAnswer answer = answer_of(*program.reader(), {"drive=x2"});
  CHECK(answer.replayed_seconds == Approx(1.0).epsilon(1e-3));
  CHECK(answer.changes.at(0).step_seconds == Approx(0.6).epsilon(1e-3));
}

// Two of a hundred transfers were alone, and the drive held those up.
TEST_CASE("a transfer that was slow alone says nothing of the others") {
  MadeProgram program({{"nvme0.drive"}});
  const std::int64_t first = program.thread("reader 0", {"nvme0.drive"});
  const std::int64_t second = program.thread("reader 1", {"nvme0.drive"});
  TimeNs now = 0;
  for (int i = 0; i < 100; ++i) {
    const bool is_alone = i % 50 == 20;
    const TimeNs end = now + (is_alone ? 20 : 1) * kMs;
    const auto one = program.add(first, "read", now, end, 1'000'000);
    if (!is_alone) program.add(second, "read", now, end, 1'000'000);
    if (is_alone) program.flow(one, program.add(second, "read", end, end + kMs, 1'000'000));
    now = end + (is_alone ? kMs : 0);
  }
  const ReplayAnswer answer = answer_of(*program.reader());
  CHECK(answer.links.at(0).bytes_per_s[0] == Approx(2e9).epsilon(0.05));
}

TEST_CASE("more operations at one time than a replay takes are refused in a sentence") {
  MadeProgram program({{"nvme0.drive"}});
  for (int i = 0; i < 4'200; ++i)
    program.add(program.thread("main", {"nvme0.drive"}), "read", i, kMs, 1'000);
  const auto answer = replay_record(*program.reader(), {});
  REQUIRE_FALSE(answer.ok());
  CHECK(answer.error().code() == ErrorCode::config);
  CHECK(answer.error().message().find("4096") != std::string::npos);
}

TEST_CASE("the same record gives the same times") {
  const auto reader = two_drives(3e9).program->reader();
  const ReplayAnswer one = answer_of(*reader, {"host=x0.5"});
  const ReplayAnswer two = answer_of(*reader, {"host=x0.5"});
  CHECK(one.replayed_seconds == two.replayed_seconds);
  CHECK(one.changes.at(0).step_seconds == two.changes.at(0).step_seconds);
}

}  // namespace
}  // namespace sluice::replay
