#include "tests/profiler/analyze/planted.h"

#include <array>
#include <memory>

#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::analyze {
namespace {

using rundb::Direction;
using rundb::require_ok;

constexpr TimeNs kMilli = 1'000'000;
constexpr std::int64_t kMiB = 1 << 20;

// A program whose spans are given in milliseconds of a step, one step behind the other.
class Program {
 public:
  explicit Program(const std::string& path, bool has_two_drives)
      : writer_(require_ok(rundb::Writer::create(path, rundb::IfExists::replace))) {
    rundb::Facts facts;
    facts.meta = {{"name", "made"}, {"processors", "2"}, {"clock", "real"}};
    const std::array<const char*, 5> links = {"a.drive", "b.drive", "bus", "a.internal",
                                              "v (page cache).drive"};
    for (std::size_t i = 0; i < links.size(); ++i) {
      facts.links.push_back({.id = static_cast<std::int64_t>(i),
                             .name = links[i],
                             .read_bytes_per_s = 1e9,
                             .write_bytes_per_s = 1e9});
    }
    facts.devices = {{.id = 0, .name = "a", .kind = "drive"}};
    if (has_two_drives) facts.devices.push_back({.id = 1, .name = "b", .kind = "drive"});
    const auto stage = [&](const char* name, const char* kind, const char* place, const char* phase,
                           const char* cause, const char* file = "") {
      facts.stages.push_back({.name_id = writer_->string_id(name),
                              .kind = kind,
                              .place = place,
                              .drive_file = file,
                              .phase = phase,
                              .cause = cause,
                              .colour = "#4e79a7"});
    };
    stage("fw", "kernel", "compute", "forward", "");
    stage("bw", "kernel", "compute", "backward", "");
    stage("get", "transfer", "device", "", "");
    stage("state", "transfer", "device", "", "", "state");
    stage("put", "transfer", "device", "", "");
    stage("sync", "kernel", "device", "", "commit");
    stage("pack", "kernel", "host", "", "compression");
    stage("loop", "kernel", "host", "", "");
    stage("batch", "kernel", "host", "", "program");
    require_ok(writer_->write_facts(facts));
    work = writer_->track_id({}, "compute", "gpu");
    host = writer_->track_id({}, "host", "host");
    waiting = writer_->track_id({}, "waiting", "waiting");
    recorder = writer_->track_id({}, "recorder", "recorder");
    reads = {over("read a", 0, Direction::read), over("read b", 1, Direction::read)};
    writes = over("write a", 0, Direction::write);
    bus = over("bus", 2, Direction::read);
    cached = over("cached", 4, Direction::read);
  }

  // From and until in ms of the step; `asked`: -1 as it begins.
  std::int64_t add(std::int64_t track, const char* name, double from, double until,
                   std::int64_t bytes = 0, std::int64_t device = -1, double asked = -1,
                   std::int64_t subgroup = -1) {
    rundb::SpanRow span;
    span.id = writer_->next_span_id() + std::ssize(batch_.spans);
    span.track_id = track;
    span.name_id = writer_->string_id(name);
    span.ts = now_ + ns(from);
    span.submit_ts = asked < 0 ? span.ts : now_ + ns(asked);
    span.dur = ns(until) - ns(from);
    span.step_id = step_;
    span.subgroup_id = subgroup;
    span.device_id = device;
    span.bytes = bytes;
    batch_.spans.push_back(span);
    return span.id;
  }
  void flow(std::int64_t from, std::int64_t to) { batch_.flows.push_back({from, to}); }
  void end_step(double ms) {
    batch_.steps.push_back({.id = step_, .ts = now_, .dur = ns(ms), .loss = 2, .tokens = 64});
    require_ok(writer_->append(batch_));
    batch_ = {};
    now_ += ns(ms);
    step_ += 1;
  }
  void close() { require_ok(writer_->close()); }
  std::int64_t step() const { return step_; }

  std::int64_t work = 0, host = 0, waiting = 0, recorder = 0, writes = 0, bus = 0, cached = 0;
  std::array<std::int64_t, 2> reads{};

