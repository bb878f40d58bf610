// A model with groups of parameters, a frozen tensor and a tied one, in a session: to the bit the
// same in whatever order another thread sends its gradients, and what plain AdamW makes of it; with
// parameters of fp32, to the bit what the rule's definition makes of it.

#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

#include "base/float16.h"
#include "core/optimizer/update_rule.h"
#include "core/session/session.h"
#include "core/session/tensor_table.h"
#include "tests/core/session/open_session.h"
#include "tests/test_folder.h"

using namespace sluice;
using session::GroupRates;
using session::Session;
using session::Tensor;

namespace {

constexpr std::size_t kTokens = 200;
constexpr std::size_t kHidden = 24;
constexpr double kLr = 0.01;

// The groups take turns, and fill subgroups of 4096 exactly, in part, and in part at the end.
enum : std::size_t { kEmbedding, kBias, kMix, kGain, kHead, kShift, kTensorCount };
const std::vector<Tensor> kModelTensors = {
    {.name = "embedding", .shape = {kTokens, kHidden}},
    {.name = "bias", .shape = {kHidden}, .group = 1},
    {.name = "mix", .shape = {kHidden, kHidden}},
    {.name = "gain", .shape = {kHidden}, .is_frozen = true},
    {.name = "head", .shape = {kTokens, kHidden}, .tied_to = "embedding"},
    {.name = "shift", .shape = {kTokens}, .group = 2}};
const std::vector<GroupRates> kModelGroups = {
    {.weight_decay = 0.1},
    {.weight_decay = 0, .beta2 = 0.95},
    {.lr = 0.003, .weight_decay = 0.02, .beta1 = 0.8, .eps = 1e-5}};

float first_weight(std::size_t tensor, std::int64_t element) {
  if (tensor == kGain) return 1 + 0.1F * static_cast<float>(element % 7);
  const std::int64_t mixed = (element * 37 + static_cast<std::int64_t>(tensor) * 11) % 101;
  return (static_cast<float>(mixed) / 101 - 0.5F) / 4;
}

Session::Request model_request(const std::string& folder, std::vector<std::string> settings = {}) {
  Session::Request request{.folder = folder, .tensors = kModelTensors, .groups = kModelGroups};
  request.initial = [](std::size_t tensor, std::int64_t first, std::span<float> out) {
    for (float& value : out) value = first_weight(tensor, first++);
  };
  request.settings = {"platform=sample_models/platforms/smartssd-a5000.toml",
                      "subgroup_elements=4096", "devices=2", "durability=never"};
  request.settings.insert(request.settings.end(), settings.begin(), settings.end());
  return request;
}

float as_float(std::uint16_t bf16) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bf16) << 16);
}

using ModelValues = std::array<std::vector<float>, kTensorCount>;

enum class In : std::uint8_t { bf16, fp32 };

ModelValues model_parameters(Session& session, In precision = In::bf16) {
  ModelValues values;
  for (std::size_t tensor = 0; tensor < kTensorCount; ++tensor) {
    REQUIRE(session.wait(tensor).ok());
    if (precision == In::fp32) {
      const std::span<const float> found = session.parameters_fp32(tensor);
      values[tensor].assign(found.begin(), found.end());
      continue;
    }
    for (const std::uint16_t value : session.parameters(tensor)) {
      values[tensor].push_back(as_float(value));
    }
  }
  return values;
}

// z = embedding[token] x mix + bias, h = gain * z, logits = embedding x h + shift, half the squared
// distance of these from the next token's row of the unit matrix.
class SmallModel {
 public:
  explicit SmallModel(const ModelValues& parameters) : p_(parameters) {
    for (std::size_t tensor = 0; tensor < kTensorCount; ++tensor) {
      gradient_[tensor].assign(p_[tensor].size(), 0);
    }
  }

  void learn(std::size_t token, std::size_t next) {
    std::vector<float> z = p_[kBias];
    std::vector<float> h(kHidden);
    for (std::size_t j = 0; j < kHidden; ++j) {
      for (std::size_t i = 0; i < kHidden; ++i) {
        z[j] += p_[kEmbedding][token * kHidden + i] * p_[kMix][i * kHidden + j];
      }
      h[j] = p_[kGain][j] * z[j];
    }
    std::vector<float> to_h(kHidden, 0);
    for (std::size_t v = 0; v < kTokens; ++v) {
      float off = p_[kShift][v] - (v == next ? 1.0F : 0.0F);
      for (std::size_t j = 0; j < kHidden; ++j) off += p_[kHead][v * kHidden + j] * h[j];
      gradient_[kShift][v] += off;
      for (std::size_t j = 0; j < kHidden; ++j) {
        gradient_[kEmbedding][v * kHidden + j] += off * h[j];  // as the head
        to_h[j] += off * p_[kHead][v * kHidden + j];
      }
    }
    for (std::size_t j = 0; j < kHidden; ++j) {
      const float to_z = to_h[j] * p_[kGain][j];
      gradient_[kBias][j] += to_z;
      for (std::size_t i = 0; i < kHidden; ++i) {
        gradient_[kMix][i * kHidden + j] += p_[kEmbedding][token * kHidden + i] * to_z;
        gradient_[kEmbedding][token * kHidden + i] += to_z * p_[kMix][i * kHidden + j];
      }
    }
  }

