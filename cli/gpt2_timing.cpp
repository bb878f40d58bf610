#include "cli/gpt2_timing.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/split_mix.h"
#include "core/model/flop.h"
#include "core/model/gpt2/gpt2.h"

namespace sluice::cli {
namespace {

using calibrate::ComputeSample;
using calibrate::WakeSample;

// Blocks are alike: a few are timed, and stand for all.
constexpr std::int64_t kTimedBlocks = 3;
// Where a step touches memory for the first time a layer takes up to half as long again, and so it
// may in the next.
constexpr int kWarmUps = 3;
// As between two layers of a run that waits for its drives.
constexpr std::chrono::milliseconds kIdle{400};

struct Case {
  model::ModelShape shape;
  std::int64_t batch;
  std::int64_t sequence;
};

// gpt2-124m and tiny of sample_models: products count for most of the one, and single values for
// much of the other. The first two are what --quick times.
std::vector<Case> own_cases() {
  const model::ModelShape wide{"gpt2-124m", 12, 768, 12, 1024, 50257};
  const model::ModelShape narrow{"tiny", 4, 256, 4, 128, 256};
  return {{wide, 1, 256}, {narrow, 32, 128}, {wide, 1, 128}, {narrow, 8, 128}};
}

// In a narrow model's small batch calls and threads take longer than products and values, of which
// a run, whose batch fills the machine, shows little: about what gpt2-124m has in 4 x 256.
std::int64_t timed_batch(const model::ModelShape& shape, std::int64_t sequence) {
  constexpr double kForwardFlop = 250e9;
  constexpr std::int64_t kBatchMin = 4;
  constexpr std::int64_t kBatchMax = 64;
  double flop = 0;
  for (std::int32_t l = 0; l < shape.layers + 2; ++l) {
    flop += model::forward_flop(shape, LayerId{l}, 1, sequence);
  }
  return std::clamp<std::int64_t>(std::llround(kForwardFlop / flop), kBatchMin, kBatchMax);
}

// Seconds of each layer, of one step.
struct StepSeconds {
  std::vector<double> forward;
  std::vector<double> backward;
};

class TimedModel {
 public:
  static Result<std::unique_ptr<TimedModel>> make(const Case& of, int thread_count) {
    auto timed = std::make_unique<TimedModel>();
    timed->case_ = of;
    model::ModelShape shape = of.shape;
    shape.layers = std::min(shape.layers, kTimedBlocks);
    const model::FlatLayout layout = shape.flat_layout();
    timed->parameters_.resize(static_cast<std::size_t>(layout.parameter_count));
    for (std::size_t i = 0; i < timed->parameters_.size(); ++i) {
      const double value = (unit_interval(split_mix(1, i)) - 0.5) * 0.06;
      timed->parameters_[i] = bf16_from_float(static_cast<float>(value));
    }
    timed->gradient_.resize(static_cast<std::size_t>(layout.largest_layer_elements()));
    for (std::int64_t i = 0; i < of.batch * of.sequence; ++i) {
      timed->tokens_.push_back(
          static_cast<std::int32_t>(split_mix(2, static_cast<std::uint64_t>(i)) %
                                    static_cast<std::uint64_t>(shape.vocabulary)));
    }
    model::Gpt2Options options;
    options.batch = of.batch;
    options.sequence = of.sequence;
    options.thread_count = thread_count;
    ASSIGN_OR_RETURN(timed->gpt2_, model::Gpt2::make(shape, options, timed->parameters_));
    return timed;
  }

