#include "core/tune/detail/kernel_fit.h"

#include <algorithm>
#include <cmath>

#include "core/csd/update_kernel.h"
#include "core/model/flop.h"
#include "core/plan/run_plan.h"
#include "core/tune/detail/transfer_tolls.h"

namespace sluice::tune::detail {
namespace {

using stages::Stage;

// Charged and recorded time of kernels that have a rate in common, without their launches.
struct KernelTimes {
  double charged_seconds = 0;
  double recorded_seconds = 0;
};

struct LayerTimes {
  double products_seconds = 0;  // charged
  double values_seconds = 0;
  double recorded_seconds = 0;
};

class KernelFit {
 public:
  KernelFit(const plan::RunPlan& plan, const ChargedStep& charged)
      : plan_(plan), charged_(charged) {}

  std::vector<RateFactor> factors(const RecordedSteps& recorded) {
    std::map<platform::EngineId, std::vector<OperationTimes>> by_processor;
    for (const OperationTimes& operation : recorded.operations) {
      const auto charge = charged_.kernels.find(key_of(operation));
      if (charge == charged_.kernels.end()) continue;
      const platform::EngineId id = charge->second.engine;
      const platform::EngineId processor = engine(id).processor;
      by_processor[platform::index_of(processor) < 0 ? id : processor].push_back(operation);
    }
    const TransferTolls tolls(charged_, recorded);
    for (const auto& [processor, kernels] : by_processor) {
      const bool is_shared = std::ranges::any_of(
          plan_.platform.engines,
          [&](const platform::Engine& other) { return other.processor == processor; });
      const std::vector<double> own =
          own_seconds(kernels, is_shared ? KernelOrder::at_once : recorded.kernel_order,
                      engine(processor).compute_units);
      for (std::size_t i = 0; i < kernels.size(); ++i) {
        const double taken = processor == plan_.platform.host_engine
                                 ? tolls.share(kernels[i].start_ns, kernels[i].end_ns)
                                 : 0;
        add(kernels[i], own[i] * (1 - taken));
      }
    }
    return rates();
  }

 private:
  const platform::Engine& engine(platform::EngineId id) const {
    return plan_.platform.engines[static_cast<std::size_t>(platform::index_of(id))];
  }

  void add(const OperationTimes& kernel, double own_seconds) {
    const KernelCharge& charge = charged_.kernels.at(key_of(kernel));
    const double launch_seconds = static_cast<double>(engine(charge.engine).launch_ns) / 1e9;
    const double charged_seconds = charge.mean_seconds() - launch_seconds;
    // A kernel that is charged its launch alone says nothing of a rate.
    if (charged_seconds <= 0) return;
    const double recorded_seconds = own_seconds - launch_seconds;
    const stages::StageRate rate = stages::stage_info(kernel.stage).rate;
    if (rate == stages::StageRate::layer) {
      // A program's own costs are as recorded, whatever the rates.
      if (!plan_.is_of_tensors()) add_layer(kernel, charged_seconds, recorded_seconds);
      return;
    }
    // The compute engine checks gradients at the rate that its layers say more of.
    if (rate == stages::StageRate::stage && charge.engine == plan_.platform.compute_engine) return;
    KernelTimes& times = kernels_[{charge.engine, rate_key(rate, engine(charge.engine))}];
    times.charged_seconds += charged_seconds;
    times.recorded_seconds += recorded_seconds;
  }

  std::string rate_key(stages::StageRate rate, const platform::Engine& of) const {
    if (rate == stages::StageRate::compress) return "compress";
    if (rate == stages::StageRate::checksum && of.rate.contains("checksum")) return "checksum";
    if (rate != stages::StageRate::rule) return "stage";
    const std::string rule = csd::update_rate(of, optimizer::rule_info(plan_.config.update.rule),
                                              plan_.config.offload.state_format.kind);
    const auto decompress = of.rate.find("decompress");
    const bool is_slower = plan_.options.is_sparse() && decompress != of.rate.end() &&
                           decompress->second < of.rate.at(rule);
    return is_slower ? "decompress" : rule;
  }

  void add_layer(const OperationTimes& kernel, double charged_seconds, double recorded_seconds) {
    const settings::BatchConfig& batch = plan_.config.batch;
    const model::Activations activations = plan_.config.arithmetic.activations.of(kernel.layer);
    const bool is_forward = stages::stage_info(kernel.stage).phase == stages::StagePhase::forward;
    const double elements =
        is_forward ? model::forward_elements(plan_.shape, kernel.layer, batch.batch, batch.sequence)
                   : model::backward_elements(plan_.shape, kernel.layer, batch.batch,
                                              batch.sequence, activations);
    const auto& rates = engine(plan_.platform.compute_engine).rate;
    const auto elementwise = rates.find("elementwise");
    const double values_seconds = elementwise == rates.end() ? 0 : elements / elementwise->second;
    LayerTimes& times = layers_[{kernel.stage, kernel.layer}];
    times.products_seconds += charged_seconds - values_seconds;
    times.values_seconds += values_seconds;
    times.recorded_seconds += recorded_seconds;
  }

  std::vector<RateFactor> rates() const {
    std::vector<RateFactor> factors;
    for (const auto& [of, times] : kernels_) {
      if (times.recorded_seconds <= 0) continue;  // within the launches: no rate is fast enough
      factors.push_back(
          {engine(of.first).name, of.second, times.charged_seconds / times.recorded_seconds});
    }
    add_compute(factors);
    return factors;
  }

  // Least squares of products x a + values x b = recorded, a layer and direction weighing as much
  // as it takes. Where the layers' shares of the two are too much alike to tell them apart, or the
  // best is no rate at all, both change alike.
  void add_compute(std::vector<RateFactor>& factors) const {
    double aa = 0, ab = 0, bb = 0, at = 0, bt = 0, charged = 0, recorded = 0;
    for (const auto& [of, times] : layers_) {
      if (times.recorded_seconds <= 0) continue;
      const double a = times.products_seconds;
      const double b = times.values_seconds;
      aa += a * a / times.recorded_seconds;
      ab += a * b / times.recorded_seconds;
      bb += b * b / times.recorded_seconds;
      at += a;
      bt += b;
      charged += a + b;
      recorded += times.recorded_seconds;
    }
    if (charged <= 0 || recorded <= 0) return;
    double slower_products = recorded / charged;
    double slower_values = slower_products;
    const double determinant = aa * bb - ab * ab;
    if (determinant > kToldApart * aa * bb) {
      const double x = (at * bb - bt * ab) / determinant;
      const double y = (bt * aa - at * ab) / determinant;
      if (x > 0 && y > 0) {
        slower_products = x;
        slower_values = y;
      }
    }
    const platform::Engine& compute = engine(plan_.platform.compute_engine);
    factors.push_back({compute.name, "matmul", 1 / slower_products});
    if (bb > 0) factors.push_back({compute.name, "elementwise", 1 / slower_values});
  }

  // sin^2 of the angle between the two as vectors over the layers: two and a half degrees. (tiny
  // has five.)
  static constexpr double kToldApart = 0.002;

  const plan::RunPlan& plan_;
  const ChargedStep& charged_;
  std::map<std::pair<platform::EngineId, std::string>, KernelTimes> kernels_;
  std::map<std::pair<Stage, LayerId>, LayerTimes> layers_;
};

}  // namespace

std::vector<RateFactor> kernel_factors(const plan::RunPlan& plan, const ChargedStep& charged,
                                       const RecordedSteps& recorded) {
  return KernelFit(plan, charged).factors(recorded);
}

}  // namespace sluice::tune::detail
