#include "tests/profiler/analyze/slow_steps.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>

#include "tests/made_stages.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::analyze {
namespace {

using rundb::Direction;
using rundb::require_ok;

constexpr std::int64_t kSlow = 20;  // the id of the step in which something is planted
constexpr std::int64_t kStepCount = 30;

// Milliseconds of one step's operations. Devices work side by side, each on a drive of 1 GB/s.
struct Shape {
  double first_read = 0;  // of parameters, from csd0's drive
  double data = 0;        // the program's own
  double forward = 20;
  double wait_back = 0;        // backward waits for activations
  double activation_read = 0;  // ends with the wait
  double backward = 30;
  double down = 6;  // each device's gradients over the host link
  std::array<double, 4> read = {15, 15, 15, 15};
  std::array<double, 4> read_mb = {15, 15, 15, 15};
  std::array<double, 4> update = {7, 7, 7, 7};
  std::array<double, 4> write = {14, 14, 14, 14};
  double up = 6;
  bool has_second_subgroup = false;  // on csd0
  bool waits_for_buffer = false;     // its read does, until the first is written
  double commit = 4;
  double gap = 0;
  double collect = 0;           // the recorder's thread, beside forward
  const char* extra = nullptr;  // runs at the end
  double extra_ms = 0;
  bool extra_computes = false;
};

struct Setting {
  std::size_t devices = 4;
  std::string clock = "real";
  bool has_late_reads = false;
  std::int64_t change_at = -1;  // of buffers
  double jitter = 0.01;
};

class ShapedRun {
 public:
  ShapedRun(const std::string& path, const Setting& setting)
      : setting_(setting),
        writer_(require_ok(rundb::Writer::create(path, rundb::IfExists::replace))) {
    rundb::Facts facts;
    facts.meta = {{"name", "made"},    {"model", "tiny.toml"}, {"method", "csd"},
                  {"buffers", "3"},    {"processors", "2"},    {"clock", setting.clock},
                  {"time_scale", "1"}, {"record", "all"}};
    facts.links.push_back(
        {.id = 0, .name = "host", .read_bytes_per_s = 10e9, .write_bytes_per_s = 10e9});
    for (std::size_t d = 0; d < setting.devices; ++d) {
      const auto id = static_cast<std::int64_t>(d);
      facts.links.push_back({.id = id + 1,
                             .name = fmt::format("csd{}.drive", d),
                             .read_bytes_per_s = 1e9,
                             .write_bytes_per_s = 1e9});
      facts.devices.push_back({.id = id, .name = fmt::format("csd{}", d), .kind = "csd"});
    }
    facts.stages = made_stages(*writer_);
    if (setting.change_at >= 0) facts.knobs = {{.name = "buffers", .type = "integer"}};
    require_ok(writer_->write_facts(facts));
    compute_ = writer_->track_id({}, "compute", "compute");
    host_ = writer_->track_id({}, "host", "host");
    waiting_ = writer_->track_id({}, "waiting", "waiting");
    recorder_ = writer_->track_id({}, "recorder", "recorder");
    resident_ = writer_->track_id(host_, "counter", "resident memory (bytes)");
    for (std::size_t d = 0; d < setting.devices; ++d) add_device(d);
  }

  void add_step(Shape shape) {
    const double factor = 1 + setting_.jitter * (static_cast<double>(step_ * 7 % 5) - 2) / 2;
    factor_ = factor;
    double now = span(host_, "host_work", 0, shape.data);
    now = read_of(0, "parameter_read", now, shape.first_read, shape.first_read);
    const double forward_from = now;
    now = span(compute_, "forward", now, shape.forward);
    if (shape.collect > 0) span(recorder_, "collect", forward_from, shape.collect);
    const double wait_until = now + shape.wait_back;
    if (shape.activation_read > 0) {
      add(reads_[1]["activation_read"], "activation_read", wait_until - shape.activation_read,
          shape.activation_read, 5, 1, -1, 1);
    }
    add(waiting_, "activations back", now, shape.wait_back, 0, -1, -1, 1);
    now = span(compute_, "backward", wait_until, shape.backward, 1);
    double end = now;
    for (std::size_t d = 0; d < setting_.devices; ++d)
      end = std::max(end, device_work(d, now, shape));
    end = span(host_, "commit", end, shape.commit);
    if (shape.extra != nullptr)
      end = span(shape.extra_computes ? compute_ : host_, shape.extra, end, shape.extra_ms);
    end_step(end + shape.gap);
  }
  void close() {
    if (setting_.has_late_reads) {
      require_ok(writer_->append({.lateness = {{.step_id = 0,
                                                .stage = "state_read",
                                                .operations = 120,
                                                .late = 40,
                                                .modelled_ns = 1'800'000'000,
                                                .late_ns = 100'000'000}}}));
    }
    if (setting_.change_at >= 0) {
      require_ok(writer_->append(
          {.knob_changes = {{0, setting_.change_at, "buffers", "3", "1", "settings"}}}));
    }
    require_ok(writer_->close());
  }
  std::int64_t step() const { return step_; }

