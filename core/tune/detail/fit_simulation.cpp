#include "core/tune/detail/fit_simulation.h"

#include "core/plan/run_plan.h"
#include "core/runtime/operation.h"
#include "core/simulate/simulation.h"

namespace sluice::tune::detail {
namespace {

class ChargeSink final : public runtime::OperationSink {
 public:
  ChargeSink(const platform::Platform& platform, ChargedStep& charged)
      : platform_(platform), charged_(charged) {}
  void on_submit(const runtime::OperationState& /*state*/) override {}
  void on_finish(const runtime::OperationState& state) override {
    const runtime::OperationLabel& label = state.operation.label;
    const runtime::Cost& cost = state.operation.cost;
    const OperationTimes times{label.stage,
                               label.device,
                               label.layer,
                               label.subgroup,
                               state.start_ns,
                               state.end_ns,
                               label.size_bytes + label.padding_bytes,
                               cost.direction};
    charged_.times.operations.push_back(times);
    add_toll(label, cost.route);
    if (platform::index_of(cost.engine) < 0) return;
    KernelCharge& charge = charged_.kernels[key_of(times)];
    charge.engine = cost.engine;
    charge.seconds += static_cast<double>(cost.engine_dur_ns) / 1e9;
    charge.count += 1;
  }

 private:
  void add_toll(const runtime::OperationLabel& label, std::span<const platform::LinkId> route) {
    double toll = 0;
    for (const platform::LinkId id : route) {
      toll += platform_.links[static_cast<std::size_t>(platform::index_of(id))].toll_per_byte();
    }
    if (toll > 0) charged_.tolls[{label.stage, label.device}] = toll;
  }

  const platform::Platform& platform_;
  ChargedStep& charged_;
};

}  // namespace

Result<ChargedStep> simulate_charged(const plan::RunPlan& plan) {
  ChargedStep charged;
  ChargeSink sink(plan.platform, charged);
  ASSIGN_OR_RETURN(charged.step, simulate::simulate_step(plan, nullptr, &sink));
  charged.times.steps = charged.step.steps;
  keep_those_of_steps(charged.times);
  return charged;
}

void scale_link(platform::Link& link, platform::Direction direction, double factor) {
  const bool reads = direction == platform::Direction::read;
  (reads ? link.read_bytes_per_s : link.write_bytes_per_s) *= factor;
  (reads ? link.read_burst : link.write_burst).bytes_per_s *= factor;
  for (platform::ChunkPoint& point : link.chunk_curve) {
    (reads ? point.read_bytes_per_s : point.write_bytes_per_s) *= factor;
  }
}

const char* direction_key(platform::Direction direction) {
  return direction == platform::Direction::read ? "read" : "write";
}

}  // namespace sluice::tune::detail
