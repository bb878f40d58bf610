#include "core/calibrate/layer_timing.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/id_vector.h"
#include "core/calibrate/timed_model.h"
#include "core/model/flop.h"
#include "core/model/layer_places.h"

namespace sluice::calibrate {
namespace {

// Where a step touches memory for the first time a layer takes up to half as long again, and so it
// may in the next.
constexpr int kWarmUps = 3;
constexpr int kRepeats = 7;
constexpr int kQuickRepeats = 5;
constexpr std::size_t kQuickCases = 2;
constexpr double kStepSecondsAbout = 1.6;

// In a narrow model's small batch calls and threads take longer than products and values, of which
// a run, whose batch fills the machine, shows little: about what gpt2-124m has in 4 x 256.
std::int64_t timed_batch(const model::ModelShape& shape, std::int64_t sequence) {
  constexpr double kForwardFlop = 250e9;
  constexpr std::int64_t kBatchMin = 4;
  constexpr std::int64_t kBatchMax = 64;
  double flop = 0;
  for (const LayerId layer : all_ids<LayerId>(model::layer_places(shape).count()))
    flop += model::forward_flop(shape, layer, 1, sequence);
  return std::clamp<std::int64_t>(std::llround(kForwardFlop / flop), kBatchMin, kBatchMax);
}

double median_layer(const std::vector<StepSeconds>& steps, std::size_t layer,
                    std::vector<double> StepSeconds::* phase) {
  std::vector<double> values;
  for (const StepSeconds& step : steps) values.push_back((step.*phase)[layer]);
  return figure_of(std::move(values)).value;
}

// The layers of one kind in the model, and where that kind is timed. The embedding takes too little
// to tell anything of a rate.
struct Part {
  const char* name;
  std::int32_t layer;       // one of them
  std::size_t first, last;  // of the timed ones
  double count;             // in the whole model
};

// The first piece is timed of an output table that is cut, and not the norm before it, which takes
// nothing.
Part head_part(const model::LayerPlaces& places, std::size_t timed_head) {
  if (!places.are_tables_cut())
    return {"its head", index_of(places.head()), timed_head, timed_head, 1};
  return {"its output table", index_of(places.head()) + 1, timed_head + 1, timed_head + 1,
          static_cast<double>(places.table_rows) / static_cast<double>(places.piece_rows)};
}

std::vector<Part> parts_of(const model::ModelShape& shape, std::size_t timed_count) {
  const model::LayerPlaces places = layer_places(shape);
  const auto block_count = static_cast<std::int32_t>(shape.layers);
  const std::size_t timed_head = timed_count - 1 - static_cast<std::size_t>(places.outputs);
  const Part head = head_part(places, timed_head);
  const auto first = static_cast<std::size_t>(places.embeddings);
  if (!shape.has_decoder())
    return {
        {"its blocks", places.embeddings, first, timed_head - 1, static_cast<double>(block_count)},
        head};
  return {{"its encoder's blocks", 1, 1, 1, static_cast<double>(shape.stacks.encoder_layers)},
          {"its decoder's blocks", block_count, 2, 2, static_cast<double>(shape.decoder_layers())},
          head};
}

// One direction of each part of the whole model, of medians. Apart, since they tell products and
// single values apart, and a pass's two directions hardly do.
std::vector<ComputeSample> samples_of(const TimedCase& of, const std::vector<StepSeconds>& steps,
                                      std::vector<double> StepSeconds::* phase) {
  const bool is_forward = phase == &StepSeconds::forward;
  const std::vector<Part> parts = parts_of(of.shape, (steps.front().*phase).size());
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
  // A time that is short may be wrong by much.
  for (ComputeSample& sample : samples) sample.weight = sample.seconds / phase_seconds;
  return samples;
}

// The first block and the last layer, forward, each after a pause: what a run does that waits for
// its drives between layers.
Result<std::vector<WakeSample>> time_after_idling(
    std::span<const std::unique_ptr<TimedModel>> models,
    const std::vector<std::vector<StepSeconds>>& steps, std::chrono::milliseconds idle,
    int repeat_count) {
  std::vector<WakeSample> samples;
  for (std::size_t i = 0; i < models.size(); ++i) {
    const auto last = static_cast<std::int32_t>(steps[i].front().forward.size()) - 1;
    for (const std::int32_t layer : {models[i]->first_block(), last}) {
      std::vector<double> seconds;
      for (int repeat = 0; repeat < repeat_count; ++repeat) {
        ASSIGN_OR_RETURN(const double after_idling, models[i]->forward_after(idle, LayerId{layer}));
        seconds.push_back(after_idling);
      }
      samples.push_back(
          {median_layer(steps[i], static_cast<std::size_t>(layer), &StepSeconds::forward),
           figure_of(std::move(seconds)).value});
    }
  }
  return samples;
}

Result<ComputeTimes> time_all(const model::ModelFactory& factory, const LayerTiming& timing,
                              int repeat_count) {
  const std::vector<TimedCase>& cases = timing.cases;
  std::vector<std::unique_ptr<TimedModel>> models;
  for (const TimedCase& of : cases) {
    ASSIGN_OR_RETURN(models.emplace_back(), TimedModel::make(factory, of, timing.thread_count));
  }
  // They take turns, so that a machine that is disturbed for a while disturbs all alike.
  std::vector<std::vector<StepSeconds>> steps(cases.size());
  for (int repeat = -kWarmUps; repeat < repeat_count; ++repeat) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      ASSIGN_OR_RETURN(StepSeconds seconds, models[i]->step());
      if (repeat >= 0) steps[i].push_back(std::move(seconds));
    }
  }
  ComputeTimes times;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (const auto phase : {&StepSeconds::forward, &StepSeconds::backward}) {
      for (ComputeSample& sample : samples_of(cases[i], steps[i], phase)) {
        times.samples.push_back(std::move(sample));
      }
    }
  }
  ASSIGN_OR_RETURN(times.wake_samples, time_after_idling(models, steps, timing.idle, repeat_count));
  return times;
}

// On a thread of its own, as a run's compute worker is: the C library gives such a thread memory
// from another place than the main one, and large tensors come and go with it.
Result<ComputeTimes> time_on_own_thread(const model::ModelFactory& factory,
                                        const LayerTiming& timing, int repeat_count) {
  Result<ComputeTimes> times = ComputeTimes();
  std::thread([&] { times = time_all(factory, timing, repeat_count); }).join();
  return times;
}

}  // namespace

std::vector<TimedCase> timed_cases(const model::ModelShape& shape) {
  const std::int64_t sequence = std::min<std::int64_t>(shape.sequence, 256);
  const std::int64_t batch = timed_batch(shape, sequence);
  return {{shape, batch / 4, sequence}, {shape, batch, sequence}};
}

ComputeTimer layer_timer(const model::ModelFactory& factory, const LayerTiming& timing) {
  LayerTiming timed = timing;
  const bool is_quick = timing.effort == Effort::quick;
  if (is_quick && timed.cases.size() > kQuickCases) timed.cases.resize(kQuickCases);
  const int repeat_count = is_quick ? kQuickRepeats : kRepeats;
  const int step_count = repeat_count + kWarmUps;
  return {
      step_count * static_cast<double>(timed.cases.size()) * kStepSecondsAbout,
      [factory, timed, repeat_count] { return time_on_own_thread(factory, timed, repeat_count); }};
}

}  // namespace sluice::calibrate