 private:
  void add_device(std::size_t d) {
    const auto drive = static_cast<std::int64_t>(d) + 1;
    const std::string name = fmt::format("csd{}", d);
    const std::int64_t track = writer_->track_id({}, "device", name);
    const auto over = [&](const char* stage, std::int64_t link, Direction way) {
      return writer_->track_id(track, "device", fmt::format("{} {}", name, stage),
                               std::array{rundb::TrackLink{link, way}});
    };
    for (const char* stage : {"state_read", "parameter_read", "activation_read"})
      reads_[d][stage] = over(stage, drive, Direction::read);
    writes_[d] = over("state_write", drive, Direction::write);
    down_[d] = over("gradient_down", 0, Direction::write);
    up_[d] = over("parameters_up", 0, Direction::read);
    engines_[d] = writer_->track_id(track, "device", name + " update");
  }

  double device_work(std::size_t d, double now, const Shape& shape) {
    const auto device = static_cast<std::int64_t>(d);
    now = add(down_[d], "gradient_down", now, shape.down, 6, device, -1, -1, 0);
    const double read_from = now;
    now = add(reads_[d]["state_read"], "state_read", now, shape.read[d], shape.read_mb[d], device,
              -1, -1, 0);
    const double first_read = now;
    now = add(engines_[d], "update", now, shape.update[d], 0, device, -1, -1, 0);
    now = add(writes_[d], "state_write", now, shape.write[d], 14, device, -1, -1, 0);
    if (shape.has_second_subgroup && d == 0) {
      const double asked = shape.waits_for_buffer ? now : read_from;
      const double from = shape.waits_for_buffer ? now : first_read;
      now = add(reads_[d]["state_read"], "state_read", from, shape.read[d], shape.read_mb[d],
                device, asked, -1, 1);
      now = add(engines_[d], "update", now, shape.update[d], 0, device, -1, -1, 1);
    }
    return add(up_[d], "parameters_up", now, shape.up, 6, device);
  }
  double read_of(std::size_t d, const char* stage, double from, double ms, double mb) {
    return ms <= 0 ? from
                   : add(reads_[d][stage], stage, from, ms, std::min(mb, 5.0),
                         static_cast<std::int64_t>(d));
  }
  double span(std::int64_t track, const char* name, double from, double ms,
              std::int64_t layer = -1) {
    return add(track, name, from, ms, 0, -1, -1, layer);
  }

  // The end. All times are scaled alike, so that a step is a little longer or shorter as a whole.
  double add(std::int64_t track, const char* name, double from, double ms, double mb,
             std::int64_t device, double asked = -1, std::int64_t layer = -1,
             std::int64_t subgroup = -1) {
    if (ms <= 0) return from;
    rundb::SpanRow row;
    row.id = writer_->next_span_id() + std::ssize(batch_.spans);
    row.track_id = track;
    row.name_id = writer_->string_id(name);
    row.ts = now_ + ns(from);
    row.submit_ts = asked < 0 ? row.ts : now_ + ns(asked);
    row.dur = ns(from + ms) - ns(from);
    row.step_id = step_;
    row.subgroup_id = subgroup;
    row.device_id = device;
    row.layer_id = layer;
    row.bytes = static_cast<std::int64_t>(mb * 1e6);
    batch_.spans.push_back(row);
    return from + ms;
  }
  void end_step(double ms) {
    // Memory goes while nothing runs.
    batch_.counters = {{resident_, now_ + ns(ms / 2), ms > 170 ? 1e9 : 3e9}};
    batch_.steps = {{.id = step_, .ts = now_, .dur = ns(ms), .loss = 2, .tokens = 64}};
    require_ok(writer_->append(batch_));
    batch_ = {};
    now_ += ns(ms);
    step_ += 1;
  }
  TimeNs ns(double ms) const { return static_cast<TimeNs>(ms * factor_ * 1e6); }

