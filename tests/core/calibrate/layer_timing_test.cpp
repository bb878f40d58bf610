// What is timed of a model, and what is made of it. The model computes nothing: it notes the calls.

#include "core/calibrate/layer_timing.h"

#include <catch2/catch.hpp>
#include <set>
#include <thread>

#include "core/calibrate/timed_model.h"
#include "core/model/flop.h"

namespace sluice::calibrate {
namespace {

struct Call {
  std::string model;
  std::string what;
  std::int32_t layer;
};

struct Notes {
  std::vector<Call> calls;
  std::vector<model::ModelShape> shapes;
  std::vector<model::ModelOptions> options;
  std::thread::id thread;
  int failing_forward = -1;  // this call of forward and all after it; -1: none
  int forward_count = 0;
};

class NotingModel final : public model::TrainableModel {
 public:
  NotingModel(const model::ModelShape& shape, const ParameterSpan& parameters, Notes& notes)
      : name_(shape.name), layout_(shape.flat_layout()), parameters_(parameters), notes_(notes) {}
  const model::FlatLayout& layout() const override { return layout_; }
  ParameterKind parameter_kind() const override { return parameters_.kind(); }
  ParameterSpan parameters() override { return parameters_; }
  Status set_batch(int, const model::TokenBatch& batch, model::BatchUse) override {
    CHECK(std::ssize(batch.inputs) == batch.batch * batch.sequence);
    notes_.calls.push_back({name_, "batch", -1});
    return ok_status();
  }
  Status forward(LayerId layer, int) override {
    notes_.calls.push_back({name_, "forward", index_of(layer)});
    const bool fails =
        notes_.failing_forward >= 0 && notes_.forward_count >= notes_.failing_forward;
    ++notes_.forward_count;
    return fails ? Status(make_error(ErrorCode::memory, "made")) : ok_status();
  }
  Status backward(LayerId layer, int, double, const model::LayerGradient& into) override {
    CHECK(into.element_count == layout_.layer(layer).count);
    notes_.calls.push_back({name_, "backward", index_of(layer)});
    return ok_status();
  }
  double loss(int) const override { return 0; }
  Status choose_activations(const model::LayerActivations&) override { return ok_status(); }

