#pragma once
// Samples of counters, kept in memory as they come: table `counter` has no index, and a counter is
// drawn at any zoom.
//
// Thread contract: one thread at a time; what it publishes is immutable.

#include <memory>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "gui/data/run_facts.h"
#include "storage/rundb/reader.h"

namespace sluice::gui {

// A column of the screen: what a counter was in it.
struct CounterColumn {
  TimeNs ts = 0;  // of the first sample
  double low = 0;
  double high = 0;
  double last = 0;
};

// Neighbouring samples with their lowest and highest value: a column that holds all of them looks
// at none by itself.
struct CounterChunk {
  std::vector<TimeNs> ts;
  std::vector<double> values;
  double low = 0;
  double high = 0;

  void add(TimeNs sample_ts, double value);
};

inline constexpr std::size_t kChunkSamples = 256;

// The samples of one counter, in order of time.
class CounterSamples {
 public:
  void add(TimeNs ts, double value);
  // One that further samples of this do not change; it shares all chunks but the last.
  std::shared_ptr<const CounterSamples> snapshot() const;

  bool is_empty() const { return count_ == 0; }
  std::int64_t count() const { return count_; }
  double low() const { return low_; }
  double high() const { return high_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  TimeNs last_ts() const { return chunks_.back()->ts.back(); }

  // From the last sample at or before `begin` on to the last one at or before `end`: a column from
  // its first sample, or `begin`, to that and `width_ns`.
  std::vector<CounterColumn> columns(TimeNs begin, TimeNs end, TimeNs width_ns) const;

 private:
  // All but the last are full, and never change again.
  std::vector<std::shared_ptr<CounterChunk>> chunks_;
  std::int64_t count_ = 0;
  double sum_ = 0;
  double low_ = 0;
  double high_ = 0;
};

struct Counters {
  std::unordered_map<std::int64_t, std::shared_ptr<const CounterSamples>> by_track;
  bool is_cut = false;  // there are more samples than are kept
};

// 16 bytes each: 64 MB. A counter sampled a hundred times a second fills that in eleven hours.
inline constexpr std::int64_t kCounterSamplesMax = 4'000'000;

class CounterStore {
 public:
  // False: nothing new.
  Result<bool> update(rundb::Reader& reader);
  std::shared_ptr<const Counters> counters() const;

 private:
  std::unordered_map<std::int64_t, CounterSamples> by_track_;
  std::int64_t last_row_ = 0;
  std::int64_t count_ = 0;
  bool is_cut_ = false;
};

}  // namespace sluice::gui
