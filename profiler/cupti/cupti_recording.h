#pragma once
// The GPU's work, as spans of the run: kernels, copies, memory, waiting, and the cost of the
// tracing itself, through CUPTI's activity records (docs/recording.md).
//
// One thread of the recording asks CUPTI to flush each flush interval, decodes what came and pushes
// it into a ring of its own; the run's threads only lend buffers. While the recorder's level is
// below `all`, buffers are handed back undecoded, and counted.
//
// A build without CUPTI's headers has this header too: there start() fails and says so.
//
// Thread contract: start() before the first call of CUDA in the process (what it sets holds for
// contexts that are made later), stop() when no thread pushes regions any more. Everything else
// from any thread. One recording a process at a time: CUPTI's state is the process's.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "base/units.h"
#include "profiler/record/recorder.h"
#include "profiler/record/side_recorder.h"

namespace sluice::cupti {

struct CuptiApi;

// CLOCK_REALTIME, which CUPTI stamps with, and CLOCK_MONOTONIC, the run's clock, read together.
struct ClockSnapshot {
  TimeNs monotonic_ts = 0;
  TimeNs realtime_ts = 0;
  TimeNs uncertainty_ns = 0;  // between the two readings of the monotonic clock around the other
};

struct CuptiOptions {
  // How late records reach the ring; what CUPTI's own thread is told as its period, too.
  std::chrono::milliseconds flush_interval{200};
  std::chrono::milliseconds snapshot_interval{1000};
  // Host memory for records: at most N buffers of 4 MiB.
  int buffer_count_max = 32;
  // Memory of the GPU for time stamps: at most N times 3.2 MB. CUPTI's own limit is 250, or
  // 800 MB, which a run that offloads for lack of memory does not have.
  std::int64_t device_buffer_count_max = 16;
  // Between two drains of the collector.
  std::size_t ring_record_count = std::size_t{1} << 17;
  // Device records that wait for the call that they belong to.
  std::size_t held_count_max = std::size_t{1} << 16;
  // Empty: libcupti of the version that this was built with, where the loader has it.
  std::string library = {};
};

// The recording's counts of itself; its losses and their reasons.
using CuptiCount = record::SideCount;

class CuptiRecording final : public record::SideRecorder {
 public:
  // A region that ends where this does, on the thread that began it.
  class [[nodiscard]] Region {
   public:
    ~Region();
    Region(Region&& other) noexcept;
    Region& operator=(Region&&) = delete;

   private:
    friend class CuptiRecording;
    Region(CuptiRecording* recording, int kind) : recording_(recording), kind_(kind) {}
    CuptiRecording* recording_;  // null: nothing to pop
    int kind_;
  };

  // The recorder outlives the recording. Fails, and leaves CUPTI as it was, where the library, the
  // driver or the permission is missing: the message says which, and what to do.
  static Result<std::unique_ptr<CuptiRecording>> start(record::Recorder& recorder,
                                                       const CuptiOptions& options = {});
  // The same with other functions in CUPTI's place.
  static Result<std::unique_ptr<CuptiRecording>> start(record::Recorder& recorder,
                                                       const CuptiApi& api,
                                                       const CuptiOptions& options);
  ~CuptiRecording() override;  // stops; an error is lost, so call stop()

  // The calling thread's requests to the GPU belong from now on to this step, or layer. Regions of
  // a kind nest. A push that CUPTI refuses is counted.
  Region step_region(std::int32_t step);
  Region layer_region(LayerId layer);

  // Takes from CUPTI what is complete and pushes it. Once around by itself each flush interval.
  Status flush();

  // Takes what is left, complete or not, and gives the memory back. The GPU's work of the run is
  // done (synchronized) before it. Once; returns the first error of the recording.
  Status stop();

  // From the `from`th on. The oldest are dropped after 18 hours.
  std::vector<ClockSnapshot> clock_snapshots_since(std::size_t from) const;

  std::vector<CuptiCount> counts() const;

  // For Collector::attach, which writes both into the run database.
  const char* clock_name() const override { return "cupti"; }
  std::vector<record::SideCount> side_counts() const override { return counts(); }
  std::vector<record::ClockReading> clock_readings_since(std::size_t from) const override;
  // Where the last buffer that could not be read was damaged; empty if none was.
  std::string last_damage() const;

 private:
  struct Impl;
  explicit CuptiRecording(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

// Tries, for `sluice doctor`: is it built in, is the library there, can a kind be enabled? The
// finding in words.
Result<std::string> probe(const std::string& library = {});

}  // namespace sluice::cupti