 private:
  std::string name_;
  model::FlatLayout layout_;
  ParameterSpan parameters_;
  Notes& notes_;
};

model::ModelFactory noting(Notes& notes) {
  model::ModelFactory factory;
  factory.make = [&notes](const model::ModelShape& shape, const model::ModelOptions& options,
                          const ParameterSpan& parameters) -> Result<model::BuiltModel> {
    notes.shapes.push_back(shape);
    notes.options.push_back(options);
    notes.thread = std::this_thread::get_id();
    return model::BuiltModel{std::make_unique<NotingModel>(shape, parameters, notes)};
  };
  return factory;
}

const model::ModelShape kDeep{"deep", 6, 64, 4, 128, 300};
const model::ModelShape kShallow{"shallow", 2, 32, 2, 64, 256};
const std::vector<TimedCase> kCases = {{kDeep, 2, 16}, {kShallow, 4, 8}, {kDeep, 1, 16}};

ComputeTimes times_of(Notes& notes, Effort effort = Effort::thorough) {
  const ComputeTimer timer = layer_timer(
      noting(notes),
      {.cases = kCases, .thread_count = 3, .effort = effort, .idle = std::chrono::milliseconds(0)});
  CHECK(timer.estimated_seconds > 0);
  auto times = timer.time();
  REQUIRE(times.ok());
  return std::move(*times);
}

TEST_CASE("models are made with a few of their blocks, on a thread of their own") {
  Notes notes;
  (void)times_of(notes);
  REQUIRE(notes.shapes.size() == 3);
  CHECK(notes.shapes[0].layers == kTimedBlocks);
  CHECK(notes.shapes[1].layers == 2);
  CHECK(notes.options[1].batch == 4);
  CHECK(notes.options[1].sequence == 8);
  CHECK(notes.options[1].thread_count == 3);
  CHECK(notes.thread != std::this_thread::get_id());
}

TEST_CASE("steps go up the layers and down again, and the cases take turns") {
  Notes notes;
  (void)times_of(notes);
  std::vector<std::string> order;  // of the models' steps, while there is a backward in them
  std::string layers;
  for (const Call& call : notes.calls) {
    if (call.what == "batch") layers.clear();
    layers += call.what[0] + std::to_string(call.layer) + " ";
    if (call.what != "backward" || call.layer != 0) continue;
    order.push_back(call.model);
    CHECK(layers == (call.model == "deep" ? "b-1 f0 f1 f2 f3 f4 b4 b3 b2 b1 b0 "
                                          : "b-1 f0 f1 f2 f3 b3 b2 b1 b0 "));
  }
  REQUIRE(order.size() % 3 == 0);
  CHECK(order.size() / 3 > 5);
  for (std::size_t i = 0; i < order.size(); i += 3) {
    CHECK(order[i] == "deep");
    CHECK(order[i + 1] == "shallow");
  }
}

TEST_CASE("blocks and head of each case stand for the whole model, in both directions") {
  Notes notes;
  const ComputeTimes times = times_of(notes);
  REQUIRE(times.samples.size() == 3 * 4);
  const std::array<std::string, 4> names = {"forward of its blocks", "forward of its head",
                                            "backward of its blocks", "backward of its head"};
  for (std::size_t i = 0; i < times.samples.size(); ++i) {
    const ComputeSample& sample = times.samples[i];
    const TimedCase& of = kCases[i / 4];
    CHECK(sample.what ==
          fmt::format("{} {} x {}, {}", of.shape.name, of.batch, of.sequence, names[i % 4]));
    const bool is_head = i % 2 == 1;
    const LayerId layer{is_head ? static_cast<std::int32_t>(of.shape.layers) + 1 : 1};
    const double count = is_head ? 1 : static_cast<double>(of.shape.layers);
    const bool is_forward = i % 4 < 2;
    const double flop = is_forward ? model::forward_flop(of.shape, layer, of.batch, of.sequence)
                                   : model::backward_flop(of.shape, layer, of.batch, of.sequence,
                                                          model::Activations::keep);
    CHECK(sample.flop == Approx(count * flop));
    CHECK(sample.seconds > 0);
    if (is_head) CHECK(sample.weight + times.samples[i - 1].weight == Approx(1));
  }
}

TEST_CASE("the first block and the head of each case are timed after idling") {
  Notes notes;
  const ComputeTimes times = times_of(notes);
  CHECK(times.wake_samples.size() == 2 * kCases.size());
  std::multiset<std::int32_t> last_layers;
  for (std::size_t i = 0; i + 1 < notes.calls.size(); ++i) {
    const bool ends = notes.calls[i].what == "forward" && notes.calls[i + 1].what == "batch";
    if (ends) last_layers.insert(notes.calls[i].layer);
  }
  last_layers.insert(notes.calls.back().layer);
  CHECK(last_layers.count(1) == 3 * last_layers.count(3));  // the head of shallow is layer 3
  CHECK(last_layers.count(4) == 2 * last_layers.count(3));
}

TEST_CASE("a quick timing takes two cases and fewer steps") {
  Notes thorough;
  Notes quick;
  (void)times_of(thorough);
  const ComputeTimes times = times_of(quick, Effort::quick);
  CHECK(quick.shapes.size() == 2);
  CHECK(times.samples.size() == 2 * 4);
  CHECK(quick.forward_count * 3 < thorough.forward_count * 2);
}

TEST_CASE("a model that fails ends the timing with its error") {
  for (const int failing : {0, 17, 200}) {
    Notes notes;
    notes.failing_forward = failing;
    const ComputeTimer timer =
        layer_timer(noting(notes), {.cases = kCases, .idle = std::chrono::milliseconds(0)});
    const auto times = timer.time();
    REQUIRE(!times.ok());
    CHECK(times.error().code() == ErrorCode::memory);
  }
}

TEST_CASE("a model of the user's is timed with a batch that fills the machine, and a quarter") {
  const model::ModelShape small{"small", 2, 64, 4, 128, 256};
  const model::ModelShape large{"large", 48, 1600, 25, 1024, 50257};
  for (const model::ModelShape& shape : {small, large}) {
    const std::vector<TimedCase> cases = timed_cases(shape);
    REQUIRE(cases.size() == 2);
    CHECK(cases[1].batch >= 4);
    CHECK(cases[1].batch <= 64);
    CHECK(cases[0].batch == cases[1].batch / 4);
    CHECK(cases[0].sequence == std::min<std::int64_t>(shape.sequence, 256));
  }
  CHECK(timed_cases(small)[1].batch == 64);
  CHECK(timed_cases(large)[1].batch == 4);
}

}  // namespace
}  // namespace sluice::calibrate
