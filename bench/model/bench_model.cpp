// Seconds of forward and backward of a model file on this machine (median of n steps), by kind of
// layer, and the memory it took against the plan. Random tokens: the arithmetic does not depend on
// them.
//
//   bench_model sample_models/models/gpt2-124m.toml --batch 1 --sequence 256

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <numeric>
#include <vector>

#include "base/clock.h"
#include "base/float16.h"
#include "base/split_mix.h"
#include "core/model/library/models.h"

namespace {

using namespace sluice;

struct Settings {
  std::string model_path;
  model::ModelOptions options{.batch = 1, .sequence = 256};
  int step_count = 7;
  std::uint64_t seed = 0;
};

std::vector<std::uint16_t> initial_parameters(const model::FlatLayout& layout,
                                              const Settings& settings) {
  const Float16Kind kind = float16_kind(settings.options.compute);
  std::vector<std::uint16_t> parameters(static_cast<std::size_t>(layout.parameter_count));
  std::vector<float> piece(std::size_t{1} << 20);
  for (std::size_t first = 0; first < parameters.size(); first += piece.size()) {
    const auto part = std::span(piece).first(std::min(piece.size(), parameters.size() - first));
    model::fill_initial(layout, settings.seed, static_cast<std::int64_t>(first), part);
    std::transform(part.begin(), part.end(),
                   parameters.begin() + static_cast<std::ptrdiff_t>(first),
                   [&](float value) { return float16_from_float(kind, value); });
  }
  return parameters;
}

std::vector<std::int32_t> random_tokens(std::int64_t count, std::int64_t vocabulary,
                                        std::uint64_t seed) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t random = split_mix(seed, static_cast<std::uint64_t>(i));
    tokens.push_back(static_cast<std::int32_t>(random % static_cast<std::uint64_t>(vocabulary)));
  }
  return tokens;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// A line of /proc/self/status, in bytes ("VmHWM:   123 kB").
std::int64_t process_memory(std::string_view key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::stoll(line.substr(key.size() + 1)) * 1024;
  }
  return 0;
}

// One value a layer.
struct StepSeconds {
  std::vector<double> forward;
  std::vector<double> backward;
};

class Bench {
 public:
  Bench(model::TrainableModel& model, const Settings& settings)
      : model_(model),
        settings_(settings),
        gradient_16bit_(
            static_cast<std::size_t>(several() ? 0 : model.layout().largest_layer_elements())),
        gradient_fp32_(
            static_cast<std::size_t>(several() ? model.layout().largest_layer_elements() : 0)) {}

  std::int64_t gradient_bytes() const {
    return static_cast<std::int64_t>(gradient_16bit_.size() * 2 + gradient_fp32_.size() * 4);
  }

  Result<StepSeconds> step(const model::TokenBatch& batch) {
    const int micro_steps = settings_.options.micro_step_count;
    const std::int32_t layers = model_.layout().layer_count();
    for (int m = 0; m < micro_steps; ++m)
      RETURN_IF_ERROR(model_.set_batch(m, batch, model::BatchUse::training));
    StepSeconds seconds;
    for (std::int32_t layer = 0; layer < layers; ++layer) {
      const TimeNs begin = monotonic_now_ns();
      for (int m = 0; m < micro_steps; ++m) RETURN_IF_ERROR(model_.forward(LayerId{layer}, m));
      seconds.forward.push_back(since(begin));
    }
    seconds.backward.resize(seconds.forward.size());
    for (std::int32_t layer = layers - 1; layer >= 0; --layer) {
      const TimeNs begin = monotonic_now_ns();
      std::fill(gradient_fp32_.begin(), gradient_fp32_.end(), 0.0f);
      for (int m = 0; m < micro_steps; ++m) {
        RETURN_IF_ERROR(model_.backward(LayerId{layer}, m, 1.0 / micro_steps, target(layer)));
      }
      seconds.backward[static_cast<std::size_t>(layer)] = since(begin);
    }
    return seconds;
  }

 private:
  static double since(TimeNs begin) {
    return static_cast<double>(monotonic_now_ns() - begin) * 1e-9;
  }
  bool several() const { return settings_.options.micro_step_count > 1; }
  model::LayerGradient target(std::int32_t layer) {
    return {.values_16bit = several() ? nullptr : gradient_16bit_.data(),
            .values_fp32 = several() ? gradient_fp32_.data() : nullptr,
            .element_count = model_.layout().layer(LayerId{layer}).count};
  }

  model::TrainableModel& model_;
  const Settings& settings_;
  std::vector<std::uint16_t> gradient_16bit_;
  std::vector<float> gradient_fp32_;
};

using Phase = std::vector<double> StepSeconds::*;

// The median over steps of layers [first, last), together.
double median_of(const std::vector<StepSeconds>& steps, Phase phase, std::size_t first,
                 std::size_t last) {
  std::vector<double> sums;
  for (const StepSeconds& step : steps) {
    const auto begin = (step.*phase).begin();
    sums.push_back(std::accumulate(begin + static_cast<std::ptrdiff_t>(first),
                                   begin + static_cast<std::ptrdiff_t>(last), 0.0));
  }
  return median(std::move(sums));
}

