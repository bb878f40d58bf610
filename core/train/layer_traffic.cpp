#include "core/train/layer_traffic.h"

#include "core/model/compute_device.h"
#include "core/model/trainable_model.h"
#include "core/offload/offload.h"
#include "core/offload/offload_options.h"

namespace sluice::train {

using platform::Direction;
using stages::Stage;

LayerTraffic::LayerTraffic(StepContext& context, Pass pass, int micro_step_count)
    : context_(context),
      parameters_(context.parameters()),
      moves_(context),
      step_(pass == Pass::forward ? 1 : -1),
      next_(pass == Pass::forward ? 0 : context.layout.layer_count() - 1),
      coming_(context.runtime),
      leaving_(context.runtime) {
  parameters_.begin_pass(pass);
  for (int m = 0; pass == Pass::forward && m < micro_step_count; ++m) coming_.spawn(bring_batch(m));
  if (parameters_.comes_ahead()) coming_.spawn(bring(LayerId{next_}));
}

// An accelerator has a copy; where nothing is computed nobody needs more.
bool LayerTraffic::are_parameters_copied() const {
  return !moves_.moves_nothing() && (context_.device != nullptr || context_.model == nullptr);
}

void LayerTraffic::end_computing() {
  if (computing_ != kNoLayer) parameters_.done(computing_);
  computing_ = kNoLayer;
}

runtime::Task<Status> LayerTraffic::next_layer() {
  end_computing();
  if (!parameters_.comes_ahead()) coming_.spawn(bring(LayerId{next_}));
  Status there = co_await coming_.join();
  CO_RETURN_IF_ERROR(there);
  if (!are_parameters_copied()) computing_ = LayerId{next_};
  next_ += step_;
  const bool is_last = next_ < 0 || next_ == context_.layout.layer_count();
  if (!is_last && parameters_.comes_ahead()) coming_.spawn(bring(LayerId{next_}));
  co_return ok_status();
}

void LayerTraffic::send_loss(int micro_step) { leaving_.spawn(bring_loss(micro_step)); }

runtime::Task<Status> LayerTraffic::finish() {
  Status came = co_await coming_.join();
  Status left = co_await leaving_.join();
  end_computing();
  Status read = co_await parameters_.finish_pass();
  if (!came.ok()) co_return came;
  co_return left.ok() ? read : left;
}

runtime::Task<Status> LayerTraffic::bring(LayerId layer) {
  Status up = co_await parameters_.bring(layer);
  CO_RETURN_IF_ERROR(up);
  if (moves_.moves_nothing()) co_return ok_status();
  const Move whole{.stage = Stage::layer_in,
                   .direction = Direction::write,
                   .layer = layer,
                   .size_bytes = context_.layout.layer(layer).count *
                                     bytes_of(context_.offload.options().parameter_kind) +
                                 context_.offload.base_bytes(layer),
                   .among_peers = AmongPeers::all,
                   .work = {.kind = DeviceWork::Kind::layer_in, .layer = layer}};
  Status there = co_await moves_.in_parts(whole);
  CO_RETURN_IF_ERROR(there);
  if (are_parameters_copied()) parameters_.done(layer);
  co_return ok_status();
}

runtime::Task<Status> LayerTraffic::bring_batch(int micro_step) {
  if (moves_.moves_nothing()) co_return ok_status();
  const Move whole{.stage = Stage::batch_in,
                   .direction = Direction::write,
                   .size_bytes = context_.micro_batch_bytes,
                   .work = {.kind = DeviceWork::Kind::batch_in, .micro_step = micro_step}};
  Status there = co_await moves_.in_parts(whole);
  co_return there;
}

// One accelerator sends it: what the others have of it they have sent that one before.
runtime::Task<Status> LayerTraffic::bring_loss(int micro_step) {
  if (moves_.moves_nothing()) co_return ok_status();
  const Move whole{.stage = Stage::loss_out,
                   .direction = Direction::read,
                   .layer = LayerId{context_.layout.layer_count() - 1},
                   .size_bytes = context_.loss_bytes,
                   .work = {.kind = DeviceWork::Kind::loss_out, .micro_step = micro_step}};
  Status there = co_await moves_.by_one(whole);
  co_return there;
}

}  // namespace sluice::train