  const ModelValues& gradient() const { return gradient_; }

 private:
  const ModelValues& p_;
  ModelValues gradient_;
};

ModelValues model_gradients(const ModelValues& parameters, std::int64_t step) {
  SmallModel model(parameters);
  for (std::int64_t t = 0; t < 4; ++t) {
    const auto token = static_cast<std::size_t>(step * 17 + t * 5) % kTokens;
    model.learn(token, (token * 3 + 1) % kTokens);
  }
  return model.gradient();
}

// The head is the embedding, which comes under either name.
std::vector<std::size_t> in_list_order(std::int64_t /*step*/) {
  return {kEmbedding, kBias, kMix, kShift};
}
std::vector<std::size_t> in_any_order(std::int64_t step) {
  std::vector<std::size_t> order = {step % 2 == 0 ? kHead : kEmbedding, kBias, kMix, kShift};
  std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(step)));
  return order;
}

// By another thread, in that order.
void send_all(Session& session, const ModelValues& gradients,
              const std::vector<std::size_t>& order) {
  std::thread([&] {
    for (const std::size_t tensor : order) {
      const std::size_t of = tensor == kHead ? std::size_t{kEmbedding} : tensor;
      if (!session.send(tensor, gradients[of]).ok()) std::abort();
    }
  }).join();
}

void train_model(Session& session, std::int64_t until,
                 std::vector<std::size_t> (*order)(std::int64_t), In precision = In::bf16) {
  while (session.step() < until) {
    const std::int64_t step = session.step();
    send_all(session, model_gradients(model_parameters(session, precision), step), order(step));
    REQUIRE(problem(session.take_step({.lr = kLr})) == "");
  }
}

// The state of all tensors before the first step.
template <typename Number>
struct ModelState {
  ModelState() {
    for (std::size_t tensor = 0; tensor < kTensorCount; ++tensor) {
      const std::int64_t count = session::element_count(kModelTensors[tensor]);
      for (std::int64_t i = 0; i < count; ++i) {
        weights[tensor].push_back(first_weight(tensor, i));
      }
      exp_avg[tensor].assign(weights[tensor].size(), 0);
      exp_avg_sq[tensor].assign(weights[tensor].size(), 0);
    }
  }

  std::array<std::vector<Number>, kTensorCount> weights, exp_avg, exp_avg_sq;
};

// AdamW as its paper has it, in double and written here alone; each tensor by its group's rates.
struct PlainAdamW : ModelState<double> {
  void step(std::size_t tensor, const std::vector<float>& gradient, double t) {
    const GroupRates& rates = kModelGroups[kModelTensors[tensor].group];
    const double lr = rates.lr.value_or(kLr);
    const double beta1 = rates.beta1.value_or(0.9), beta2 = rates.beta2.value_or(0.999);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double g = gradient[i];
      double& m = exp_avg[tensor][i];
      double& v = exp_avg_sq[tensor][i];
      m = beta1 * m + (1 - beta1) * g;
      v = beta2 * v + (1 - beta2) * g * g;
      const double unbiased = std::sqrt(v / (1 - std::pow(beta2, t))) + rates.eps.value_or(1e-8);
      weights[tensor][i] *= 1 - lr * *rates.weight_decay;
      weights[tensor][i] -= lr * m / (1 - std::pow(beta1, t)) / unbiased;
    }
  }
};

// The definition of AdamW (core/optimizer/update_rule.h) on arrays of its own.
struct ReferenceAdamW : ModelState<float> {
  void step(std::size_t tensor, const std::vector<float>& gradient, std::int64_t t) {
    const GroupRates& rates = kModelGroups[kModelTensors[tensor].group];
    optimizer::UpdateOptions update = optimizer::default_options(optimizer::RuleKind::adamw);
    update.lr = rates.lr.value_or(kLr);
    update.weight_decay = *rates.weight_decay;
    update.beta1 = rates.beta1.value_or(update.beta1);
    update.beta2 = rates.beta2.value_or(update.beta2);
    update.eps = rates.eps.value_or(update.eps);
    optimizer::UpdateArrays arrays;
    arrays.element_count = std::ssize(gradient);
    arrays.state = {weights[tensor].data(), exp_avg[tensor].data(), exp_avg_sq[tensor].data()};
    arrays.gradient = gradient.data();
    optimizer::update_reference(optimizer::update_scalars(update, t, 1), arrays);
  }
};