void print_phase(std::string_view name, const std::vector<StepSeconds>& steps, Phase phase) {
  const std::size_t head = (steps.front().*phase).size() - 1;
  const auto block_count = static_cast<double>(head - 1);
  fmt::print("{} {:.4f} s: embedding {:.2f} ms, a block {:.2f} ms, head {:.2f} ms\n", name,
             median_of(steps, phase, 0, head + 1), 1e3 * median_of(steps, phase, 0, 1),
             1e3 * median_of(steps, phase, 1, head) / block_count,
             1e3 * median_of(steps, phase, head, head + 1));
}

void print_memory(const Settings& settings, const model::ModelShape& shape,
                  std::int64_t parameter_bytes, std::int64_t gradient_bytes) {
  const model::ComputeMemory plan = model::host_compute_memory(shape, settings.options);
  const std::int64_t planned =
      plan.library_bytes + plan.activation_bytes + plan.temporary_bytes + plan.tied_gradient_bytes;
  fmt::print(
      "planned memory  {} = library {} + activations {} + temporaries {} + tied gradient {}\n",
      format_bytes(planned), format_bytes(plan.library_bytes), format_bytes(plan.activation_bytes),
      format_bytes(plan.temporary_bytes), format_bytes(plan.tied_gradient_bytes));
  fmt::print("peak memory     {} without parameters ({}) and the gradient buffer ({})\n",
             format_bytes(process_memory("VmHWM:") - parameter_bytes - gradient_bytes),
             format_bytes(parameter_bytes), format_bytes(gradient_bytes));
}

Status run(const Settings& settings) {
  ASSIGN_OR_RETURN(const model::ModelShape shape, model::load_model_shape(settings.model_path));
  std::vector<std::uint16_t> parameters = initial_parameters(shape.flat_layout(), settings);
  const std::int64_t parameter_bytes = static_cast<std::int64_t>(parameters.size()) * 2;
  fmt::print("before libtorch computes: {} resident, {} of it parameters\n",
             format_bytes(process_memory("VmRSS:")), format_bytes(parameter_bytes));
  ASSIGN_OR_RETURN(const model::BuiltModel built,
                   model::host_factory().make(
                       shape, settings.options,
                       ParameterSpan(parameters, float16_kind(settings.options.compute))));
  const std::int64_t tokens = settings.options.batch * settings.options.sequence;
  const std::vector<std::int32_t> inputs = random_tokens(tokens, shape.vocabulary, settings.seed);
  const std::int64_t target_sequence = shape.target_sequence(settings.options.sequence);
  const std::vector<std::int32_t> targets = random_tokens(settings.options.batch * target_sequence,
                                                          answer_count(shape), settings.seed + 1);
  model::TokenBatch batch{settings.options.batch, settings.options.sequence, inputs, targets};
  if (shape.has_decoder() || shape.classifies()) batch.target_sequence = target_sequence;
  if (shape.has_decoder()) batch.decoder_inputs = targets;

  Bench bench(*built.model, settings);
  std::vector<StepSeconds> steps;
  for (int step = -1; step < settings.step_count; ++step) {  // the first one warms up
    ASSIGN_OR_RETURN(StepSeconds seconds, bench.step(batch));
    if (step >= 0) steps.push_back(std::move(seconds));
  }
  fmt::print("{}: {} parameters, {} micro-batch(es) of {} x {} tokens, loss {:.4f}\n", shape.name,
             built.model->layout().parameter_count, settings.options.micro_step_count,
             settings.options.batch, settings.options.sequence, built.model->loss(0));
  fmt::print("medians of {} steps:\n", settings.step_count);
  print_phase("forward ", steps, &StepSeconds::forward);
  print_phase("backward", steps, &StepSeconds::backward);
  print_memory(settings, shape, parameter_bytes, bench.gradient_bytes());
  return ok_status();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Seconds of a model's forward and backward on this machine");
  Settings settings;
  bool recompute = false;
  bool fp16 = false;
  app.add_option("model", settings.model_path, "model file")->required();
  app.add_option("--batch", settings.options.batch, "windows of a micro-batch");
  app.add_option("--sequence", settings.options.sequence, "tokens of a window");
  app.add_option("--micro-steps", settings.options.micro_step_count, "micro-batches of a step");
  app.add_option("--threads", settings.options.thread_count, "0 = all cores");
  app.add_option("--steps", settings.step_count, "steps that are timed")
      ->check(CLI::PositiveNumber);
  app.add_flag("--recompute", recompute, "keep layer inputs only");
  app.add_flag("--fp16", fp16, "fp16 in place of bf16");
  CLI11_PARSE(app, argc, argv);
  if (recompute) settings.options.activations = model::Activations::recompute;
  if (fp16) settings.options.compute = ParameterKind::fp16;
  const Status status = run(settings);
  if (status.ok()) return 0;
  fmt::print(stderr, "bench_model: {}\n", status.error().message());
  return 1;
}
