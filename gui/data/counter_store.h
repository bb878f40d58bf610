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

struct CounterSamples {
  std::vector<TimeNs> ts;  // in order
  std::vector<double> values;
  double low = 0;
  double high = 0;
  double last() const { return values.empty() ? 0 : values.back(); }
  double mean() const;
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
