#include "core/model/torch/stack_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "base/id_vector.h"
#include "core/model/batch_check.h"
#include "core/model/compute_device.h"
#include "core/model/head_chunk.h"
#include "core/model/torch/autograd.h"
#include "core/model/torch/check.h"
#include "core/model/torch/dtype.h"
#include "core/model/torch/first_calls.h"
#include "core/model/torch/gradient_writer.h"
#include "core/model/torch/head_loss.h"
#include "core/model/torch/products.h"
#include "core/model/torch/saved_tensors.h"
#include "core/model/torch/tensor_memory.h"
#include "core/model/torch/torch_border.h"

namespace sluice::model {

namespace {

at::TensorOptions parameters_on(at::Device device, const ModelOptions& options) {
  return at::TensorOptions(device).dtype(dtype_of(options.compute));
}

std::vector<at::Tensor> constants_of(const TorchArchitecture& architecture, const ModelShape& shape,
                                     const ModelOptions& options, at::Device device) {
  if (architecture.constants == nullptr) return {};
  return architecture.constants(shape, options.sequence, parameters_on(device, options));
}

// A row for each window.
at::Tensor first_tokens(const at::Tensor& rows, WindowShape window) {
  return rows.view({window.batch, window.sequence, rows.size(1)}).select(1, 0);
}

}  // namespace

StackModel::StackModel(const TorchArchitecture& architecture, const ModelShape& shape,
                       const ModelOptions& options, const ParameterSpan& parameters,
                       at::Device device, io::PinnedMemory* pinned)
    : architecture_(architecture),
      shape_(shape),
      options_(options),
      layout_(shape.flat_layout()),
      parameters_(parameters),
      block_memory_{device, nullptr, parameters.bytes(), {}},
      host_views_(view_flat(layout_, parameters)),
      threads_(options.thread_count),
      output_gradient_({.vocabulary = shape.vocabulary,
                        .answers = widest_logits(shape),
                        .hidden = shape.hidden,
                        .like = parameters_on(device, options),
                        .parts = head_is_one_product(shape, options)
                                     ? OutputGradient::Parts::one
                                     : OutputGradient::Parts::several,
                        .waits = !shape.has_own_output_table() && !shape.has_adapters()}),
      micro_batches_(static_cast<std::size_t>(options.micro_step_count)) {
  host_views_.constants = constants_of(architecture, shape, options, at::kCPU);
  if (shape.has_adapters())
    host_views_.view_base(shape_.base_layout(), tensor_of(options.base), shape.lora.scale());
  if (device.is_cpu()) {
    views_ = host_views_;
  } else {
    views_.constants = constants_of(architecture, shape, options, device);
    take_base_along();
  }
  for (const at::Tensor& constant : views_.constants)
    block_memory_.not_the_layers.push_back(constant.storage().unsafeGetStorageImpl());
  if (shape.has_decoder()) two_stacks_.emplace(shape, options, parameters_on(device, options));
  if (pinned != nullptr) block_memory_.staging = &staging_.emplace(*pinned);
  for (int m = 0; m < options.micro_step_count; ++m) rooms_.push_back(make_room());
  if (!two_stacks_) return;
  for (const at::Tensor& tensor : two_stacks_->shared_tensors())
    block_memory_.not_the_layers.push_back(tensor.storage().unsafeGetStorageImpl());
  for (const Room& room : rooms_)
    block_memory_.not_the_layers.push_back(room.encoded.storage().unsafeGetStorageImpl());
}

// To the device, once and for all: it stays there.
void StackModel::take_base_along() {
  if (!shape_.has_adapters() || options_.base_comes_by_layer) return;
  const at::Tensor base = tensor_of(options_.base).to(block_memory_.device);
  views_.view_base(shape_.base_layout(), base, shape_.lora.scale());
  block_memory_.not_the_layers.push_back(base.storage().unsafeGetStorageImpl());
}

StackModel::Room StackModel::make_room() const {
  const at::TensorOptions on_device(block_memory_.device);
  const at::TensorOptions in_host_memory =
      at::TensorOptions().pinned_memory(!block_memory_.device.is_cpu());
  const auto place = [&](std::int64_t count, at::ScalarType dtype) {
    const at::Tensor host = at::empty({count}, in_host_memory.dtype(dtype));
    return NumbersPlaces{
        host, block_memory_.device.is_cpu() ? host : at::empty({count}, on_device.dtype(dtype))};
  };
  Room room;
  room.numbers = place(
      batch_bytes(shape_, options_.batch, options_.sequence) / std::int64_t{sizeof(std::int64_t)},
      at::kLong);
  const NumbersPlaces loss = place(loss_bytes(shape_) / std::int64_t{sizeof(double)}, at::kDouble);
  room.loss_in_host_memory = loss.in_host_memory;
  room.loss_sum = loss.on_device;
  if (two_stacks_) room.encoded = two_stacks_->make_room();
  make_room_for_logits(room);
  return room;
}

void StackModel::make_room_for_logits(Room& room) const {
  room.logits.resize(places().are_tables_cut() ? static_cast<std::size_t>(places().outputs) : 1);
  for (const LayerId layer : all_ids<LayerId>(places().count())) {
    if (!places().has_logits(layer)) continue;
    at::Tensor& logits = room.logits[logits_place(layer)];
    if (!keeps_logits(layer)) {
      logits = at::Tensor();
    } else if (!logits.defined()) {
      logits = at::empty(
          {options_.batch * shape_.target_sequence(options_.sequence), logit_count(shape_, layer)},
          parameters_on(block_memory_.device, options_));
    }
  }
}

// The memory that the last step has left goes first: it may be large.
Status StackModel::choose_activations(const LayerActivations& activations) {
  return at_torch_border("making room for activations", [&] {
    options_.activations = activations;
    for (MicroBatch& micro : micro_batches_) micro = {};
    if (staging_) staging_->free_unused();
    for (Room& room : rooms_) make_room_for_logits(room);
    return ok_status();
  });
}

void StackModel::bind(LayerId layer, const at::Tensor& flat) {
  views_.view_layer(layout_, layer, flat);
  block_memory_.not_the_layers.push_back(flat.storage().unsafeGetStorageImpl());
}

FlatLayout StackModel::base_layout() const {
  return options_.base_comes_by_layer ? shape_.base_layout() : FlatLayout();
}

void StackModel::bind_base(LayerId layer, const at::Tensor& flat) {
  views_.view_base_layer(base_layout(), layer, flat, shape_.lora.scale());
  block_memory_.not_the_layers.push_back(flat.storage().unsafeGetStorageImpl());
}

StackModel::MicroBatch& StackModel::micro_batch(int micro_step) {
  CHECK_GE(micro_step, 0);
  CHECK_LT(micro_step, options_.micro_step_count);
  return micro_batches_[static_cast<std::size_t>(micro_step)];
}

const StackModel::Room& StackModel::room(int micro_step) const {
  return rooms_[static_cast<std::size_t>(micro_step)];
}

const StackModel::NumbersPlaces& StackModel::numbers_places(int micro_step) const {
  return room(micro_step).numbers;
}
const at::Tensor& StackModel::loss_sum(int micro_step) const { return room(micro_step).loss_sum; }
const at::Tensor& StackModel::loss_sum_in_host_memory(int micro_step) const {
  return room(micro_step).loss_in_host_memory;
}

double StackModel::loss(int micro_step) const {
  const MicroBatch& micro = micro_batches_[static_cast<std::size_t>(micro_step)];
  CHECK_EQ(micro.next_layer, layout_.layer_count());
  return *room(micro_step).loss_in_host_memory.const_data_ptr<double>() /
         micro.numbers.loss_divisor();
}

std::optional<std::int64_t> StackModel::right_answers(int micro_step) const {
  if (!shape_.classifies()) return std::nullopt;
  return static_cast<std::int64_t>(
      room(micro_step).loss_in_host_memory.const_data_ptr<double>()[1]);
}

Status StackModel::set_batch(int micro_step, const TokenBatch& batch, BatchUse use) {
  RETURN_IF_ERROR(check_batch(batch, shape_, options_));
  MicroBatch micro;
  micro.window = {batch.batch, batch.sequence};
  micro.targets = {batch.batch, batch.target_columns()};
  micro.use = use;
  micro.numbers.fill(batch, room(micro_step).numbers.in_host_memory);
  micro.numbers.look_at(room(micro_step).numbers.on_device);
  if (use == BatchUse::training) micro.dropout = micro.numbers.dropout();
  micro.layers.resize(static_cast<std::size_t>(layout_.layer_count()));
  for (std::size_t l = 0; l < micro.layers.size(); ++l) micro.saved.emplace_back(block_memory_);
  const std::int64_t chunk = head_chunk_tokens(widest_logits(shape_));
  for (std::int64_t first = 0; first < micro.targets.tokens(); first += chunk) {
    const std::int64_t count = std::min(chunk, micro.targets.tokens() - first);
    micro.head_chunks.push_back({first, count});
  }
  micro.logits = room(micro_step).logits;
  // A step that was given up may have left something; it goes.
  micro_batch(micro_step) = std::move(micro);
  output_gradient_.drop();
  if (two_stacks_) two_stacks_->drop();
  return ok_status();
}

LayerContext StackModel::context_of(LayerId layer, const MicroBatch& micro) const {
  LayerContext context{shape_,           micro.window,
                       views_.constants, places().block_of(layer),
                       micro.dropout,    micro.numbers.documents()};
  if (!two_stacks_) return context;
  context.bias = &two_stacks_->bias_of(layer);
  if (!two_stacks_->is_of_decoder(layer)) return context;
  context.window = micro.targets;
  context.block -= shape_.stacks.encoder_layers;
  context.blocks_before = shape_.stacks.encoder_layers;
  context.encoded = &micro.border.encoded;
  return context;
}

at::Tensor StackModel::run_layer(LayerId layer, const at::Tensor& x, const FlatViews& views,
                                 const LayerContext& context) const {
  if (layer == head()) {
    const at::Tensor rows = shape_.classifies() ? first_tokens(x, context.window) : x;
    return context.dropout.of_rows(architecture_.head(rows, views.of(head()), shape_),
                                   output_drop_place());
  }
  const auto block = context.encoded != nullptr ? architecture_.decoder_block : architecture_.block;
  return block(x, views.of(layer), context);
}

const at::Tensor& StackModel::output_table(const FlatViews& views, LayerId layer) const {
  return has_own_output_table() ? views.of(layer)[architecture_.output_table]
                                : views.embedding()[architecture_.token_table];
}

at::Tensor StackModel::logits_of(LayerId layer, const MicroBatch& micro, const HeadChunk& chunk,
                                 const at::Tensor& normed) const {
  const at::Tensor& room = micro.logits[logits_place(layer)];
  const at::Tensor& table = output_table(views_, layer);
  at::Tensor logits = room.defined() ? room.narrow(0, chunk.first, chunk.count)
                                     : at::empty({chunk.count, table.size(0)}, normed.options());
  product_into(logits, normed.narrow(0, chunk.first, chunk.count), table.t());
  if (has_output_bias()) logits.add_(views_.of(layer)[architecture_.output_bias]);
  return logits;
}

// ---- forward

Status StackModel::forward(LayerId layer, int micro_step) {
  return at_torch_border(fmt::format("forward of layer {}", layout_.layer(layer).name),
                         [&]() -> Status {
                           RETURN_IF_ERROR(threads_.start());
                           launch_forward(layer, micro_step);
                           return ok_status();
                         });
}

void StackModel::launch_forward(LayerId layer, int micro_step) {
  MicroBatch& micro = micro_batch(micro_step);
  CHECK_EQ(index_of(layer), micro.next_layer);
  at::Tensor& loss_sum = rooms_[static_cast<std::size_t>(micro_step)].loss_sum;
  if (places().is_embedding(layer)) {
    forward_embedding(layer, micro);
  } else if (places().is_output(layer)) {
    forward_output(layer, micro, loss_sum);
  } else {
    if (two_stacks_ && two_stacks_->is_first_of_decoder(layer))
      begin_decoder(micro, room(micro_step));
    forward_block(layer, micro);
  }
  if (layer == head()) forward_head(micro, loss_sum);
  ++micro.next_layer;
}

void StackModel::forward_embedding(LayerId layer, MicroBatch& micro) {
  const at::NoGradGuard no_grad;
  micro.stream =
      places().are_tables_cut()
          ? look_up(embedding_piece(layer, views_), micro.numbers.inputs(), micro.stream)
          : architecture_.embed(micro.numbers.inputs(), views_.embedding(), micro.places(), shape_);
  if (index_of(layer) + 1 < places().embeddings) return;
  micro.stream = micro.dropout.of_rows(micro.stream, embedding_drop_place());
  if (two_stacks_) two_stacks_->make_biases(views_.embedding());
}

void StackModel::begin_decoder(MicroBatch& micro, const Room& room) const {
  const at::NoGradGuard no_grad;
  two_stacks_->cross(micro.border, micro.stream, views_.embedding(), room.encoded, micro.dropout);
  const at::Tensor x = architecture_.embed(micro.numbers.decoder_inputs(), views_.embedding(),
                                           {micro.targets}, shape_);
  micro.stream = micro.dropout.of_rows(x, lookup_drop_place());
}

void StackModel::forward_block(LayerId layer, MicroBatch& micro) const {
  const Activations choice = choice_of(layer);
  const bool is_training = micro.use == BatchUse::training && goes_backward(layer);
  const bool keeps = is_training && !is_recomputed(choice);
  const at::AutoGradMode watch(keeps);
  const at::Tensor input =
      micro.stream.detach().set_requires_grad(keeps && passes_gradient_on(layer));
  const bool leaves = is_training && is_offloaded(choice);
  const at::Tensor output = leaves ? run_watched(layer, input, micro)
                                   : run_layer(layer, input, views_, context_of(layer, micro));
  if (is_training) {
    KeptLayer& kept = micro.layers[static_cast<std::size_t>(index_of(layer))];
    kept.input = input;
    if (keeps) kept.output = output;
  }
  micro.stream = output.detach();
}

// The input is the layer's even where its graph does not save it. The output is the next layer's
// input, and none of this one's; but the head's is what its backward makes logits of.
at::Tensor StackModel::run_watched(LayerId layer, const at::Tensor& input,
                                   MicroBatch& micro) const {
  SavedBlocks& saved = micro.saved[static_cast<std::size_t>(index_of(layer))];
  saved.note(input);
  at::Tensor output;
  {
    const SavedTensorWatch watch([&](const at::Tensor& tensor) { saved.note(tensor); });
    output = run_layer(layer, input, views_, context_of(layer, micro));
  }
  const bool makes_logits = places().has_logits(layer);
  if (makes_logits && !is_recomputed(choice_of(layer))) saved.note(output);
  CHECK(makes_logits || !saved.has(output));
  return output;
}

void StackModel::forward_head(MicroBatch& micro, at::Tensor& loss_sum) const {
  const at::NoGradGuard no_grad;
  const at::Tensor normed = std::exchange(micro.stream, at::Tensor());
  if (places().are_tables_cut()) {
    micro.pieces.normed = normed;
  } else {
    sum_loss(micro, normed, loss_sum);
  }
}

void StackModel::sum_loss(MicroBatch& micro, const at::Tensor& normed, at::Tensor& loss_sum) const {
  micro.loss_rows.log_sums =
      at::empty({micro.targets.tokens()}, normed.options().dtype(at::kFloat));
  const Targets targets = micro.numbers.targets();
  loss_sum.zero_();
  for (const HeadChunk& chunk : micro.head_chunks) {
    const at::Tensor logits = logits_of(head(), micro, chunk, normed);
    const Targets of_chunk = targets.rows(chunk.first, chunk.count);
    loss_sum.narrow(0, 0, 1).add_(cross_entropy_sum(
        logits, of_chunk, micro.loss_rows.log_sums.narrow(0, chunk.first, chunk.count)));
    if (shape_.classifies())
      loss_sum.narrow(0, 1, 1).add_(logits.argmax(1).eq(of_chunk.tokens).sum());
  }
}

// ---- backward

Status StackModel::backward(LayerId layer, int micro_step, double gradient_scale,
                            const LayerGradient& into) {
  CHECK_EQ(into.element_count, layout_.layer(layer).count);
  return at_torch_border(fmt::format("backward of layer {}", layout_.layer(layer).name),
                         [&]() -> Status {
                           RETURN_IF_ERROR(threads_.start());
                           launch_backward(layer, micro_step, gradient_scale,
                                           flat_tensor(into, dtype_of(options_.compute)));
                           return ok_status();
                         });
}

void StackModel::launch_backward(LayerId layer, int micro_step, double gradient_scale,
                                 const at::Tensor& into) {
  MicroBatch& micro = micro_batch(micro_step);
  CHECK_EQ(micro.next_layer, layout_.layer_count());
  CHECK(micro.use == BatchUse::training);
  GradientWriter writer(into);
  if (!goes_backward(layer)) return writer.finish();
  if (places().is_output(layer)) {
    backward_output(layer, micro, gradient_scale, writer);
  } else if (layer == head() && places().are_tables_cut()) {
    backward_cut_head(micro, writer);
  } else if (layer == head()) {
    backward_head(micro, gradient_scale, writer);
  } else if (places().is_block(layer)) {
    backward_block(layer, micro, writer);
  } else if (places().are_tables_cut()) {
    backward_embedding_piece(layer, micro, writer);
  } else {
    backward_embedding(micro, writer);
  }
  writer.finish();
}

// The tensors that forward kept, no longer held by the micro-batch; with recompute, the layer is
// run again.
StackModel::KeptLayer StackModel::take_layer(LayerId layer, MicroBatch& micro) const {
  KeptLayer kept =
      std::exchange(micro.layers[static_cast<std::size_t>(index_of(layer))], KeptLayer{});
  CHECK(kept.input.defined());
  if (is_recomputed(choice_of(layer))) {
    const at::AutoGradMode watch(true);
    kept.input.set_requires_grad(passes_gradient_on(layer));
    kept.output = run_layer(layer, kept.input, views_, context_of(layer, micro));
  }
  return kept;
}

// Walks one layer's graph: its parameters' gradients to the caller, its input's to the layer below.
std::vector<at::Tensor> StackModel::propagate(LayerId layer, const KeptLayer& kept,
                                              std::span<const at::Tensor> parameters,
                                              const at::Tensor& output_gradient, MicroBatch& micro,
                                              GradientWriter& writer,
                                              std::span<const at::Tensor> shared) const {
  std::vector<at::Tensor> wanted(parameters.begin(), parameters.end());
  wanted.insert(wanted.end(), shared.begin(), shared.end());
  if (passes_gradient_on(layer)) wanted.push_back(kept.input);
  std::vector<at::Tensor> gradients = differentiate(kept.output, wanted, output_gradient);
  const at::NoGradGuard no_grad;
  if (passes_gradient_on(layer)) {
    micro.stream_gradient = std::move(gradients.back());
    gradients.pop_back();
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) writer.put(gradients[i]);
  return {gradients.begin() + std::ssize(parameters), gradients.end()};
}

void StackModel::backward_head(MicroBatch& micro, double gradient_scale, GradientWriter& writer) {
  const KeptLayer kept = take_layer(head(), micro);
  const at::Tensor normed = kept.output.detach();
  const at::Tensor normed_gradient = at::empty_like(normed);
  const double scale = gradient_scale / micro.numbers.loss_divisor();
  at::Tensor bias_gradient;
  const bool trains_tables = !shape_.has_adapters();
  if (has_output_bias() && trains_tables)
    bias_gradient = at::zeros({answer_count(shape_)}, normed.options().dtype(at::kFloat));
  {
    const at::NoGradGuard no_grad;
    const Targets targets = micro.numbers.targets();
    for (const HeadChunk& chunk : micro.head_chunks) {
      const at::Tensor logits = keeps_logits(head())
                                    ? micro.logits.front().narrow(0, chunk.first, chunk.count)
                                    : logits_of(head(), micro, chunk, normed);
      cross_entropy_gradient_(logits, targets.rows(chunk.first, chunk.count),
                              micro.loss_rows.log_sums.narrow(0, chunk.first, chunk.count), scale,
                              bias_gradient);
      at::Tensor chunk_gradient = normed_gradient.narrow(0, chunk.first, chunk.count);
      product_into(chunk_gradient, logits, output_table(views_, head()));
      if (trains_tables)
        output_gradient_.add_from_head(logits, normed.narrow(0, chunk.first, chunk.count));
    }
  }
  std::span<const at::Tensor> watched = views_.of(head()).in_flat_order();
  if (trains_tables)
    watched = watched.first(watched.size() - (has_own_output_table() ? 1 : 0) -
                            (has_output_bias() ? 1 : 0));
  propagate(head(), kept, watched, normed_gradient, micro, writer);
  if (!trains_tables) return;
  if (has_own_output_table()) output_gradient_.put_alone(writer);
  if (has_output_bias()) writer.put(bias_gradient);
}

void StackModel::backward_block(LayerId layer, MicroBatch& micro, GradientWriter& writer) {
  CHECK(micro.stream_gradient.defined());
  const KeptLayer kept = take_layer(layer, micro);
  const at::Tensor output_gradient = std::exchange(micro.stream_gradient, at::Tensor());
  std::vector<at::Tensor> shared;
  if (two_stacks_) shared = two_stacks_->read_by(layer, micro.border);
  const std::vector<at::Tensor> of_shared = propagate(layer, kept, views_.of(layer).in_flat_order(),
                                                      output_gradient, micro, writer, shared);
  if (!two_stacks_) return;
  two_stacks_->add(layer, of_shared, micro.border);
  if (!two_stacks_->is_first_of_decoder(layer)) return;
  const at::Tensor of_lookup = std::exchange(micro.stream_gradient, at::Tensor());
  if (!two_stacks_->goes_back_to_encoder()) return;
  if (!shape_.has_adapters())
    micro.border.lookup_gradient = micro.dropout.of_rows(of_lookup, lookup_drop_place());
  micro.stream_gradient = two_stacks_->cross_back(micro.border, views_.embedding(), micro.dropout);
}

void StackModel::backward_embedding(MicroBatch& micro, GradientWriter& writer) {
  CHECK(micro.stream_gradient.defined());
  const at::NoGradGuard no_grad;
  at::Tensor x_gradient = micro.dropout.of_rows(std::exchange(micro.stream_gradient, at::Tensor()),
                                                embedding_drop_place());
  if (two_stacks_)
    x_gradient = at::cat({x_gradient, std::exchange(micro.border.lookup_gradient, at::Tensor())});
  std::vector<at::Tensor> of_norm;
  if (architecture_.embed_norm_backward != nullptr) {
    of_norm = architecture_.embed_norm_backward(x_gradient, micro.numbers.inputs(),
                                                views_.embedding(), micro.places(), shape_);
    x_gradient = std::exchange(of_norm.front(), at::Tensor());
  }
  output_gradient_.put_tied(micro.numbers, x_gradient, writer);
  if (two_stacks_) two_stacks_->put(writer);
  if (architecture_.embed_backward != nullptr)
    architecture_.embed_backward(x_gradient, views_.embedding(), micro.places(), writer);
  for (std::size_t i = 1; i < of_norm.size(); ++i) writer.put(of_norm[i]);
}

// ---- what leaves memory

template <typename Function>
auto StackModel::at_blocks(LayerId layer, int micro_step, Function&& function) {
  return at_torch_border(fmt::format("activations of layer {}", layout_.layer(layer).name), [&] {
    auto done = function(saved_blocks(layer, micro_step));
    using Done = decltype(done);
    if (done.ok()) return done;
    return Done(done.error().with_context(
        fmt::format("activations of layer {}", layout_.layer(layer).name)));
  });
}

SavedBlocks& StackModel::saved_blocks(LayerId layer, int micro_step) {
  return micro_batch(micro_step).saved[static_cast<std::size_t>(index_of(layer))];
}

Result<std::span<const KeptBlock>> StackModel::kept(LayerId layer, int micro_step) {
  return at_blocks(layer, micro_step, [](SavedBlocks& saved) { return saved.kept(); });
}

Status StackModel::release(LayerId layer, int micro_step) {
  return at_blocks(layer, micro_step, [](SavedBlocks& saved) { return saved.release(); });
}

Status StackModel::release_device(LayerId layer, int micro_step) {
  return at_blocks(layer, micro_step, [](SavedBlocks& saved) { return saved.release_device(); });
}

Result<std::span<const KeptBlock>> StackModel::make_room(LayerId layer, int micro_step) {
  return at_blocks(layer, micro_step, [](SavedBlocks& saved) { return saved.make_room(); });
}

Status StackModel::restore(LayerId layer, int micro_step) {
  return at_blocks(layer, micro_step, [](SavedBlocks& saved) { return saved.restore(); });
}

void StackModel::forget(LayerId layer, int micro_step) { saved_blocks(layer, micro_step).forget(); }

namespace {

Status check_options(const ModelShape& shape, const ModelOptions& options) {
  RETURN_IF_ERROR(check_trainable(shape));
  if (options.batch < 1 || options.sequence < 1 || options.micro_step_count < 1 ||
      options.thread_count < 0) {
    return make_error(ErrorCode::config,
                      "batch = {}, sequence = {}, {} micro-batches, {} threads were asked for; the "
                      "first three must be at least 1, threads at least 0 (= all)",
                      options.batch, options.sequence, options.micro_step_count,
                      options.thread_count);
  }
  CHECK(!shape.has_adapters() || options.base.kind() == options.compute);
  return shape.check_sequence(options.sequence);
}

}  // namespace

Result<std::unique_ptr<StackModel>> make_stack_model(const TorchArchitecture& architecture,
                                                     const ModelShape& shape,
                                                     const ModelOptions& options,
                                                     const ParameterSpan& parameters,
                                                     at::Device device, io::PinnedMemory* pinned) {
  RETURN_IF_ERROR(check_options(shape, options));
  RETURN_IF_ERROR(ComputeThreads(options.thread_count).check_startable());
  return at_torch_border(fmt::format("setting up model '{}'", shape.name),
                         [&]() -> Result<std::unique_ptr<StackModel>> {
                           use_tensor_memory();
                           settle_first_calls();
                           watch_saved_tensors();
                           return std::make_unique<StackModel>(architecture, shape, options,
                                                               parameters, device, pinned);
                         });
}

}  // namespace sluice::model