// What moves the bytes of a session with parameters of fp32.
const std::vector<std::vector<std::string>> kWaysInFp32 = {
    {"method=host", "pipeline=serial"},
    {"method=host", "gradient_tier=memory", "state_cache=60KB", "commit_every=3"},
    {"method=csd"},
    {"method=csd", "wire=native", "pipeline=handover", "devices=1"},
    {"method=csd", "io_engine=posix", "buffers=1", "device_map=3,1"}};

std::vector<std::string> in_fp32(const std::vector<std::string>& way) {
  std::vector<std::string> settings = {"precision=fp32", "max_grad_norm=0"};
  settings.insert(settings.end(), way.begin(), way.end());
  return settings;
}

}  // namespace

TEST_CASE("parameters of fp32 are, bit by bit, what the rule's definition makes of them") {
  for (const std::vector<std::string>& way : kWaysInFp32) {
    INFO(way.front() << " " << way.back());
    const TestFolder folder;
    ReferenceAdamW reference;
    // Gone on with in between.
    for (const std::int64_t until : {3, 7}) {
      auto session = opened(model_request(folder.path(), in_fp32(way)));
      while (session->step() < until) {
        const std::int64_t step = session->step();
        const ModelValues found = model_parameters(*session, In::fp32);
        for (const std::size_t tensor : in_list_order(step)) {
          REQUIRE(found[tensor] == reference.weights[tensor]);
        }
        REQUIRE(found[kHead] == found[kEmbedding]);
        for (std::size_t i = 0; i < kHidden; ++i) {
          REQUIRE(found[kGain][i] == first_weight(kGain, static_cast<std::int64_t>(i)));
        }
        const ModelValues gradients = model_gradients(found, step);
        for (const std::size_t tensor : in_list_order(step)) {
          reference.step(tensor, gradients[tensor], step + 1);
        }
        send_all(*session, gradients, in_any_order(step));
        REQUIRE(problem(session->take_step({.lr = kLr})) == "");
      }
      const ModelValues found = model_parameters(*session, In::fp32);
      CHECK(found[kEmbedding] == reference.weights[kEmbedding]);
      CHECK(found[kShift] == reference.weights[kShift]);
      REQUIRE(problem(session->close()) == "");
    }
  }
}

TEST_CASE("parameters of fp32 have the same bits however they are offloaded") {
  std::optional<std::string> first;
  for (const std::vector<std::string>& way : kWaysInFp32) {
    INFO(way.front() << " " << way.back());
    const TestFolder folder;
    auto session = opened(model_request(folder.path(), in_fp32(way)));
    train_model(*session, 5, in_any_order, In::fp32);
    REQUIRE(problem(session->close()) == "");
    if (!first) first = digest_in(folder.path());
    CHECK(digest_in(folder.path()) == *first);
  }
}

TEST_CASE("groups of a model with frozen and tied tensors are updated as plain AdamW does") {
  const TestFolder folder;
  auto session = opened(model_request(folder.path(), {"max_grad_norm=0"}));
  PlainAdamW plain;
  for (std::int64_t step = 0; step < 8; ++step) {
    const ModelValues gradients = model_gradients(model_parameters(*session), step);
    double squares = 0;
    for (const std::size_t tensor : in_list_order(step)) {
      plain.step(tensor, gradients[tensor], static_cast<double>(step + 1));
      for (const double g : gradients[tensor]) squares += g * g;
    }
    send_all(*session, gradients, in_any_order(step));
    const auto done = session->take_step({.lr = kLr});
    REQUIRE(problem(done) == "");
    // The tied one counts once.
    CHECK(done->grad_norm == Approx(std::sqrt(squares)));
  }
  const ModelValues found = model_parameters(*session);
  for (const std::size_t tensor : in_list_order(0)) {
    INFO(kModelTensors[tensor].name);
    for (std::size_t i = 0; i < found[tensor].size(); ++i) {
      const double expected = plain.weights[tensor][i];
      REQUIRE(std::abs(found[tensor][i] - expected) <= 1.0 / 256 * std::abs(expected) + 1e-5);
    }
  }
  CHECK(found[kHead] == found[kEmbedding]);
  for (std::size_t i = 0; i < kHidden; ++i) {
    const float first = first_weight(kGain, static_cast<std::int64_t>(i));
    REQUIRE(found[kGain][i] == float_from_bf16(bf16_from_float(first)));
  }
  REQUIRE(problem(session->close()) == "");
}