  Setting setting_;
  std::unique_ptr<rundb::Writer> writer_;
  rundb::Batch batch_;
  double factor_ = 1;
  TimeNs now_ = 1'000'000'000;
  std::int64_t step_ = 0;
  std::int64_t compute_ = 0, host_ = 0, waiting_ = 0, recorder_ = 0, resident_ = 0;
  std::array<std::map<std::string, std::int64_t>, 4> reads_;
  std::array<std::int64_t, 4> writes_{}, down_{}, up_{}, engines_{};
};

using Plant = std::function<void(Shape&, std::int64_t step)>;

void write_shaped(const std::string& path, const Plant& plant, const Setting& setting = {}) {
  ShapedRun run(path, setting);
  for (std::int64_t i = 0; i < kStepCount; ++i) {
    Shape shape;
    plant(shape, i);
    run.add_step(shape);
  }
  run.close();
}

// Somebody else's program, which reads files through the page cache.
void write_other_program(const std::string& path) {
  const auto writer = require_ok(rundb::Writer::create(path, rundb::IfExists::replace));
  rundb::Facts facts;
  facts.meta = {{"name", "a program"}, {"processors", "2"}, {"clock", "real"}};
  facts.links = {{.id = 0, .name = "vda (page cache).drive"}};
  facts.stages = {{.name_id = writer->string_id("step of torch"),
                   .kind = "kernel",
                   .place = "compute",
                   .colour = "#4e79a7"}};
  require_ok(writer->write_facts(facts));
  const std::int64_t thread = writer->track_id({}, "thread", "main");
  const std::int64_t reads = writer->track_id({}, "thread", "reads of vda",
                                              std::array{rundb::TrackLink{0, Direction::read}});
  TimeNs now = 1'000'000'000;
  for (std::int64_t step = 0; step < kStepCount; ++step) {
    const TimeNs read = (step == kSlow ? 80 : 10 + step % 3) * 1'000'000;
    const TimeNs work = 60'000'000;
    rundb::Batch batch;
    batch.spans.push_back({.track_id = reads,
                           .name_id = writer->string_id("data: read"),
                           .submit_ts = now,
                           .ts = now,
                           .dur = read,
                           .step_id = step,
                           .bytes = 4'000'000});
    batch.spans.push_back({.track_id = thread,
                           .name_id = writer->string_id("step of torch"),
                           .submit_ts = now + read,
                           .ts = now + read,
                           .dur = work,
                           .step_id = step});
    batch.steps.push_back({.id = step, .ts = now, .dur = read + work, .loss = 2, .tokens = 64});
    require_ok(writer->append(batch));
    now += read + work;
  }
  require_ok(writer->close());
}

}  // namespace