 private:
  static TimeNs ns(double ms) { return static_cast<TimeNs>(ms * static_cast<double>(kMilli)); }
  std::int64_t over(const char* name, std::int64_t link, Direction way) {
    return writer_->track_id({}, "device", name, std::array{rundb::TrackLink{link, way}});
  }
  std::unique_ptr<rundb::Writer> writer_;
  rundb::Batch batch_;
  TimeNs now_ = 1000 * kMilli;
  std::int64_t step_ = 0;
};

using AddStep = void (*)(Program&, bool is_planted);
struct Plan {
  const char* name;
  const char* kind;
  std::vector<std::string> names;
  AddStep add;
  bool has_two_drives = false;
};

// 100 ms of a step, of which `ms` at its end are left.
void compute_until(Program& p, double ms) {
  p.add(p.work, "fw", 0, ms / 3);
  p.add(p.work, "bw", ms / 3, ms);
}

// Both drives from 60 ms on, b until `slow`.
void two_drives(Program& p, double slow, std::int64_t a, std::int64_t b) {
  compute_until(p, 60);
  p.add(p.reads[0], "get", 60, 70, a, 0, 60);
  p.add(p.reads[1], "get", 60, slow, b, 1, 60);
  p.end_step(slow);
}

std::vector<Plan> plans() {
  std::vector<Plan> plans;
  plans.push_back(
      {"slow_drive",
       "slow drive",
       {"get"},
       [](Program& p, bool is_planted) { two_drives(p, is_planted ? 90 : 72, 5 * kMiB, 5 * kMiB); },
       true});
  plans.push_back({"hot_drive",
                   "hot drive",
                   {"get"},
                   [](Program& p, bool is_planted) {
                     two_drives(p, is_planted ? 90 : 71, 5 * kMiB,
                                is_planted ? 15 * kMiB : 5767168);
                   },
                   true});
  plans.push_back(
      {"small_operations", "small operations", {"get"}, [](Program& p, bool is_planted) {
         const double ms = is_planted ? 1.0 : 0.005;
         compute_until(p, 60);
         for (int i = 0; i < 40; ++i)
           p.add(p.reads[0], "get", 60 + ms * i, 60 + ms * (i + 1), 4096, 0);
         p.end_step(60 + 40 * ms);
       }});
  plans.push_back({"lock_step", "lock-step queue", {"get"}, [](Program& p, bool is_planted) {
                     compute_until(p, 60);
                     for (int i = 0; i < 4; ++i)
                       p.add(p.reads[0], "get", 60 + 10 * i, 70 + 10 * i, 4 * kMiB, 0,
                             is_planted ? -1 : 60);
                     p.end_step(100);
                   }});
  plans.push_back({"buffered_files", "buffered files", {"get"}, [](Program& p, bool is_planted) {
                     compute_until(p, 60);
                     const double until = is_planted ? 90 : 65;
                     p.add(p.cached, "get", 60, until, 10 * kMiB);
                     p.end_step(until);
                   }});
  plans.push_back({"full_link", "full link", {"get"}, [](Program& p, bool is_planted) {
                     compute_until(p, 40);
                     p.add(p.reads[0], "get", 40, 100, is_planted ? 57'000'000 : 40'000'000, 0);
                     p.end_step(100);
                   }});
  plans.push_back(
      {"idle_internal", "idle internal links", {"get"}, [](Program& p, bool is_planted) {
         const double until = is_planted ? 40 : 85;
         compute_until(p, until);
         p.add(p.bus, "get", until, 100, 10 * kMiB);
         p.end_step(100);
       }});
  plans.push_back({"missing_overlap", "missing overlap", {"get"}, [](Program& p, bool is_planted) {
                     p.add(p.work, "fw", 0, 10);
                     for (int i = 0; i < 5; ++i) {
                       const double at = 10 + 18 * i;
                       // Asked for at once: the near miss reads beside computing.
                       p.add(p.reads[0], "get", is_planted ? at : at + 8,
                             at + (is_planted ? 8 : 18), 4 * kMiB, 0);
                       p.add(p.work, "bw", at + 8, at + 18);
                     }
                     p.end_step(100);
                   }});
  plans.push_back(
      {"turns", "reads and writes in turns", {"get", "put"}, [](Program& p, bool is_planted) {
         compute_until(p, 20);
         for (int i = 0; i < 4; ++i) {
           const double at = 20 + 20 * i;
           p.add(p.reads[0], "get", at, at + (is_planted ? 10 : 20), 2 * kMiB, 0);
           p.add(p.writes, "put", is_planted ? at + 10 : at, at + 20, 2 * kMiB, 0);
         }
         p.end_step(100);
       }});
  plans.push_back({"one_buffer", "too few buffers", {"loop"}, [](Program& p, bool is_planted) {
                     p.add(p.work, "fw", 0, 40);
                     for (int i = 0; i < 3; ++i) {
                       const double at = 40 + 20 * i;
                       p.add(p.reads[0], "state", at, at + 5, 2 * kMiB, 0, is_planted ? -1 : 0, i);
                       p.add(p.host, "loop", at + 5, at + 20, 0, 0, -1, i);
                     }
                     p.end_step(100);
                   }});
  plans.push_back({"flush", "synchronous flush", {"sync"}, [](Program& p, bool is_planted) {
                     const double at = is_planted ? 80 : 97;
                     compute_until(p, at);
                     p.add(p.host, "sync", at, 100);
                     p.end_step(100);
                   }});
  plans.push_back({"starved", "starved forward", {"get", "batch"}, [](Program& p, bool is_planted) {
                     const double at = is_planted ? 20 : 3;
                     p.add(p.reads[0], "get", 0, at / 2, 2 * kMiB, 0);
                     p.add(p.host, "batch", at / 2, at);
                     p.add(p.work, "fw", at, 60);
                     p.add(p.work, "bw", 60, 100);
                     p.end_step(100);
                   }});
  plans.push_back({"late_activations",
                   "late activations",
                   {"activations back"},
                   [](Program& p, bool is_planted) {
                     const double until = is_planted ? 60 : 43;
                     p.add(p.work, "fw", 0, 40);
                     p.add(p.waiting, "activations back", 40, until);
                     p.add(p.work, "bw", until, 100);
                     p.end_step(100);
                   }});
  plans.push_back({"host_kernel", "host kernel", {"loop"}, [](Program& p, bool is_planted) {
                     const double at = is_planted ? 70 : 92;
                     compute_until(p, at);
                     p.add(p.host, "loop", at, 100);
                     p.end_step(100);
                   }});
  plans.push_back({"compression", "costly compression", {"pack"}, [](Program& p, bool is_planted) {
                     compute_until(p, 70);
                     // To a half: saves as long as the transfer takes; or to a tenth.
                     const auto packed = p.add(p.host, "pack", 70, 95, 10 * kMiB);
                     const auto sent = p.add(p.bus, "put", 95, 100, is_planted ? 5 * kMiB : kMiB);
                     p.flow(packed, sent);
                     p.end_step(100);
                   }});
  plans.push_back({"recording", "costly recording", {"drain"}, [](Program& p, bool is_planted) {
                     compute_until(p, 100);
                     p.add(p.recorder, "drain", 40, is_planted ? 80 : 45);
                     p.end_step(100);
                   }});
  plans.push_back({"gap", "unrecorded time", {}, [](Program& p, bool is_planted) {
                     compute_until(p, is_planted ? 70 : 94);
                     p.end_step(100);
                   }});
  plans.push_back({"periodic", "periodic slow steps", {}, [](Program& p, bool is_planted) {
                     const bool is_slow = p.step() % 5 == 4 && (is_planted || p.step() == 9);
                     compute_until(p, is_slow ? 160 : 100);
                     p.end_step(is_slow ? 160 : 100);
                   }});
  plans.push_back({"slowdown", "lasting slowdown", {}, [](Program& p, bool is_planted) {
                     const double ms = p.step() < 12 ? 100 : is_planted ? 140 : 103;
                     compute_until(p, ms);
                     p.end_step(ms);
                   }});
  return plans;
}

constexpr int kSteps = 30;

void write(const std::string& path, AddStep add, bool is_planted, bool has_two_drives = false) {
  Program program(path, has_two_drives);
  for (int i = 0; i < kSteps; ++i) add(program, is_planted);
  program.close();
}

void healthy_compute(Program& p, bool /*is_planted*/) {
  compute_until(p, 100);
  p.end_step(100);
}
// Reads beside computing, several under way.
void healthy_overlap(Program& p, bool /*is_planted*/) {
  compute_until(p, 100);
  for (int i = 0; i < 4; ++i)
    p.add(p.reads[0], "get", 10 + 20 * i, 28 + 20 * i, 12 * kMiB, 0, i == 0 ? 10 : 10 + 20 * i - 5);
  p.end_step(100);
}
void healthy_warm_up(Program& p, bool /*is_planted*/) {
  const double ms = p.step() < 2 ? 400 : 100;
  compute_until(p, ms);
  p.end_step(ms);
}

}  // namespace

std::vector<Planted> write_planted(const std::string& folder) {
  std::vector<Planted> all;
  for (const Plan& plan : plans()) {
    write(folder + "/" + plan.name + ".db", plan.add, true, plan.has_two_drives);
    all.push_back({plan.name, plan.kind, "", plan.names});
    const std::string near = std::string("near_") + plan.name;
    write(folder + "/" + near + ".db", plan.add, false, plan.has_two_drives);
    all.push_back({near, "", plan.kind, {}});
  }
  // A second drive that is there for something else.
  write(
      folder + "/near_other_drive.db",
      [](Program& p, bool) { two_drives(p, 90, 256 * 1024, 15 * kMiB); }, false, true);
  all.push_back({"near_other_drive", "", "hot drive", {}});
  const auto healthy = [&](const char* name, AddStep add) {
    write(folder + "/" + name + ".db", add, false);
    all.push_back({name, "", "", {}});
  };
  healthy("healthy_compute", healthy_compute);
  healthy("healthy_overlap", healthy_overlap);
  healthy("healthy_warm_up", healthy_warm_up);
  return all;
}

}  // namespace sluice::analyze