TEST_CASE("groups: the order in which another thread sends the gradients changes no bit") {
  const std::vector<std::vector<std::string>> ways = {
      {},
      {"method=host", "pipeline=serial"},
      {"pipeline=handover", "wire=native", "devices=1"},
      {"density=0.2", "error_feedback=true", "commit_every=2"},
      {"method=host", "gradient_tier=memory", "state_cache=1MiB"}};
  for (const std::vector<std::string>& way : ways) {
    const TestFolder one;
    auto session = opened(model_request(one.path(), way));
    train_model(*session, 6, in_list_order);
    REQUIRE(problem(session->close()) == "");
    const TestFolder other;
    // Gone on with in between.
    for (const std::int64_t until : {2, 6}) {
      auto part = opened(model_request(other.path(), way));
      train_model(*part, until, in_any_order);
      REQUIRE(problem(part->close()) == "");
    }
    CHECK(digest_in(other.path()) == digest_in(one.path()));
  }
}

TEST_CASE("rates of a step are those of its groups") {
  const TestFolder folder;
  auto session = opened(model_request(folder.path()));
  const ModelValues before = model_parameters(*session);
  send_all(*session, model_gradients(before, 0), in_list_order(0));
  const GroupRates still{.lr = 0, .weight_decay = 0};
  CHECK_THAT(session->take_step({.groups = {still}}).error().message(),
             Catch::Contains("rates of 1 groups, and the session 3"));
  REQUIRE(problem(session->take_step({.groups = {still, {.lr = 0.1}, still}})) == "");
  const ModelValues after = model_parameters(*session);
  CHECK(after[kEmbedding] == before[kEmbedding]);
  CHECK(after[kMix] == before[kMix]);
  CHECK(after[kShift] == before[kShift]);
  CHECK(after[kBias] != before[kBias]);
}

TEST_CASE("no subgroup has tensors of two groups, and small groups are padded by little") {
  const auto table = session::TensorTable::make(model_request("unused"), 4096);
  REQUIRE(problem(table) == "");
  // Embedding and mix have four pages of 2048 elements, the others one each.
  CHECK(std::vector<std::int32_t>(table->group_ends().begin(), table->group_ends().end()) ==
        std::vector<std::int32_t>{2, 3, 4});
  CHECK(table->layout().parameter_count == 3 * 4096 + 2048);
  CHECK(table->layout().tensors[2].name == "bias");
  CHECK(table->layout().tensors[2].first == 2 * 4096);
  CHECK(table->layer(kHead) == table->layer(kEmbedding));
  CHECK(table->layer(kGain) == kNoLayer);
  CHECK(table->frozen_bytes(ParameterKind::bf16) == 2 * kHidden);
  CHECK(table->frozen_bytes(ParameterKind::fp32) == 4 * kHidden);
  const auto large = session::TensorTable::make(model_request("unused"), 1 << 20);
  REQUIRE(problem(large) == "");
  CHECK(large->subgroup_elements() == 4 * 2048);
}

TEST_CASE("tensors whose group, tie or gradient cannot be are refused") {
  const TestFolder folder;
  const auto refusal = [&](std::size_t tensor, const auto& change) {
    Session::Request request = model_request(folder.path());
    change(request.tensors[tensor]);
    return problem(Session::open(request));
  };
  CHECK_THAT(refusal(kMix, [](Tensor& mix) { mix.group = 3; }),
             Catch::Contains("mix: there is no group 3; the session has 3"));
  CHECK_THAT(refusal(kHead, [](Tensor& head) { head.tied_to = "heart"; }),
             Catch::Contains("head: tied to \"heart\", which is no tensor of its own"));
  CHECK_THAT(refusal(kHead, [](Tensor& head) { head.shape = {kHidden, kTokens}; }),
             Catch::Contains("head: tied to embedding, which has another shape"));
  CHECK_THAT(refusal(kHead, [](Tensor& head) { head.is_frozen = true; }),
             Catch::Contains("head: tied to embedding, which says its group"));
  Session::Request frozen = model_request(folder.path());
  for (Tensor& tensor : frozen.tensors) tensor.is_frozen = tensor.tied_to.empty();
  CHECK_THAT(problem(Session::open(frozen)),
             Catch::Contains("at least one tensor that is trained"));

  auto session = opened(model_request(folder.path()));
  CHECK_THAT(session->send(kGain, std::vector<float>(kHidden)).error().message(),
             Catch::Contains("gain is frozen, and has no gradient"));
  const ModelValues gradients = model_gradients(model_parameters(*session), 0);
  REQUIRE(session->send(kHead, gradients[kEmbedding]).ok());
  CHECK_THAT(session->send(kEmbedding, gradients[kEmbedding]).error().message(),
             Catch::Contains("embedding has come already for step 1"));
  session.reset();
  // The same tensors in other groups are another state.
  Session::Request moved = model_request(folder.path());
  moved.tensors[kMix].group = 1;
  CHECK_THAT(problem(Session::open(moved)), Catch::Contains("was begun with"));
}
