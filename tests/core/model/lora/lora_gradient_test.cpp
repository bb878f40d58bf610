// Adapters beside each family's linear layers: loss and gradients against the plain models, whose
// matrices are W + scale B A, and against those of PEFT.

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>

#include "base/split_mix.h"
#include "core/model/lora.h"
#include "tests/core/model/bert/plain_bert.h"
#include "tests/core/model/gpt2/batches.h"
#include "tests/core/model/gpt2/plain_gpt2.h"
#include "tests/core/model/gradient_distance.h"
#include "tests/core/model/llama/fixture.h"
#include "tests/core/model/llama/plain_llama.h"
#include "tests/core/model/t5/plain_t5.h"
#include "tests/core/model/t5/small_t5.h"

namespace sluice::model {
namespace {

struct PlainStep {
  double loss = 0;
  std::vector<float> gradient;  // of all of the model's parameters, flat
};
using PlainFamily =
    std::function<PlainStep(const ModelShape&, const std::vector<float>&, const TokenBatch&)>;

struct Case {
  ModelShape shape;
  std::string targets;
  PlainFamily plain;
  // A T5's scores are not scaled: with such weights its attention would be all or nothing.
  double weight_scale = 4;
  double adapter_width = 0.3;
};

PlainStep llama_plainly(const ModelShape& shape, const std::vector<float>& parameters,
                        const TokenBatch& batch) {
  const PlainLlama found = plain_llama(shape, parameters, batch);
  return {found.loss, found.gradient};
}
PlainStep gpt2_plainly(const ModelShape& shape, const std::vector<float>& parameters,
                       const TokenBatch& batch) {
  const PlainResult found = plain_gpt2(shape, parameters, batch);
  return {found.loss, found.gradient};
}
PlainStep bert_plainly(const ModelShape& shape, const std::vector<float>& parameters,
                       const TokenBatch& batch) {
  const PlainBert found = plain_bert(shape, parameters, batch);
  return {found.loss, found.gradient};
}

PlainStep t5_plainly(const ModelShape& shape, const std::vector<float>& parameters,
                     const TokenBatch& batch) {
  const PlainT5 found = plain_t5(shape, parameters, batch);
  return {found.loss, found.gradient};
}

Case of_t5(ModelShape shape, std::string targets) {
  return {std::move(shape), std::move(targets), t5_plainly, 1, 0.1};
}

Batch batch_for(const ModelShape& shape, std::int64_t rows, std::int64_t sequence) {
  Batch batch(rows, sequence, shape.vocabulary, 5);
  if (!shape.has_decoder()) return batch;
  batch.target_sequence = shape.target_sequence(sequence);
  const Batch decoded(rows, batch.target_sequence, shape.vocabulary, 6);
  batch.targets = decoded.targets;
  batch.decoder_inputs = decoded.inputs;
  return batch;
}

std::vector<Case> cases() {
  ModelShape llama{"llama", 3, 48, 4, 24, 97, Family::llama};
  llama.kv_heads = 2;
  llama.ffn = 80;
  ModelShape biased = llama;
  biased.qkv_bias = biased.o_bias = biased.mlp_bias = biased.tied_tables = biased.qk_norm = true;
  ModelShape bert{"bert", 3, 48, 4, 24, 97, Family::bert};
  bert.masked_head = true;
  bert.ffn = 80;
  return {{llama, "", llama_plainly},
          {biased, "all-linear", llama_plainly},
          {llama, "layers.1.mlp.down_proj", llama_plainly},
          {kSmall, "", gpt2_plainly},
          {kSmall, "all-linear", gpt2_plainly},
          {bert, "", bert_plainly},
          {bert, "all-linear", bert_plainly},
          of_t5(small_t5(true), ""),
          of_t5(small_t5(false), "all-linear"),
          // The decoder alone, from its first block and from a later one on, and the encoder.
          of_t5(small_t5(true), "EncDecAttention.k,EncDecAttention.v"),
          of_t5(small_t5(true), "decoder.block.1.*.q"),
          of_t5(small_t5(false), "encoder.block.1.*.wo")};
}

ModelShape adapted(const ModelShape& shape, const std::string& targets, double alpha = 6) {
  const auto made = with_adapters(shape, {.rank = 4, .alpha = alpha, .targets = targets});
  REQUIRE(made.ok());
  return *made;
}

// Neither A nor B is zero.
std::vector<float> drawn(std::int64_t count, double width) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const double uniform = unit_interval(split_mix(11, static_cast<std::uint64_t>(i)));
    values.push_back(static_cast<float>(width * (2 * uniform - 1)));
  }
  return values;
}

