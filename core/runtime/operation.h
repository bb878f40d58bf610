#pragma once
// An operation: the only way to move a byte or start a kernel. It carries the work (what is really
// done), the cost (what the platform model charges for it) and what it is called in the record. The
// real clock does the work, the simulated clock charges the cost, the emulated clock does both and
// completes when the later of them is done (D1).
//
// Thread contract: plain data; sinks are called on the owner thread.

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/status.h"
#include "base/units.h"
#include "core/platform/platform.h"
#include "core/runtime/completion.h"
#include "core/runtime/inline_function.h"
#include "core/stages/activation_events.h"
#include "core/stages/stage.h"
#include "storage/io/io_engine.h"

namespace sluice::runtime {

class Runtime;

// Who it is: what the record, the byte counters and a stuck schedule's report say of it.
struct OperationLabel {
  stages::Stage stage = stages::Stage::update;
  DeviceId device = kNoDevice;
  SubgroupId subgroup = kNoSubgroup;
  LayerId layer = kNoLayer;
  std::int64_t size_bytes = 0;     // payload moved, exact; or gradients that compression is given
  std::int64_t padding_bytes = 0;  // moved besides, to fill whole pages
  std::int64_t place_bytes = -1;   // offset in its file, of a transfer from or to a drive
  std::int32_t step = -1;          // that it is part of; -1: the one that the runtime is in
  std::int32_t accelerator = -1;   // Platform::accelerator_routes
};

struct Cost {
  // A transfer: `label.size_bytes` over these links. Empty: no transfer.
  std::span<const platform::LinkId> route;
  platform::Direction direction = platform::Direction::read;
  // At most inflight_bytes of a drive's file are in flight in each direction (io_lanes.h), and the
  // others wait. 0: no file.
  stages::DriveFile file = stages::DriveFile::state;
  std::int64_t inflight_bytes = 0;
  // A kernel: so long on this engine, after what was asked of it before. -1: no kernel.
  platform::EngineId engine{-1};
  TimeNs engine_dur_ns = 0;
};

enum class WorkKind : std::uint8_t {
  none,
  transfer,  // by the I/O engine
  function,  // on a worker, which it occupies
  external,  // elsewhere: started here, its end noted through a Completion
};
enum class Workers : std::uint8_t {
  compute,  // one thread: forward and backward (libtorch's threads belong to it)
  host,     // kernels of the host and of emulated devices, staging, commits
};

struct Work {
  WorkKind kind = WorkKind::none;
  // transfer
  const io::File* file = nullptr;
  std::int64_t offset_bytes = 0;
  std::span<std::byte> data;
  io::IoDirection direction = io::IoDirection::read;
  // function
  Workers workers = Workers::host;
  InlineFunction function;
  // external: called on the owner thread; hands the work over and returns. An error means that
  // nothing runs and no note will come.
  InlineCall<80, Completion> start;
  // external, may be empty: called on the owner thread once the end was noted, with what was noted,
  // for what a note cannot carry (a device's result buffer). What it returns is the outcome. Short,
  // since the schedule waits; not called for an operation that was given up or never started.
  InlineCall<16, Status> finish;
  TimeNs patience_ns = 0;  // after which an end that is not noted fails the operation; 0: never
};

struct Operation {
  Runtime* runtime = nullptr;
  OperationLabel label;
  Cost cost;
  Work work;
};

// An operation on its way. Lives in the frame of the coroutine that awaits it.
struct OperationState {
  Operation operation;
  TimeNs submit_ns = 0;  // of the run's clock
  TimeNs start_ns = 0;   // after it waited for its link or engine
  TimeNs end_ns = 0;
  TimeNs modelled_start_ns = 0;  // emulated: when the platform says it starts
  TimeNs modelled_end_ns = 0;    // and ends
  std::int32_t step = -1;
  std::int32_t unit = -1;  // compute unit that a kernel ran on, from 0; -1: there is but one
  Status status;

  // Kept by the runtime and the clock.
  bool work_done = false;
  bool cost_done = false;
  std::int64_t issued_bytes = 0;       // of a transfer, handed to the I/O engine
  std::int64_t inflight_requests = 0;  // of a transfer, not yet reaped
  OperationState* next = nullptr;      // in the one queue it is in
  OperationState* inflight_previous = nullptr;
  OperationState* inflight_next = nullptr;
  struct Arrival* arrival = nullptr;
};

// Told of each operation; what records, counts and checks. Called on the owner thread.
class OperationSink {
 public:
  virtual ~OperationSink() = default;
  virtual void on_submit(const OperationState& state) = 0;
  virtual void on_finish(const OperationState& state) = 0;
  // Told when it is added, of each operation that is under way then.
  virtual void on_found(const OperationState& /*state*/) {}
  // How many buffers of a device are in use from now on.
  virtual void on_buffers(DeviceId /*device*/, std::int32_t /*in_use*/, TimeNs /*now_ns*/) {}
  // When the wait is over.
  virtual void on_activation_wait(const stages::ActivationWaited& /*waited*/) {}
  // How many bytes of activations are alive in a tier from now on.
  virtual void on_activation_bytes(stages::ActivationTier /*tier*/, std::int64_t /*size_bytes*/,
                                   TimeNs /*now_ns*/) {}
};

}  // namespace sluice::runtime
