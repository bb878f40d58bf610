#pragma once
// A small run, written by hand, whose figures are known: two CSDs, some steps of 100 ms.

#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <span>
#include <sstream>

#include "storage/rundb/loss_counts.h"
#include "tests/made_stages.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::report {

using rundb::require_ok;

inline constexpr TimeNs kMs = 1'000'000;
inline constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct MadeRun {
  std::string name = "made";
  std::string mode = "csd · serial · 2 devices · EMULATED CLOCK x1";
  std::int64_t step_count = 3;
  bool has_spans = true;
  double loss = 2.5;  // of the first step; each next one is a tenth less
  std::int64_t lost_count = 0;
  std::int64_t more_kernel_count = 0;  // of 1 us each, in the first millisecond of each step
  std::vector<rundb::MetaRow> more_meta = {};
  std::vector<rundb::KnobChangeRow> changes = {};  // of knobs that exist
  std::vector<rundb::ValidationRow> validations = {};
  bool has_gpu = false;  // a kernel from 2 to 18 ms of each step, on a stream of GPU0
};

// Each step has forward 0-20 and backward 20-50 on the host; on each device a read 50-70 of
// 20 MB + 4096 padding, an update 70-80, a write 80-100 of 20 MB; two reads overlap on csd0.
inline void write_made_run(const std::string& path, const MadeRun& made) {
  auto writer = require_ok(rundb::Writer::create(path, rundb::IfExists::replace));
  rundb::Facts facts;
  facts.meta = {{"name", made.name}, {"processors", "2"}};
  facts.meta.insert(facts.meta.end(), made.more_meta.begin(), made.more_meta.end());
  for (const rundb::KnobChangeRow& change : made.changes) {
    facts.knobs.push_back({.name = change.knob, .type = "integer"});
  }
  for (std::int64_t d = 0; d < 2; ++d) {
    const std::string device = "csd" + std::to_string(d);
    facts.devices.push_back({.id = d, .name = device, .kind = "csd"});
    facts.links.push_back(
        {.id = d, .name = device + ".internal", .read_bytes_per_s = 2e9, .write_bytes_per_s = 2e9});
  }
  facts.stages = made_stages(*writer);
  require_ok(writer->write_facts(facts));
  const std::int64_t compute = writer->track_id(std::nullopt, "compute", "compute");
  std::array<std::int64_t, 2> read{};
  std::array<std::int64_t, 2> update{};
  std::array<std::int64_t, 2> write{};
  // Stage by stage, as operations of several devices first come.
  const auto parent = [&](std::size_t d) {
    return writer->track_id(std::nullopt, "device", "csd" + std::to_string(d));
  };
  const auto way_of = [&](std::size_t d, const std::string& stage,
                          std::span<const rundb::TrackLink> links) {
    return writer->track_id(parent(d), "device", "csd" + std::to_string(d) + " " + stage, links);
  };
  for (std::size_t d = 0; d < 2; ++d) parent(d);
  for (std::size_t d = 0; d < 2; ++d) {
    const auto link = static_cast<std::int64_t>(d);
    read[d] = way_of(d, "state_read over internal",
                     std::array{rundb::TrackLink{link, rundb::Direction::read}});
  }
  for (std::size_t d = 0; d < 2; ++d) update[d] = way_of(d, "update", {});
  for (std::size_t d = 0; d < 2; ++d) {
    const auto link = static_cast<std::int64_t>(d);
    write[d] = way_of(d, "state_write over internal",
                      std::array{rundb::TrackLink{link, rundb::Direction::write}});
  }
  const std::int64_t gpu = made.has_gpu ? writer->track_id(std::nullopt, "cuda", "GPU0") : 0;
  const std::int64_t stream = made.has_gpu ? writer->track_id(gpu, "cuda", "stream 7") : 0;
  const std::int64_t counter = writer->track_id(std::nullopt, "counter", "made counter");
  for (std::int64_t s = 0; s < made.step_count; ++s) {
    rundb::Batch batch;
    const TimeNs begin = s * 100 * kMs;
    batch.steps.push_back({.id = s,
                           .ts = begin,
                           .dur = 100 * kMs,
                           .loss = made.loss - 0.1 * static_cast<double>(s),
                           .grad_norm = 1,
                           .lr = 1e-3 / static_cast<double>(s + 1),
                           .tokens = 64,
                           .skipped = false});
    if (s == 0) batch.knob_changes = made.changes;
    if (s == 0) batch.validations = made.validations;
    if (s == 0) batch.modes = {{.line = made.mode}};
    for (const std::string_view name : rundb::kLossCounts) {
      const bool is_dropped = name == rundb::kRecordsDropped;
      if (s > 0) break;
      batch.stats.push_back({.name = std::string(name),
                             .severity = rundb::Severity::loss,
                             .value = is_dropped ? made.lost_count : 0,
                             .description = is_dropped ? "the ring was full" : "another loss"});
    }
    if (made.has_spans) {
      batch.counters = {{counter, begin, 1.5}, {counter, begin + kMs, kNone}};
      std::int64_t id = writer->next_span_id();
      const auto add = [&](std::int64_t track, const char* name, TimeNs from_ms, TimeNs to_ms,
                           std::int64_t device, std::int64_t bytes) {
        batch.spans.push_back({.id = id,
                               .track_id = track,
                               .name_id = writer->string_id(name),
                               .submit_ts = begin + from_ms * kMs,
                               .ts = begin + from_ms * kMs,
                               .dur = (to_ms - from_ms) * kMs,
                               .step_id = s,
                               .subgroup_id = device >= 0 ? 4 : -1,
                               .device_id = device,
                               .layer_id = device < 0 ? 1 : -1,
                               .bytes = bytes,
                               .padding_bytes = bytes > 0 ? 4096 : 0});
        return id++;
      };
      add(compute, "forward", 0, 20, -1, 0);
      const std::int64_t backward = add(compute, "backward", 20, 50, -1, 0);
      add(read[0], "state_read", 50, 65, 0, 5'000'000);
      for (std::size_t d = 0; d < 2; ++d) {
        const auto device = static_cast<std::int64_t>(d);
        const std::int64_t from = add(read[d], "state_read", 50, 70, device, 20'000'000);
        const std::int64_t kernel = add(update[d], "update", 70, 80, device, 0);
        const std::int64_t to = add(write[d], "state_write", 80, 100, device, 20'000'000);
        batch.flows.push_back({backward, from});
        batch.flows.push_back({from, kernel});
        batch.flows.push_back({kernel, to});
      }
      if (made.has_gpu) add(stream, "softmax(float*, int)", 2, 18, -1, 0);
      for (std::int64_t i = 0; i < made.more_kernel_count; ++i) {
        batch.spans.push_back({.id = id++,
                               .track_id = compute,
                               .name_id = writer->string_id("gradient"),
                               .submit_ts = begin + i,
                               .ts = begin + i,
                               .dur = 1000,
                               .step_id = s});
      }
    }
    require_ok(writer->append(batch));
  }
  require_ok(writer->close());
}

inline std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace sluice::report
