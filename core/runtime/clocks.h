#pragma once
// The three clocks of D1.
//
// Thread contract: that of Clock: the owner thread.

#include <cstdint>
#include <memory>
#include <vector>

#include "base/id_vector.h"
#include "core/runtime/clock.h"
#include "core/runtime/cost_model.h"
#include "core/runtime/emulation_report.h"
#include "core/runtime/work_executor.h"

namespace sluice::runtime {

// Does the work; time passes by itself.
class RealClock : public Clock {
 public:
  explicit RealClock(std::unique_ptr<WorkExecutor> executor) : executor_(std::move(executor)) {}
  std::string_view name() const override { return "real"; }
  TimeNs now_ns() override;
  void start(OperationState* state) override { executor_->start(state); }
  int wake_fd() const override { return executor_->wake_fd(); }
  void wait(OperationQueue& completed, TimeNs patience_ns) override;

 private:
  std::unique_ptr<WorkExecutor> executor_;
};

// Does the work and charges the cost; an operation completes when the later of the two is done.
// One modelled second takes `time_scale` seconds of wall clock. While operations are under way it
// is the time of the last end of one, at its modelled instant if its work was done by then; so the
// time that the schedule itself takes delays nothing as long as the work keeps up. Kernels of one
// compute unit complete in the order asked, however late the work of one is.
class EmulatedClock : public Clock {
 public:
  EmulatedClock(std::unique_ptr<WorkExecutor> executor, const platform::Platform& platform,
                double time_scale);
  std::string_view name() const override { return "emulated"; }
  TimeNs now_ns() override;
  void start(OperationState* state) override;
  void wait(OperationQueue& completed, TimeNs patience_ns) override;
  int wake_fd() const override { return executor_->wake_fd(); }
  EmulationReport report() const;
  const EmulationReport& report(stages::Stage stage) const { return reports_[index_of(stage)]; }
  const EmulationReports& reports() const { return reports_; }

 private:
  TimeNs model_ns(TimeNs wall_ns) const;
  TimeNs wall_ns(TimeNs model_ns) const;
  bool collect(OperationQueue& completed);
  bool collect_charged(TimeNs wall_ns, OperationQueue& completed);
  bool is_behind_late(const CostModel::Completion& charged);
  void take_late();
  void complete(OperationState* state, TimeNs end_ns, OperationQueue& completed);
  TimeNs late_by_itself(const OperationState& state);

  std::unique_ptr<WorkExecutor> executor_;
  CostModel cost_;
  double time_scale_;
  TimeNs epoch_ns_;
  TimeNs model_now_ns_ = 0;
  std::int64_t inflight_count_ = 0;
  OperationQueue worked_;
  OperationQueue late_;  // work done after the modelled end
  // Kernels past their modelled end, first asked at the front: one whose work is not done, and
  // those behind it. By engine and compute unit.
  IdVector<platform::EngineId, std::vector<std::vector<OperationState*>>> late_kernels_;
  IdVector<platform::EngineId, std::vector<TimeNs>> kernel_end_ns_;  // the last one's, by unit
  std::vector<CostModel::Completion> charged_;
  EmulationReports reports_{};
};

// The disturbances of simulated time, by seed: delays that reorder completions, and failures.
struct Disturbance {
  std::uint64_t seed = 0;
  TimeNs delay_max_ns = 0;              // each operation waits a random time up to this
  std::int64_t failing_operation = -1;  // the n-th operation started fails; -1: none
};

// Charges the cost only; time jumps to the next completion. Deterministic.
class SimulatedClock : public Clock {
 public:
  SimulatedClock(const platform::Platform& platform, const Disturbance& disturbance);
  std::string_view name() const override { return "simulated"; }
  TimeNs now_ns() override { return now_ns_; }
  void start(OperationState* state) override;
  void wait(OperationQueue& completed, TimeNs patience_ns) override;

 private:
  CostModel cost_;
  Disturbance disturbance_;
  std::uint64_t random_state_;
  std::int64_t started_count_ = 0;
  TimeNs now_ns_ = 0;
  std::vector<CostModel::Completion> charged_;
};

}  // namespace sluice::runtime