std::vector<SlowStep> write_slow_steps(const std::string& folder) {
  std::vector<SlowStep> all;
  const auto plant_in = [&](SlowStep expected, const Plant& plant, const Setting& setting = {}) {
    write_shaped(folder + "/" + expected.name + ".db", plant, setting);
    all.push_back(std::move(expected));
  };
  // In the one step alone.
  const auto plant = [&](
                         SlowStep expected, void (*change)(Shape&), const Setting& setting = {},
                         void (*always)(Shape&) = [](Shape&) {}) {
    expected.steps = {kSlow, kSlow};
    plant_in(
        std::move(expected),
        [=](Shape& shape, std::int64_t step) {
          always(shape);
          if (step == kSlow) change(shape);
        },
        setting);
  };
  plant({"slow_drive",
         {},
         Cause::read,
         ReasonKind::slower_device,
         "state_read",
         "csd0",
         "csd0.drive"},
        [](Shape& s) { s.read[0] = 60; }, {.devices = 1});
  plant({"one_of_four",
         {},
         Cause::read,
         ReasonKind::slower_device,
         "state_read",
         "csd2",
         "csd2.drive"},
        [](Shape& s) { s.read[2] = 60; });
  plant({"slow_write",
         {},
         Cause::write,
         ReasonKind::slower_device,
         "state_write",
         "csd3",
         "csd3.drive"},
        [](Shape& s) { s.write[3] = 60; });
  plant({"long_commit", {}, Cause::commit, ReasonKind::slower_operation, "commit", "", ""},
        [](Shape& s) { s.commit = 60; });
  plant(
      {"rare_commit", {}, Cause::commit, ReasonKind::unusual_operation, "commit", "", ""},
      [](Shape& s) { s.commit = 40; }, {}, [](Shape& s) { s.commit = 0; });
  plant({"nothing_running", {}, Cause::other, ReasonKind::nothing_running, "", "", ""},
        [](Shape& s) { s.gap = 50; });
  plant({"memory_taken", {}, Cause::other, ReasonKind::nothing_running, "", "", ""},
        [](Shape& s) { s.gap = 90; });
  plant({"more_bytes", {}, Cause::read, ReasonKind::more_bytes, "state_read", "csd1", ""},
        [](Shape& s) { s.read[1] = 60, s.read_mb[1] = 60; });
  plant({"snapshot", {}, Cause::processor, ReasonKind::unusual_operation, "snapshot", "", ""},
        [](Shape& s) { s.extra = "snapshot", s.extra_ms = 50; });
  plant({"validation", {}, Cause::compute, ReasonKind::unusual_operation, "validate", "", ""},
        [](Shape& s) { s.extra = "validate", s.extra_ms = 40, s.extra_computes = true; });
  plant({"slow_host_link", {}, Cause::host_link, ReasonKind::slower_link, "", "", "host"},
        [](Shape& s) { s.down = s.up = 20; });
  plant({"slow_kernel", {}, Cause::update_engine, ReasonKind::slower_device, "update", "csd1", ""},
        [](Shape& s) { s.update[1] = 40; });
  plant({"slow_kernels", {}, Cause::update_engine, ReasonKind::slower_operation, "update", "", ""},
        [](Shape& s) { s.update = {40, 40, 40, 40}; });
  plant(
      {"buffers", {}, Cause::buffers, ReasonKind::waited, "", "csd0", "", Cause::update_engine},
      [](Shape& s) { s.waits_for_buffer = true; }, {},
      [](Shape& s) { s.has_second_subgroup = true, s.write[0] = 20; });
  plant({"late", {}, Cause::read, ReasonKind::late_operations, "state_read", "csd2", "csd2.drive"},
        [](Shape& s) { s.read[2] = 60; }, {.clock = "emulated", .has_late_reads = true});
  plant(
      {"first_read",
       {},
       Cause::read,
       ReasonKind::slower_device,
       "parameter_read",
       "csd0",
       "csd0.drive"},
      [](Shape& s) { s.first_read = 50; }, {}, [](Shape& s) { s.first_read = 5; });
  plant(
      {"data", {}, Cause::program, ReasonKind::slower_operation, "host_work", "", ""},
      [](Shape& s) { s.data = 50; }, {}, [](Shape& s) { s.data = 5; });
  plant(
      {"activations",
       {},
       Cause::activations_back,
       ReasonKind::slower_device,
       "activation_read",
       "csd1",
       "csd1.drive"},
      [](Shape& s) { s.wait_back = 40, s.activation_read = 45; }, {},
      [](Shape& s) { s.activation_read = 5; });
  plant({"two_causes",
         {},
         Cause::read,
         ReasonKind::slower_device,
         "state_read",
         "csd2",
         "csd2.drive",
         Cause::commit},
        [](Shape& s) { s.read[2] = 70, s.commit = 40; });
  plant(
      {"collector", {}, Cause::recorder, ReasonKind::recorder_cost, "collect", "", ""},
      [](Shape& s) { s.collect = 50, s.forward = 45; }, {}, [](Shape& s) { s.collect = 2; });
  plant_in({"after_change",
            {10, 10},
            Cause::read,
            ReasonKind::slower_device,
            "state_read",
            "csd2",
            "csd2.drive",
            Cause::count_,
            "buffers 3 -> 1 from step 11 on"},
           [](Shape& s, std::int64_t step) {
             if (step >= 10) s.read = {40, 40, 40, 40};
             if (step == 10) s.read[2] = 90;
           },
           {.change_at = 10});
  plant_in({"last_change",
            {28, 28},
            Cause::read,
            ReasonKind::slower_operation,
            "state_read",
            "",
            "",
            Cause::count_,
            "which have others"},
           [](Shape& s, std::int64_t step) {
             if (step >= 28) s.read = {60, 60, 60, 60};
           },
           {.change_at = 28});
  plant_in({"range",
            {15, 19},
            Cause::read,
            ReasonKind::slower_device,
            "state_read",
            "csd2",
            "csd2.drive"},
           [](Shape& s, std::int64_t step) {
             if (step >= 15 && step <= 19) s.read[2] = 60;
           });
  write_other_program(folder + "/other_program.db");
  all.push_back({"other_program",
                 {kSlow, kSlow},
                 Cause::read,
                 ReasonKind::slower_link,
                 "data: read",
                 "",
                 "vda (page cache).drive"});
  return all;
}

std::vector<HealthyStep> write_healthy_steps(const std::string& folder) {
  const auto write = [&](const char* name, const Plant& plant, const Setting& setting = {}) {
    write_shaped(folder + "/" + name + ".db", plant, setting);
  };
  write("healthy", [](Shape&, std::int64_t) {});
  write("healthy_uneven", [](Shape&, std::int64_t) {}, {.jitter = 0.05});
  write("healthy_same", [](Shape&, std::int64_t) {}, {.jitter = 0});
  // Each step another device is a little longer.
  write("healthy_turns",
        [](Shape& s, std::int64_t step) { s.read[static_cast<std::size_t>(step) % 4] = 16; });
  write("quicker", [](Shape& s, std::int64_t step) {
    if (step == kSlow) s.forward = 5, s.read = {5, 5, 5, 5};
  });
  return {{"healthy", 12},
          {"healthy", kSlow},
          {"healthy_uneven", 17},
          {"healthy_same", 9},
          {"healthy_turns", 14}};
}

}  // namespace sluice::analyze