// The places of a module's three matrices, and a number of each by row and column.
struct Matrices {
  Matrices(const ModelShape& of, const LinearModule& linear)
      : shape(of), module(linear), base(of.base_layout()), adapters(of.flat_layout()) {
    weight = first_of(base, ".weight");
    a = first_of(adapters, ".lora_A.weight");
    b = first_of(adapters, ".lora_B.weight");
  }
  std::int64_t first_of(const FlatLayout& layout, const std::string& end) const {
    return std::ranges::find(layout.tensors, module.name + end, &TensorInfo::name)->first;
  }
  std::size_t w_at(std::int64_t out, std::int64_t in) const {
    const bool is_in_out = shape.family == Family::gpt2;
    return static_cast<std::size_t>(weight +
                                    (is_in_out ? in * module.out + out : out * module.in + in));
  }
  std::size_t a_at(std::int64_t rank, std::int64_t in) const {
    return static_cast<std::size_t>(a + rank * module.in + in);
  }
  std::size_t b_at(std::int64_t out, std::int64_t rank) const {
    return static_cast<std::size_t>(b + out * shape.lora.rank + rank);
  }

  const ModelShape& shape;
  const LinearModule& module;
  FlatLayout base;
  FlatLayout adapters;
  std::int64_t weight = 0, a = 0, b = 0;
};

// Each (out, in, rank) of all modules.
void for_each(const ModelShape& shape,
              const std::function<void(std::size_t w, std::size_t a, std::size_t b)>& use) {
  for (const LinearModule& module : adapted_modules(shape)) {
    const Matrices at(shape, module);
    for (std::int64_t out = 0; out < module.out; ++out) {
      for (std::int64_t in = 0; in < module.in; ++in) {
        for (std::int64_t r = 0; r < shape.lora.rank; ++r)
          use(at.w_at(out, in), at.a_at(r, in), at.b_at(out, r));
      }
    }
  }
}

// W + scale B A, and what follows for A and B from the gradient of that.
PlainStep plain_with_adapters(const Case& one, const ModelShape& shape,
                              const std::vector<float>& base, const std::vector<float>& adapters,
                              const TokenBatch& batch) {
  std::vector<double> merged(base.begin(), base.end());
  for_each(shape, [&](std::size_t w, std::size_t a, std::size_t b) {
    merged[w] += shape.lora.scale() * adapters[b] * adapters[a];
  });
  const PlainStep found = one.plain(one.shape, {merged.begin(), merged.end()}, batch);
  std::vector<double> gradient(adapters.size());
  for_each(shape, [&](std::size_t w, std::size_t a, std::size_t b) {
    gradient[a] += shape.lora.scale() * adapters[b] * found.gradient[w];
    gradient[b] += shape.lora.scale() * found.gradient[w] * adapters[a];
  });
  return {found.loss, {gradient.begin(), gradient.end()}};
}

ModelOptions on(std::vector<float>& base, std::int64_t batch = 3, std::int64_t sequence = 20) {
  return {.batch = batch,
          .sequence = sequence,
          .compute = ParameterKind::fp32,
          .base = ParameterSpan(base)};
}

