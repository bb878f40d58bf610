#pragma once
// When the platform says an operation ends. One piece of code for the emulated and the simulated
// clock (D1); times are the model's own nanoseconds.
//
// - A transfer flows through the flow network, which shares its links.
// - On a link with sharing in_order the transfers of one direction wait for one another; their
//   latencies pass meanwhile. At most `inflight_bytes` of one file are in a drive's queue; requests
//   for another file may overtake those that wait behind this limit.
// - An engine's kernels start in the order asked, each on the first of its compute units that is
//   free; a unit runs one at a time. Engines of one processor share its time as transfers share a
//   link: kernels of two, or of two units, take twice as long each while both run.
// - A transfer over a link with a processor_bandwidth takes the time it needs of the host's
//   processor, and the kernels there have the rest.
//
// Thread contract: owner thread only. Deterministic.

#include <array>
#include <cstdint>
#include <vector>

#include "core/platform/flow_network.h"
#include "core/runtime/operation.h"

namespace sluice::runtime {

class CostModel {
 public:
  explicit CostModel(const platform::Platform& platform);

  // `extra_ns` is added before the operation's own cost begins.
  void start(OperationState* state, TimeNs now_ns, TimeNs extra_ns);
  TimeNs next_completion_ns() const;  // FlowNetwork::kNever when idle

  struct Completion {
    OperationState* state;
    TimeNs begin_ns;  // after what it had to wait for in its queue
    TimeNs at_ns;
    std::int32_t unit;  // of a kernel's engine, from 0
  };
  // Appends what is complete at `now_ns`, by time and then by order of start.
  void advance(TimeNs now_ns, std::vector<Completion>& completed);

 private:
  static constexpr std::size_t kNoQueue = static_cast<std::size_t>(-1);

  struct Pending {
    TimeNs begin_ns;
    TimeNs at_ns;
    std::int64_t order;
    OperationState* state;
    std::int32_t unit = 0;
    friend bool operator>(const Pending& a, const Pending& b) {
      return a.at_ns != b.at_ns ? a.at_ns > b.at_ns : a.order > b.order;
    }
  };
  // A transfer, or a kernel of an engine that shares its processor or has to wake.
  struct Sharer {
    OperationState* state;
    std::int64_t order;
    TimeNs asked_ns;
    TimeNs extra_ns;
    std::size_t queue;    // kNoQueue: none
    TimeNs begin_ns = 0;  // set when it leaves the queue, as is:
    std::int32_t unit = 0;
  };
  struct Flow {
    platform::FlowId id;
    Sharer sharer;
  };
  // The operations that have no room in the queue yet.
  struct Lane {
    std::vector<Sharer> waiting;    // first come at the front
    std::int64_t queued_bytes = 0;  // of those that had, until they are complete
  };
  // The queue of one direction of a link whose transfers go in order, which is a single unit, or of
  // an engine.
  struct Queue {
    std::uint64_t free_units = 1;  // a bit each
    std::vector<Sharer> waiting;   // first come at the front
    std::array<Lane, stages::kDriveFileCount> lanes;
  };
  struct Engine {
    std::vector<TimeNs> free_ns;         // by unit, with a processor of its own that never sleeps
    std::size_t queue = kNoQueue;        // of the others
    std::vector<platform::LinkId> time;  // of their processor, and their own if they have to wake
  };
  static std::vector<platform::Link> links_and_processors(const platform::Platform& platform);
  static std::int32_t first_free(const std::vector<TimeNs>& free_ns, TimeNs now_ns);
  void add_engines(const platform::Platform& platform);
  const Engine& engine_of(const Cost& cost) const {
    return engines_[static_cast<std::size_t>(index_of(cost.engine))];
  }
  std::size_t queue_of(const Operation& operation) const;
  std::int64_t inflight_bytes(const Sharer& transfer) const;
  void start_flow(Sharer sharer, TimeNs now_ns);
  static Lane& lane_of(Queue& queue, const Sharer& sharer);
  static void let_in(Queue& queue);
  void start_next(std::size_t queue, TimeNs now_ns);

  platform::FlowNetwork network_;
  std::vector<std::size_t> first_queue_;  // by link: of its two directions; kNoQueue: fair
  std::vector<double> toll_;              // by link: of the host processor's time, a byte
  platform::LinkId host_time_{-1};
  std::vector<Queue> queues_;
  std::vector<Engine> engines_;
  std::vector<Pending> pending_;  // a heap: other kernels, and operations that cost nothing
  std::vector<Flow> flows_;
  std::vector<platform::FlowNetwork::Completion> finished_flows_;
  std::vector<Pending> sorted_;
  std::int64_t next_order_ = 0;
};

}  // namespace sluice::runtime
