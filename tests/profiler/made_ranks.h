#pragma once
// The records of three ranks whose clocks are planted apart and one of which is planted late.
//
// By rank 0's clock each step takes 100 ms: forward 10 ms, backward 20 ms and how late the rank is,
// then all_reduce until 5 ms after the last rank has begun it, 10 ms of nothing, commit_ranks of
// 1 ms. Rank 1 has a kernel of the host beside the first 3 ms of its all_reduce.

#include <algorithm>
#include <array>
#include <cmath>

#include "storage/rundb/loss_counts.h"
#include "tests/made_stages.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice {

struct MadeRanks {
  std::int64_t step_count = 12;
  std::array<TimeNs, 3> late_ns = {0, 0, 40'000'000};
  // Ranks are late in this step alone, which takes longer by it; -1: in all, as long as ever.
  std::int64_t only_step = -1;
  // What is added to the rank's time for rank 0's, as the run begins and as it ends.
  std::array<TimeNs, 3> offset_ns = {0, 3'600'000'000'000, -77'000'000};
  std::array<TimeNs, 3> drift_ns = {0, 2'000'000, -30'000};
  TimeNs bound_ns = 2'000;
  bool has_offsets = true;
  std::string run_id = "a-run";
  std::array<std::int64_t, 3> lost_count = {0, 0, 0};
};

class MadeRankWriter {
 public:
  static constexpr TimeNs kMs = 1'000'000;
  static constexpr TimeNs kBegin = 500 * kMs;  // of the run, by rank 0's clock

  MadeRankWriter(const MadeRanks& made, std::size_t rank, const std::string& path)
      : made_(made),
        rank_(rank),
        writer_(rundb::require_ok(rundb::Writer::create(path, rundb::IfExists::replace))) {}

  void write() {
    rundb::Facts facts;
    facts.meta = {{"name", "made"},
                  {"rank", std::to_string(rank_)},
                  {"ranks", "3"},
                  {"run_id", made_.run_id},
                  {"processors", "2"}};
    facts.devices = {{.id = 0, .name = "csd0", .kind = "csd"}};
    facts.links = {
        {.id = 0, .name = "csd0.drive", .read_bytes_per_s = 1e9, .write_bytes_per_s = 1e9}};
    facts.stages = made_stages(*writer_);
    rundb::require_ok(writer_->write_facts(facts));
    compute_ = writer_->track_id(std::nullopt, "compute", "compute");
    host_ = writer_->track_id(std::nullopt, "host", "host");
    const std::int64_t device = writer_->track_id(std::nullopt, "device", "csd0");
    read_ = writer_->track_id(device, "device", "csd0 state_read over drive",
                              std::array{rundb::TrackLink{0, rundb::Direction::read}});
    memory_ = writer_->track_id(device, "counter", "csd0 memory used (bytes)");
    for (std::int64_t step = 0; step < made_.step_count; ++step) write_step(step);
    rundb::Batch last;
    if (made_.has_offsets) {
      const TimeNs end = kBegin + made_.step_count * 100 * kMs;
      last.clock_offsets = {offset(rundb::OffsetAt::begin, kBegin),
                            offset(rundb::OffsetAt::end, end)};
    }
    for (const std::string_view name : rundb::kLossCounts) {
      last.stats.push_back({.name = std::string(name),
                            .severity = rundb::Severity::loss,
                            .value = name == rundb::kRecordsDropped ? made_.lost_count[rank_] : 0,
                            .description = "of a kind"});
    }
    rundb::require_ok(writer_->append(last));
    rundb::require_ok(writer_->close());
  }

 private:
  // The rank's clock when rank 0's shows `ts`.
  TimeNs own(TimeNs ts) const {
    const auto length = static_cast<double>(made_.step_count * 100 * kMs);
    const double part = std::clamp(static_cast<double>(ts - kBegin) / length, 0.0, 1.0);
    return ts - made_.offset_ns[rank_] -
           std::llround(part * static_cast<double>(made_.drift_ns[rank_]));
  }
  rundb::ClockOffsetRow offset(rundb::OffsetAt at, TimeNs ts) const {
    return {.at = at,
            .ts = own(ts),
            .offset = ts - own(ts),
            .bound = made_.bound_ns * (rank_ == 2 ? 3 : 1)};
  }

  void add(std::int64_t track, const char* name, std::int64_t step, TimeNs begin, TimeNs end,
           std::int64_t layer) {
    batch_.spans.push_back({.id = writer_->next_span_id() + std::ssize(batch_.spans),
                            .track_id = track,
                            .name_id = writer_->string_id(name),
                            .submit_ts = own(begin),
                            .ts = own(begin),
                            .dur = own(end) - own(begin),
                            .step_id = step,
                            .device_id = track == read_ ? 0 : -1,
                            .layer_id = layer,
                            .bytes = track == read_ ? 4096 : 0});
  }

  void write_step(std::int64_t step) {
    batch_ = {};
    const bool is_late = made_.only_step < 0 || step == made_.only_step;
    const TimeNs late = is_late ? *std::ranges::max_element(made_.late_ns) : 0;
    const bool is_after = made_.only_step >= 0 && step > made_.only_step;
    const TimeNs begin =
        kBegin + step * 100 * kMs + (is_after ? *std::ranges::max_element(made_.late_ns) : 0);
    const TimeNs dur = 100 * kMs + (made_.only_step >= 0 ? late : 0);
    const TimeNs own_sum = begin + 30 * kMs + (is_late ? made_.late_ns[rank_] : 0);
    const TimeNs last_sum = begin + 30 * kMs + late;
    add(compute_, "forward", step, begin, begin + 10 * kMs, 0);
    add(compute_, "backward", step, begin + 10 * kMs, own_sum, 0);
    add(host_, "all_reduce", step, own_sum, last_sum + 5 * kMs, 0);
    if (rank_ == 1) add(host_, "gradient", step, own_sum, own_sum + 3 * kMs, 0);
    add(host_, "commit_ranks", step, last_sum + 15 * kMs, last_sum + 16 * kMs, -1);
    add(read_, "state_read", step, begin + kMs, begin + 2 * kMs, -1);
    batch_.flows = {{batch_.spans[0].id, batch_.spans[1].id},
                    {batch_.spans[1].id, batch_.spans[2].id}};
    batch_.counters = {{memory_, own(begin), 7.5}};
    batch_.steps = {{.id = step,
                     .ts = own(begin),
                     .dur = own(begin + dur) - own(begin),
                     .loss = 2,
                     .tokens = 64}};
    if (step == 0) batch_.modes = {{own(begin), 0, "csd \u00b7 nbuffer \u00b7 3 ranks"}};
    std::ranges::stable_sort(batch_.spans, {}, &rundb::SpanRow::id);
    rundb::require_ok(writer_->append(batch_));
  }

  const MadeRanks& made_;
  const std::size_t rank_;
  std::unique_ptr<rundb::Writer> writer_;
  rundb::Batch batch_;
  std::int64_t compute_ = 0, host_ = 0, read_ = 0, memory_ = 0;
};

// Their paths, by rank.
inline std::vector<std::string> write_made_ranks(const rundb::TempFolder& folder,
                                                 const MadeRanks& made = {}) {
  std::vector<std::string> paths;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    paths.push_back(folder.file("rank-" + std::to_string(rank) + ".db"));
    MadeRankWriter(made, rank, paths.back()).write();
  }
  return paths;
}

}  // namespace sluice
