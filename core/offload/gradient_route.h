#pragma once
// How a layer's gradients get to where they wait for the update: dense (every element, in
// page-aligned chunks) or sparse (the largest elements of each segment).
//
// Thread contract: the schedule's thread, but for KnownGradients::of_layer, whose elements workers
// write while the operation that writes them is awaited.

#include <memory>
#include <span>

#include "base/id_vector.h"
#include "base/ids.h"
#include "core/optimizer/gradient_stats.h"
#include "core/runtime/sync.h"

namespace sluice::model {
struct FlatLayout;
}
namespace sluice::state {
struct Geometry;
}

namespace sluice::offload {

class BufferPool;
class GradientFormat;
class GradientStore;
class HostKernels;
class NormPlan;
class OffloadMemory;
struct OffloadOptions;
struct StepUpdate;

// The parts that the routes have in common.
struct GradientParts {
  const OffloadOptions& options;
  const model::FlatLayout& layout;
  const state::Geometry& geometry;
  const GradientFormat& format;
  const GradientStore& store;
  OffloadMemory& memory;
  const HostKernels& kernels;
  const NormPlan* norm_plan = nullptr;  // overlap=local
};

// The known facts of the gradients of the step under way.
struct KnownGradients {
  StepUpdate* update = nullptr;  // theirs
  double loss_scale = 1;         // they contain it
  IdVector<LayerId, optimizer::GradientStats> of_layer;
  IdVector<LayerId, char> is_selected_from;  // compressed: its largest elements are taken out

  // Sum of squares over all layers in order, and whether all are finite; of the layers so far.
  optimizer::GradientStats stats() const;
};

class GradientRoute {
 public:
  virtual ~GradientRoute() = default;
  // Into how many chunks each subgroup's gradient is cut; each has a check of its own.
  virtual IdVector<SubgroupId, std::int32_t> check_counts() const = 0;
  // The charge for the host's check of a layer's gradients, in elements.
  virtual std::int64_t checked_elements(LayerId layer) const = 0;
  // Prepares a layer's gradients, which are free again when the task ends; what is still being
  // written then is in `writes`. One layer after the other.
  virtual runtime::Task<Status> send(LayerId layer, std::span<std::byte> gradient,
                                     KnownGradients& known, runtime::TaskGroup& writes) = 0;
  // A layer that has been sent, back from where it waits; its writes have ended. Errors:
  // ErrorCode::corrupt where that is not what was written.
  virtual runtime::Task<Status> read_back(LayerId layer, std::span<std::byte> gradient,
                                          const KnownGradients& known) = 0;
  // A layer that has been sent will be sent once more.
  virtual void expect_again(LayerId layer, KnownGradients& known) = 0;
  // The step is skipped: what its gradients had taken out of the residual goes back.
  virtual runtime::Task<Status> take_back(const KnownGradients& known) = 0;
};
std::unique_ptr<GradientRoute> make_dense_route(const GradientParts& parts, BufferPool& bounces);
std::unique_ptr<GradientRoute> make_sparse_route(const GradientParts& parts);

}  // namespace sluice::offload
