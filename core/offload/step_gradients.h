#pragma once
// The gradients of the step under way, from where backward has left them to where they wait for the
// update. Layers come in any order that the layout allows (gradient_plan.h), each once a step:
//
//   acquire(layer)   one of the two layer gradients in host memory, for backward to write into
//   send(layer)      checks it, brings it into the wire's format and writes it, beside what follows
//   sent()           all of them are where they wait; stats() is known
//
// Whoever has summed a layer's squares elsewhere, an accelerator or the ranks that have parts of
// it, puts them into block_sums() before send(); whoever has selected its largest elements puts
// them into kept_place().
//
// One object serves all steps: what it knows of a step's gradients is read for the last time when
// the step's update is decided or skipped. What the update itself reads later is the step's
// (step_update.h).
//
// Thread contract: the schedule's thread.

#include <memory>

#include "core/model/gradient_device.h"
#include "core/model/trainable_model.h"
#include "core/offload/buffer_pool.h"
#include "core/offload/gradient_route.h"
#include "core/runtime/operation.h"

namespace sluice::offload {

// The sums of squares of a layer's blocks, with overlap=local those of its parts behind them
// (norm_plan.h).
struct BlockSums {
  double* into = nullptr;  // null: no payload
  std::int64_t count = 0;
  std::int64_t element_count = 0;  // that are summed for them
};

class StepGradients {
 public:
  StepGradients(const GradientParts& parts, BufferPool& bounces);

  IdVector<SubgroupId, std::int32_t> check_counts() const { return route_->check_counts(); }
  // A step begins. The loss scale is that of the gradients to come; the residual is kept without.
  void begin(StepUpdate& update, double loss_scale);
  double loss_scale() const { return known_.loss_scale; }

  runtime::Pool::Awaiter acquire(LayerId layer);
  model::LayerGradient view(const runtime::Pool::Lease& lease, LayerId layer) const;
  // The lease is given back as soon as the gradients have left it.
  void send(LayerId layer, runtime::Pool::Lease lease);
  runtime::TaskGroup::Joiner sent() { return sends_.join(); }
  // After sent(), before the update is decided: a layer's gradients back into a layer gradient,
  // from which they may be sent again in the place of what they were. Not of those that are
  // selected from, of which only a part has been sent.
  runtime::Task<Status> read_back(LayerId layer, const runtime::Pool::Lease& lease);
  void send_again(LayerId layer, runtime::Pool::Lease lease);

  // Stats of the layers so far; after sent() of all.
  optimizer::GradientStats stats() const { return known_.stats(); }
  // overlap=local, after sent(): subgroups that are clipped.
  std::int32_t clipped_count() const;

  BlockSums block_sums(LayerId layer) const;
  // They have come.
  void note_block_sums(LayerId layer);
  // A pass over `elements` of a layer's gradients that sums them, by whoever has added them up.
  runtime::Operation check(LayerId layer, std::int64_t elements,
                           const runtime::InlineFunction& work) const;

  const GradientFormat& format() const { return parts_.format; }
  model::KeptPlace kept_place(LayerId layer) const;
  void note_selected(LayerId layer) { known_.is_selected_from[layer] = 1; }
  bool is_selected_from(LayerId layer) const { return known_.is_selected_from[layer] != 0; }
  // The step is skipped (GradientRoute).
  runtime::Task<Status> take_back() { return route_->take_back(known_); }

 private:
  runtime::Task<Status> send_layer(LayerId layer, runtime::Pool::Lease lease);
  runtime::Operation check_whole(LayerId layer, std::span<std::byte> gradient);

  GradientParts parts_;
  BufferPool layer_gradients_;
  // Layers are staged one after the other, also where they leave accelerators beside it: they share
  // carry and selector, and the host's workers.
  runtime::Pool turn_;
  std::unique_ptr<GradientRoute> route_;
  KnownGradients known_;
  runtime::TaskGroup sends_;
};

}  // namespace sluice::offload
