#include "core/calibrate/timed_model.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/float16.h"
#include "base/split_mix.h"
#include "core/model/layer_places.h"

namespace sluice::calibrate {
namespace {

double seconds_since(TimeNs start_ns) {
  return static_cast<double>(monotonic_now_ns() - start_ns) / 1e9;
}

}  // namespace

TimedModel::TimedModel(const TimedCase& of, const model::ModelShape& shape)
    : batch_(of.batch), sequence_(of.sequence) {
  const model::FlatLayout layout = shape.flat_layout();
  first_block_ = index_of(layer_places(shape).first_block());
  parameters_.resize(static_cast<std::size_t>(layout.parameter_count));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const double value = (unit_interval(split_mix(1, i)) - 0.5) * 0.06;
    parameters_[i] = bf16_from_float(static_cast<float>(value));
  }
  gradient_.resize(static_cast<std::size_t>(layout.largest_layer_elements()));
  const auto vocabulary = static_cast<std::uint64_t>(shape.vocabulary);
  has_decoder_ = shape.has_decoder();
  if (has_decoder_ || shape.classifies()) target_sequence_ = shape.target_sequence(sequence_);
  for (std::int64_t i = 0; shape.classifies() && i < batch_; ++i)
    classes_.push_back(static_cast<std::int32_t>(i % shape.classes));
  for (std::int64_t i = 0; i < batch_ * std::max(sequence_, target_sequence_); ++i) {
    const std::uint64_t token = split_mix(2, static_cast<std::uint64_t>(i)) % vocabulary;
    tokens_.push_back(static_cast<std::int32_t>(token));
  }
}

Result<std::unique_ptr<TimedModel>> TimedModel::make(const model::ModelFactory& factory,
                                                     const TimedCase& of, int thread_count) {
  model::ModelShape shape = of.shape;
  if (shape.has_decoder()) {
    shape = shape.with_least_depth();
  } else {
    shape.layers = std::min(shape.layers, kTimedBlocks);
  }
  std::unique_ptr<TimedModel> timed(new TimedModel(of, shape));
  const model::ModelOptions options{
      .batch = of.batch, .sequence = of.sequence, .thread_count = thread_count};
  ASSIGN_OR_RETURN(
      timed->built_,
      factory.make(shape, options, ParameterSpan(timed->parameters_, Float16Kind::bf16)));
  return timed;
}

Status TimedModel::set_batch() {
  const auto first = [&](std::int64_t columns) {
    return std::span<const std::int32_t>(tokens_).first(static_cast<std::size_t>(batch_ * columns));
  };
  model::TokenBatch batch{batch_, sequence_, first(sequence_), first(sequence_)};
  if (target_sequence_ > 0) {
    batch.target_sequence = target_sequence_;
    batch.targets = has_decoder_ ? first(target_sequence_) : std::span(classes_);
    if (has_decoder_) batch.decoder_inputs = batch.targets;
  }
  return built_.model->set_batch(0, batch, model::BatchUse::training);
}

Result<StepSeconds> TimedModel::step() {
  RETURN_IF_ERROR(set_batch());
  StepSeconds seconds;
  seconds.forward.resize(static_cast<std::size_t>(layer_count()));
  seconds.backward.resize(static_cast<std::size_t>(layer_count()));
  for (std::int32_t l = 0; l < layer_count(); ++l) {
    const TimeNs start_ns = monotonic_now_ns();
    RETURN_IF_ERROR(built_.model->forward(LayerId{l}, 0));
    seconds.forward[static_cast<std::size_t>(l)] = seconds_since(start_ns);
  }
  for (std::int32_t l = layer_count(); l-- > 0;) {
    model::LayerGradient into;
    into.values_16bit = gradient_.data();
    into.element_count = built_.model->layout().layer(LayerId{l}).count;
    const TimeNs start_ns = monotonic_now_ns();
    RETURN_IF_ERROR(built_.model->backward(LayerId{l}, 0, 1.0, into));
    seconds.backward[static_cast<std::size_t>(l)] = seconds_since(start_ns);
  }
  return seconds;
}

Result<double> TimedModel::forward_after(std::chrono::milliseconds idle, LayerId layer) {
  RETURN_IF_ERROR(set_batch());
  for (std::int32_t l = 0; l < index_of(layer); ++l) {
    RETURN_IF_ERROR(built_.model->forward(LayerId{l}, 0));
  }
  std::this_thread::sleep_for(idle);
  const TimeNs start_ns = monotonic_now_ns();
  RETURN_IF_ERROR(built_.model->forward(layer, 0));
  return seconds_since(start_ns);
}

}  // namespace sluice::calibrate