TEST_CASE("loss and gradients of adapters are those of plain models with W + scale B A") {
  for (const Case& one : cases()) {
    INFO(one.shape.name << " " << one.targets);
    const ModelShape shape = adapted(one.shape, one.targets);
    std::vector<float> base = make_weights(one.shape, one.weight_scale);
    const std::vector<float> unchanged = base;
    Gpt2Run run(shape, on(base));
    std::ranges::copy(drawn(std::ssize(run.parameters_fp32), one.adapter_width),
                      run.parameters_fp32.begin());
    const Batch batch = batch_for(one.shape, 3, 20);
    const std::vector<float> gradient = run.step({batch}, 1);
    const PlainStep plain =
        plain_with_adapters(one, shape, base, run.parameters_fp32, batch.view());
    CHECK(run.model->loss(0) == Approx(plain.loss).epsilon(1e-5));
    check_tensors(shape, gradient, plain.gradient, 1e-5);
    CHECK(base == unchanged);
  }
}

void check_begin(const Case& one, ParameterKind kind) {
  INFO(one.shape.name << " " << one.targets << " " << bytes_of(kind) << " bytes");
  const Batch batch = batch_for(one.shape, 3, 20);
  const bool is_wide = kind == ParameterKind::fp32;
  const auto step = [&](Gpt2Run& run) {
    return is_wide ? run.step({batch}, 1) : run.step_16bit(batch, 1);
  };
  ModelOptions options{.batch = 3, .sequence = 20, .compute = kind};
  Gpt2Run whole(one.shape, options, one.weight_scale);
  step(whole);
  options.base = is_wide ? ParameterSpan(whole.parameters_fp32)
                         : ParameterSpan(whole.parameters, Float16Kind::bf16);
  const ModelShape shape = adapted(one.shape, one.targets);
  Gpt2Run run(shape, options);
  const std::vector<float> gradient = step(run);
  CHECK(run.model->loss(0) == whole.model->loss(0));
  for (const TensorInfo& tensor : shape.flat_layout().tensors) {
    INFO(tensor.name);
    const auto first = gradient.begin() + tensor.first;
    const bool is_zero =
        std::all_of(first, first + tensor.count, [](float value) { return value == 0; });
    CHECK(is_zero == tensor.name.ends_with("lora_A.weight"));
  }
}

TEST_CASE("an adapter whose B is zero changes no bit of the loss, and A has no gradient") {
  for (const Case& one : cases()) {
    check_begin(one, ParameterKind::fp32);
    check_begin(one, ParameterKind::bf16);
  }
}

TEST_CASE(
    "recomputed, in micro-batches and with other activations adapters have the same gradient") {
  for (const Case& one : cases()) {
    INFO(one.shape.name << " " << one.targets);
    const ModelShape shape = adapted(one.shape, one.targets);
    std::vector<float> base = make_weights(one.shape, one.weight_scale);
    const std::vector<float> adapters = drawn(shape.flat_layout().parameter_count, 0.3);
    const Batch batch = batch_for(one.shape, 3, 20);
    const auto step = [&](Activations activations) {
      ModelOptions options = on(base);
      options.activations = activations;
      Gpt2Run run(shape, options);
      std::ranges::copy(adapters, run.parameters_fp32.begin());
      return run.step({batch}, 1);
    };
    const std::vector<float> kept = step(Activations::keep);
    CHECK(kept == step(Activations::recompute));
    CHECK(kept == step(Activations::offload));
    CHECK(kept == step(Activations::offload_inputs));
  }
}

struct PeftFixture {
  std::string name;
  ModelShape shape;
  std::string targets;
  std::string prefix;  // of names in the model's files
};