  Result<StepSeconds> step() {
    RETURN_IF_ERROR(gpt2_->set_batch(0, {case_.batch, case_.sequence, tokens_, tokens_}));
    const std::int32_t layer_count = gpt2_->layout().layer_count();
    StepSeconds seconds;
    seconds.forward.resize(static_cast<std::size_t>(layer_count));
    seconds.backward.resize(static_cast<std::size_t>(layer_count));
    for (std::int32_t l = 0; l < layer_count; ++l) {
      const TimeNs start_ns = monotonic_now_ns();
      RETURN_IF_ERROR(gpt2_->forward(LayerId{l}, 0));
      seconds.forward[static_cast<std::size_t>(l)] = since(start_ns);
    }
    for (std::int32_t l = layer_count; l-- > 0;) {
      model::LayerGradient into;
      into.values_16bit = gradient_.data();
      into.element_count = gpt2_->layout().layer(LayerId{l}).count;
      const TimeNs start_ns = monotonic_now_ns();
      RETURN_IF_ERROR(gpt2_->backward(LayerId{l}, 0, 1.0, into));
      seconds.backward[static_cast<std::size_t>(l)] = since(start_ns);
    }
    return seconds;
  }

  // Of one layer of `forward` done before, so that what it reads is there.
  Result<double> forward_after_idling(std::int32_t layer) {
    RETURN_IF_ERROR(gpt2_->set_batch(0, {case_.batch, case_.sequence, tokens_, tokens_}));
    for (std::int32_t l = 0; l < layer; ++l) RETURN_IF_ERROR(gpt2_->forward(LayerId{l}, 0));
    std::this_thread::sleep_for(kIdle);
    const TimeNs start_ns = monotonic_now_ns();
    RETURN_IF_ERROR(gpt2_->forward(LayerId{layer}, 0));
    return since(start_ns);
  }

 private:
  static double since(TimeNs start_ns) {
    return static_cast<double>(monotonic_now_ns() - start_ns) / 1e9;
  }

  Case case_;
  std::vector<std::uint16_t> parameters_;
  std::vector<std::uint16_t> gradient_;
  std::vector<std::int32_t> tokens_;
  std::unique_ptr<model::Gpt2> gpt2_;
};

double median_layer(const std::vector<StepSeconds>& steps, std::size_t layer,
                    std::vector<double> StepSeconds::* phase) {
  std::vector<double> values;
  for (const StepSeconds& step : steps) values.push_back((step.*phase)[layer]);
  return calibrate::figure_of(std::move(values)).value;
}

// What the model has of a kind of layer, and where that is timed. The embedding takes too little
// to tell anything of a rate.
struct Part {
  const char* name;
  std::int32_t layer;       // one of them
  std::size_t first, last;  // of the timed ones
  double count;             // in the whole model
};

// One direction of each part of the whole model, of medians. Apart, since they tell products and
// single values apart, and a pass's two directions hardly do.
std::vector<ComputeSample> samples_of(const Case& of, const std::vector<StepSeconds>& steps,
                                      std::vector<double> StepSeconds::* phase) {
  const bool is_forward = phase == &StepSeconds::forward;
  const std::size_t head = (steps.front().*phase).size() - 1;
  const auto block_count = static_cast<std::int32_t>(of.shape.layers);
  const std::array<Part, 2> parts = {
      Part{"its blocks", 1, 1, head - 1, static_cast<double>(block_count)},
      Part{"its head", block_count + 1, head, head, 1}};
  std::vector<ComputeSample> samples;
  double phase_seconds = 0;
  for (const Part& part : parts) {
    ComputeSample& sample = samples.emplace_back();
    sample.what = fmt::format("{} {} x {}, {} of {}", of.shape.name, of.batch, of.sequence,
                              is_forward ? "forward" : "backward", part.name);
    const LayerId id{part.layer};
    sample.flop =
        part.count * (is_forward ? model::forward_flop(of.shape, id, of.batch, of.sequence)
                                 : model::backward_flop(of.shape, id, of.batch, of.sequence,
                                                        model::Activations::keep));
    sample.elements =
        part.count * (is_forward ? model::forward_elements(of.shape, id, of.batch, of.sequence)
                                 : model::backward_elements(of.shape, id, of.batch, of.sequence,
                                                            model::Activations::keep));
    for (std::size_t l = part.first; l <= part.last; ++l) {
      sample.seconds += median_layer(steps, l, phase);
    }
    sample.seconds *= part.count / static_cast<double>(part.last - part.first + 1);
    phase_seconds += sample.seconds;
  }
  // What takes little time may be wrong by much.
  for (ComputeSample& sample : samples) sample.weight = sample.seconds / phase_seconds;
  return samples;
}

// The first block and the head, forward, each after a pause: what a run does that waits for its
// drives between layers.
Result<std::vector<WakeSample>> time_after_idling(
    std::span<const std::unique_ptr<TimedModel>> models,
    const std::vector<std::vector<StepSeconds>>& steps, int repeat_count) {
  std::vector<WakeSample> samples;
  for (std::size_t i = 0; i < models.size(); ++i) {
    const auto head = static_cast<std::int32_t>(steps[i].front().forward.size()) - 1;
    for (const std::int32_t layer : {1, head}) {
      std::vector<double> seconds;
      for (int repeat = 0; repeat < repeat_count; ++repeat) {
        ASSIGN_OR_RETURN(const double after_idling, models[i]->forward_after_idling(layer));
        seconds.push_back(after_idling);
      }
      samples.push_back(
          {median_layer(steps[i], static_cast<std::size_t>(layer), &StepSeconds::forward),
           calibrate::figure_of(std::move(seconds)).value});
    }
  }
  return samples;
}

Result<calibrate::ComputeTimes> time_all(const std::vector<Case>& cases, int thread_count,
                                         int repeat_count) {
  std::vector<std::unique_ptr<TimedModel>> models;
  for (const Case& of : cases) {
    ASSIGN_OR_RETURN(std::unique_ptr<TimedModel> timed, TimedModel::make(of, thread_count));
    models.push_back(std::move(timed));
  }
  // They take turns, so that a machine that is disturbed for a while disturbs all alike.
  std::vector<std::vector<StepSeconds>> steps(cases.size());
  for (int repeat = -kWarmUps; repeat < repeat_count; ++repeat) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      ASSIGN_OR_RETURN(StepSeconds seconds, models[i]->step());
      if (repeat >= 0) steps[i].push_back(std::move(seconds));
    }
  }
  calibrate::ComputeTimes times;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (const auto phase : {&StepSeconds::forward, &StepSeconds::backward}) {
      for (ComputeSample& sample : samples_of(cases[i], steps[i], phase)) {
        times.samples.push_back(std::move(sample));
      }
    }
  }
  ASSIGN_OR_RETURN(times.wake_samples, time_after_idling(models, steps, repeat_count));
  return times;
}

