#pragma once
// Gradients down: a layer's gradients are checked as they come from backward, brought into the
// wire's format and sent to where they wait for the update. Two routes: dense (every element, in
// page-aligned chunks) and sparse (the largest elements of each segment).
//
// Thread contract: the schedule's thread.

#include <memory>

#include "core/model/trainable_model.h"
#include "core/offload/buffer_pool.h"
#include "core/offload/gradient_plan.h"
#include "core/offload/gradient_store.h"
#include "core/offload/host_kernels.h"

namespace sluice::offload {

// What the routes have in common.
struct GradientParts {
  const OffloadOptions& options;
  const model::FlatLayout& layout;
  const state::Geometry& geometry;
  const GradientFormat& format;
  const GradientStore& store;
  OffloadMemory& memory;
  const HostKernels& kernels;
};

class GradientRoute {
 public:
  virtual ~GradientRoute() = default;
  // Into how many chunks each subgroup's gradient is cut; each has a check of its own.
  virtual IdVector<SubgroupId, std::int32_t> check_counts() const = 0;
  // What the host's check of a layer's gradients is charged for, in elements.
  virtual std::int64_t checked_elements(LayerId layer) const = 0;
  // Prepares a layer's gradients, which are free again when the task ends; what is still being
  // written then is in `writes`. One layer after the other, from the last to the first.
  virtual runtime::Task<Status> send(LayerId layer, std::span<std::byte> gradient,
                                     StepUpdate& update, runtime::TaskGroup& writes) = 0;
  // The step is skipped: what its gradients had taken out of the residual goes back.
  virtual runtime::Task<Status> take_back(const StepUpdate& update) = 0;
};
std::unique_ptr<GradientRoute> make_dense_route(const GradientParts& parts, BufferPool& bounces);
std::unique_ptr<GradientRoute> make_sparse_route(const GradientParts& parts);

class GradientSender {
 public:
  GradientSender(const GradientParts& parts, BufferPool& bounces);

  IdVector<SubgroupId, std::int32_t> check_counts() const { return route_->check_counts(); }
  // Waits for one of the two layer gradients to be free.
  runtime::Pool::Awaiter acquire(LayerId layer);
  model::LayerGradient view(const runtime::Pool::Lease& lease, LayerId layer) const;
  // Starts sending, in update.sends; the lease is given back as soon as the gradients have left it.
  void send(StepUpdate& update, LayerId layer, runtime::Pool::Lease lease);
  runtime::Task<Status> take_back(const StepUpdate& update) { return route_->take_back(update); }

 private:
  runtime::Task<Status> send_layer(StepUpdate& update, LayerId layer, runtime::Pool::Lease lease);
  runtime::Task<Status> stage_layer(StepUpdate& update, LayerId layer, runtime::Pool::Lease lease,
                                    runtime::TaskGroup& writes);
  runtime::Operation check(StepUpdate& update, LayerId layer, std::span<std::byte> gradient) const;

  GradientParts parts_;
  BufferPool layer_gradients_;
  runtime::Pool turn_;  // layers are staged one after the other: they share carry and selector
  std::unique_ptr<GradientRoute> route_;
};

}  // namespace sluice::offload
