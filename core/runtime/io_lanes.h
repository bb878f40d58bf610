#pragma once
// Cuts transfers into requests of `io_bytes` and keeps at most `queue_depth` of them in flight for
// each file and direction. First come, first served within a lane, so the transfer that the
// schedule asked for first is back first; reads and writes have lanes of their own, since a device
// that is slow at one must not hold up the other.
//
// Thread contract: owner thread only.

#include <memory>
#include <vector>

#include "core/runtime/clock.h"
#include "storage/io/io_engine.h"

namespace sluice::runtime {

class IoLanes {
 public:
  struct Options {
    std::int64_t io_bytes = 1 << 20;
    std::int64_t queue_depth = 16;  // requests in flight a lane
  };
  IoLanes(std::unique_ptr<io::IoEngine> engine, const Options& options);

  // Only while idle; forgets the files, which may be closed by now.
  void set_options(const Options& options);
  // Begins with the next issue(), so that one call of the kernel takes what one instant sets off.
  void start(OperationState* state);
  // Hands the engine what there is room for.
  void issue();
  // Reaps what has finished without waiting, and moves transfers that are complete to `done`.
  void collect(OperationQueue& done);
  int completion_fd() const { return engine_->completion_fd(); }
  std::string_view engine_name() const { return engine_->name(); }
  bool idle() const { return engine_->inflight_count() == 0; }

 private:
  struct Lane {
    const io::File* file;
    io::IoDirection direction;
    std::int64_t inflight_count = 0;
    OperationQueue waiting;  // the front one is being issued
  };
  Lane& lane_of(const Work& work);
  void issue_from(Lane& lane);
  void flush_requests();
  void finish_if_complete(OperationState* state, OperationQueue& done);

  std::unique_ptr<io::IoEngine> engine_;
  Options options_;
  std::vector<Lane> lanes_;
  std::vector<io::IoRequest> requests_;  // prepared, not yet taken by the engine
  std::vector<io::IoCompletion> completions_;
  OperationQueue empty_transfers_;
};

}  // namespace sluice::runtime