// On a thread of its own, as a run's compute worker is: the C library gives such a thread memory
// from another place than the main one, and large tensors come and go with it.
Result<calibrate::ComputeTimes> time_on_own_thread(const std::vector<Case>& cases, int thread_count,
                                                   int repeat_count) {
  Result<calibrate::ComputeTimes> times = calibrate::ComputeTimes();
  std::thread([&] { times = time_all(cases, thread_count, repeat_count); }).join();
  return times;
}

}  // namespace

Result<calibrate::ComputeTimer> gpt2_timer(const Gpt2Timing& timing) {
  std::vector<Case> cases = own_cases();
  if (!timing.model_path.empty()) {
    ASSIGN_OR_RETURN(const model::ModelShape shape, model::load_model_shape(timing.model_path));
    RETURN_IF_ERROR(model::check_trainable(shape));
    const std::int64_t sequence = std::min<std::int64_t>(shape.sequence, 256);
    const std::int64_t batch = timed_batch(shape, sequence);
    cases = {{shape, batch / 4, sequence}, {shape, batch, sequence}};
  }
  const bool is_quick = timing.effort == calibrate::Effort::quick;
  if (is_quick) cases.resize(2);
  const int repeat_count = is_quick ? 5 : 7;
  return calibrate::ComputeTimer{
      static_cast<double>(repeat_count + kWarmUps) * static_cast<double>(cases.size()) * 1.6,
      [cases, thread_count = timing.thread_count, repeat_count] {
        return time_on_own_thread(cases, thread_count, repeat_count);
      }};
}

}  // namespace sluice::cli