ModelShape of_fixture(Family family) {
  ModelShape shape{"fixture", 2, 16, 4, 64, 48, family};
  shape.ffn = 24;
  if (family == Family::llama) shape.kv_heads = 2;
  if (family == Family::bert) {
    shape.masked_head = true;
    shape.norm_eps = 1e-12;
  }
  if (family == Family::t5) {
    shape.layers = 4;
    shape.head_dim = 8;
    shape.norm_eps = 1e-6;
    shape.tied_tables = true;
    shape.stacks = {.encoder_layers = 2, .buckets = 8, .bucket_distance = 16};
    shape.stacks.spans = {.share = 0.4, .length = 2};
  }
  return shape;
}

std::string in_files(const PeftFixture& fixture, const std::string& name) {
  const bool is_heads = name.starts_with("cls.") || name.starts_with("lm_head");
  return is_heads ? name : fixture.prefix + name;
}

void check_against_peft(const PeftFixture& fixture, std::int64_t rank, bool shifts) {
  INFO(fixture.name);
  const std::string folder = "tests/fixtures/" + fixture.name;
  const auto made =
      with_adapters(fixture.shape, {.rank = rank, .alpha = 6, .targets = fixture.targets});
  REQUIRE(made.ok());
  const auto weights = read_safetensors(folder + "/model.safetensors");
  std::vector<float> base;
  for (const TensorInfo& info : made->base_layout().tensors)
    std::ranges::copy(weights.at(in_files(fixture, info.name)).values, std::back_inserter(base));
  const auto adapters = read_safetensors(folder + "_lora/adapter_model.safetensors");
  const auto expected = read_safetensors(folder + "_lora/expected.safetensors");
  REQUIRE(adapters.size() == made->flat_layout().tensors.size());
  const FixtureTensor &ids = expected.at("input_ids"), &labels = expected.at("labels");
  const std::int64_t rows = ids.shape[0], length = ids.shape[1];
  const std::int64_t sequence = shifts ? length - 1 : length;
  Gpt2Run run(*made, on(base, rows, sequence));
  std::vector<float> gradient;
  for (const TensorInfo& info : made->flat_layout().tensors) {
    const std::string name = "base_model.model." + in_files(fixture, info.name);
    INFO(name);
    REQUIRE(adapters.at(name).shape == info.shape);
    std::ranges::copy(adapters.at(name).values, run.parameters_fp32.begin() + info.first);
    std::ranges::copy(expected.at("grad." + name).values, std::back_inserter(gradient));
  }
  Batch batch(rows, sequence, fixture.shape.vocabulary, 1);
  if (const auto decoded = expected.find("decoder_input_ids"); decoded != expected.end()) {
    batch.inputs = {ids.integers.begin(), ids.integers.end()};
    batch.targets = {labels.integers.begin(), labels.integers.end()};
    batch.decoder_inputs = {decoded->second.integers.begin(), decoded->second.integers.end()};
    batch.target_sequence = labels.shape[1];
  }
  for (std::int64_t i = 0; i < rows * sequence && batch.target_sequence == 0; ++i) {
    const auto at = static_cast<std::size_t>(i / sequence * length + i % sequence);
    batch.inputs[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(ids.integers[at]);
    batch.targets[static_cast<std::size_t>(i)] =
        std::max(kIgnoredTarget, static_cast<std::int32_t>(labels.integers[at + (shifts ? 1 : 0)]));
  }
  const std::vector<float> found = run.step({batch}, 1);
  CHECK(run.model->loss(0) == Approx(expected.at("loss").values.front()).epsilon(1e-5));
  check_tensors(*made, found, gradient, 1e-5);
}

TEST_CASE("adapters have PEFT's loss and gradients") {
  check_against_peft({"llama", of_fixture(Family::llama), "q_proj,v_proj,down_proj", "model."}, 4,
                     true);
  check_against_peft({"bert", of_fixture(Family::bert), "query,value,dense", "bert."}, 3, false);
  check_against_peft({"t5_v1_0", of_fixture(Family::t5), "q,v,wo", ""}, 3, false);
}

}  // namespace
}  // namespace sluice::model
