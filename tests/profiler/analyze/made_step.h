#pragma once
// A step made by hand, for tests of the analysis: four CSDs behind one host link.

#include <algorithm>
#include <deque>
#include <string>

#include "profiler/analyze/run_data.h"
#include "tests/made_stages.h"

namespace sluice::analyze {

inline constexpr std::int64_t kMs = 1'000'000;

// About what an operation is.
struct Of {
  std::int32_t device = -1;
  std::int32_t subgroup = -1;
  std::int32_t layer = -1;
  std::int64_t bytes = 0;
  std::int64_t asked_ms = -1;  // -1: when it began
};

class MadeStep {
 public:
  enum class Drives { full_duplex, half_duplex };

  // A step of `dur_ms` from time 0. Drives read and write 1 GB/s, the host link 10 GB/s, an
  // accelerator's own 5 GB/s.
  explicit MadeStep(std::int64_t dur_ms, Drives drives = Drives::full_duplex) {
    info_.meta = {{"processors", "2"}};
    info_.links.push_back(
        {.id = 0, .name = "host", .read_bytes_per_s = 10e9, .write_bytes_per_s = 10e9});
    for (std::int64_t d = 0; d < 4; ++d) {
      info_.links.push_back({.id = d + 1,
                             .name = "csd" + std::to_string(d) + ".drive",
                             .read_bytes_per_s = 1e9,
                             .write_bytes_per_s = 1e9,
                             .full_duplex = drives == Drives::full_duplex});
    }
    info_.links.push_back(
        {.id = 5, .name = "accelerator0.link", .read_bytes_per_s = 5e9, .write_bytes_per_s = 5e9});
    for (std::int64_t d = 0; d < 4; ++d) {
      info_.devices.push_back({.id = d, .name = "csd" + std::to_string(d), .kind = "csd"});
    }
    step_.info = &info_;
    step_.row = {.id = 7, .ts = 0, .dur = dur_ms * kMs};
  }

  // Its id. Bytes of a transfer, if not given: what its drive moves in that time.
  std::int64_t add(const std::string& stage, std::int64_t begin_ms, std::int64_t end_ms,
                   Of of = {}) {
    const bool is_transfer = track_of(stage, of.device).links.size() > 0;
    if (is_transfer && of.bytes == 0) of.bytes = (end_ms - begin_ms) * kMs;
    const auto id = static_cast<std::int64_t>(step_.spans.size()) + 1;
    const rundb::SpanRow row{.id = id,
                             .submit_ts = (of.asked_ms < 0 ? begin_ms : of.asked_ms) * kMs,
                             .ts = begin_ms * kMs,
                             .dur = (end_ms - begin_ms) * kMs,
                             .step_id = 7,
                             .subgroup_id = of.subgroup,
                             .device_id = of.device,
                             .layer_id = of.layer,
                             .bytes = of.bytes};
    step_.spans.push_back({row, &track_of(stage, of.device), &name(stage), stage_of(stage)});
    return id;
  }
  // As a clock of coarse ticks has it: asked for and begun a little before what it follows ended.
  void begin_earlier(std::int64_t id, TimeNs by_ns) {
    Span& span = step_.spans[static_cast<std::size_t>(id) - 1];
    span.submit_ts -= by_ns;
    span.ts -= by_ns;
    span.dur += by_ns;
  }
  void flow(std::int64_t from, std::int64_t to) { step_.flows.push_back({from, to}); }

  const StepData& data() const { return step_; }

 private:
  const std::string& name(const std::string& text) {
    for (const std::string& known : names_) {
      if (known == text) return known;
    }
    return names_.emplace_back(text);
  }

  // Null: "collect", or what a GPU ran.
  const rundb::StageRow* stage_of(const std::string& text) {
    const auto known = std::ranges::find(stages::kStages, text, &stages::StageInfo::name);
    if (known == stages::kStages.end()) return nullptr;
    const auto id = static_cast<std::int64_t>(stages::index_of(known->stage));
    return &info_.stages.try_emplace(id, made_stage(*known, id)).first->second;
  }

  const TrackInfo& track_of(const std::string& stage, std::int32_t device) {
    const bool is_of_drive = stage == "state_read" || stage == "gradient_read" ||
                             stage == "state_write" || stage.starts_with("activation_");
    const bool is_of_host_link = stage == "gradient_down" || stage == "parameters_up";
    TrackInfo made;
    made.kind = "host";
    if (stage == "forward" || stage == "backward") made.kind = "compute";
    if (stage == "collect") made.kind = "recorder";
    if (stage.starts_with("activations ")) made.kind = "waiting";  // named by its cause
    if (device >= 0) made.kind = "device";
    made.name = made.kind + (made.kind == "device" ? std::to_string(device) + stage : "");
    if (is_of_drive) made.links = {device + 1};
    if (is_of_host_link) made.links = {0};
    if (stage == "layer_in" || stage == "gradient_out") {  // of an accelerator
      made.links = {0, 5};
      made.name += stage;
    }
    if (stage == "kernel") made.name = made.kind = "cuda";
    made.direction = stage.ends_with("_write") || stage == "gradient_down" ? rundb::Direction::write
                                                                           : rundb::Direction::read;
    for (const TrackInfo& known : tracks_) {
      if (known.name == made.name) return known;
    }
    made.id = static_cast<std::int64_t>(tracks_.size());
    return tracks_.emplace_back(made);
  }

  RunInfo info_;
  StepData step_;
  std::deque<TrackInfo> tracks_;  // spans point into these
  std::deque<std::string> names_;
};

}  // namespace sluice::analyze
