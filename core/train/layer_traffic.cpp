#include "core/train/layer_traffic.h"

#include "core/model/compute_device.h"
#include "core/model/trainable_model.h"
#include "core/offload/offload.h"
#include "core/train/ranks.h"
#include "core/train/shard_traffic.h"

namespace sluice::train {

using platform::Direction;
using runtime::Stage;

LayerTraffic::LayerTraffic(StepContext& context, Pass pass, int micro_step_count)
    : context_(context),
      parameters_(context.parameters()),
      moves_(context),
      gradient_work_(context),
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

void LayerTraffic::send_gradient(LayerId layer, runtime::Pool::Lease lease) {
  leaving_.spawn(take_gradient(layer, std::move(lease)));
}

runtime::Task<Status> LayerTraffic::gradient_sent() {
  const bool goes_beside =
      context_.shards == nullptr || context_.shards->overlaps(shard::Overlap::reduce_backward);
  if (goes_beside) co_return ok_status();
  Status left = co_await leaving_.join();
  co_return left;
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
                   .size_bytes = context_.layout.layer(layer).count * 2,
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
                   .size_bytes = model::batch_bytes(context_.micro_batch_tokens),
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
                   .size_bytes = model::kLossBytes,
                   .work = {.kind = DeviceWork::Kind::loss_out, .micro_step = micro_step}};
  Status there = co_await moves_.by_one(whole);
  co_return there;
}

runtime::Task<Status> LayerTraffic::take_gradient(LayerId layer, runtime::Pool::Lease lease) {
  runtime::Waiting waiting;
  waiting.what = "the gradients of the layer above to leave the accelerators";
  waiting.layer = layer;
  Result<runtime::Pool::Lease> turn = co_await context_.gradient_turn.acquire(waiting);
  CO_RETURN_IF_ERROR(turn);
  Status taken = co_await gradient_work_.take(layer, lease);
  CO_RETURN_IF_ERROR(taken);
  // In the order of the layers, as on the other ranks: the turn is ours.
  if (context_.ranks != nullptr) {
    Status summed = co_await add_up_over_ranks(layer, lease);
    CO_RETURN_IF_ERROR(summed);
  }
  context_.offload.gradients().send(layer, std::move(lease));
  co_return ok_status();
}

runtime::Task<Status> LayerTraffic::add_up_over_ranks(LayerId layer,
                                                      const runtime::Pool::Lease& lease) {
  const model::LayerGradient gradient = context_.offload.gradients().view(lease, layer);
  const std::span values(gradient.values_fp32, static_cast<std::size_t>(gradient.element_count));
  if (context_.shards != nullptr) {
    Status reduced = co_await context_.shards->reduce(layer, values);
    co_return reduced;
  }
  Status summed = co_await context_.ranks->sum_gradient(context_.runtime, layer, values);
  co_return summed;
}

}  // namespace sluice::train
