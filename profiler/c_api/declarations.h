#pragma once
// What a program has said of its devices, links and stages: in the file before they are given out.
//
// Thread contract: every function from any thread.

#include <array>
#include <atomic>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "profiler/collect/collector.h"
#include "profiler/record/recorder.h"

namespace sluice::c_api {

// Tracks with a device: their spans carry its id, which a record has to find without a lock.
inline constexpr std::size_t kDeviceTracksMax = 4096;

// Bytes a second at most; 0: not known.
struct LinkRates {
  double read = 0;
  double write = 0;
};

class Declarations {
 public:
  Declarations();

  // The same name again is the same, with what it was said to be at first. Errors: those of the
  // recording, which has ended then.
  Status stage(collect::Collector& collector, record::NameId name, rundb::StageRow meaning);
  Result<std::int32_t> device(collect::Collector& collector, const std::string& name,
                              const LinkRates& rates);
  Result<std::int32_t> link(collect::Collector& collector, const std::string& name,
                            const LinkRates& rates);

  // The links that a track of the device and over the link crosses; either may be -1. Errors:
  // ErrorCode::config for one that was never given out.
  Result<std::vector<std::int64_t>> route(std::int32_t device, std::int32_t link) const;
  // Errors: ErrorCode::config where it is too late a track.
  Status set_device(record::TrackId track, std::int32_t device);
  void lock_for_fork() NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
  void unlock_after_fork() NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }

  // -1: none.
  std::int16_t device_of(record::TrackId track) const {
    const auto index = static_cast<std::size_t>(track);
    return index < kDeviceTracksMax ? device_of_track_[index].load(std::memory_order_relaxed) : -1;
  }

 private:
  struct Device {
    std::int32_t id = 0;
    std::int32_t link = 0;
  };

  std::int32_t add_link(const std::string& name, const LinkRates& rates, collect::RunFacts& facts)
      REQUIRES(mutex_);

  std::array<std::atomic<std::int16_t>, kDeviceTracksMax> device_of_track_;
  mutable Mutex mutex_;
  std::set<record::NameId> stages_ GUARDED_BY(mutex_);
  std::map<std::string, Device> devices_ GUARDED_BY(mutex_);
  std::map<std::string, std::int32_t> links_ GUARDED_BY(mutex_);
};

}  // namespace sluice::c_api
