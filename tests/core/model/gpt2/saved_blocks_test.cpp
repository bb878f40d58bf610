// What GPT-2 keeps for its backward, as blocks: the plan's sizes to the byte, parameters in none,
// and the same numbers when all of it has left and come back.

#include "core/model/torch/saved_blocks.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "base/id_vector.h"
#include "base/units.h"
#include "core/model/kept_bytes.h"
#include "core/model/torch/saved_tensors.h"
#include "core/model/torch/tensor_memory.h"
#include "tests/core/model/gpt2/batches.h"

namespace sluice::model {
namespace {

const ModelShape kWide{"wide", 2, 256, 4, 64, 256};  // storages of their own blocks and small ones
const ModelShape kDeep{"deep", 8, 128, 4, 128, 256};

// A Llama whose heads have a width and norms of their own, four on two of keys and values.
ModelShape llama_shape() {
  ModelShape shape{"llama", 2, 256, 4, 256, 97, Family::llama};
  shape.kv_heads = 2;
  shape.ffn = 640;
  shape.head_dim = 96;
  shape.qk_norm = true;
  return shape;
}

// A drive that is memory: takes blocks away and brings them back, over what lies there meanwhile.
struct Elsewhere {
  std::vector<std::vector<std::byte>> blocks;

  std::int64_t size_bytes() const {
    std::int64_t sum = 0;
    for (const auto& block : blocks) sum += std::ssize(block);
    return sum;
  }
  void take(KeptBlocks& from, LayerId layer, int micro_step) {
    const auto kept = from.kept(layer, micro_step);
    REQUIRE(kept.ok());
    for (const KeptBlock& block : *kept) {
      CHECK(reinterpret_cast<std::uintptr_t>(block.data) % kPageBytes == 0);
      blocks.emplace_back(block.data, block.data + block.size_bytes);
    }
    REQUIRE(from.release(layer, micro_step).ok());
  }
  void give(KeptBlocks& to, LayerId layer, int micro_step) {
    const auto room = to.make_room(layer, micro_step);
    REQUIRE(room.ok());
    REQUIRE(room->size() == blocks.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      REQUIRE((*room)[i].size_bytes == std::ssize(blocks[i]));
      std::memcpy((*room)[i].data, blocks[i].data(), blocks[i].size());
    }
    REQUIRE(to.restore(layer, micro_step).ok());
  }
};

struct Step {
  std::vector<float> gradient;
  std::vector<double> losses;
  std::int64_t peak_bytes = 0;     // of large tensors, between two calls
  std::int64_t largest_bytes = 0;  // that one layer left of a micro-batch

  bool operator==(const Step& other) const {
    return gradient == other.gradient && losses == other.losses;
  }
};

bool leaves(const ModelOptions& options, LayerId layer) {
  return index_of(layer) > 0 && is_offloaded(options.activations.of(layer));
}

// A step in which every other micro-batch of a layer leaves (all of them if there is but one).
Step take_step(const ModelShape& shape, const ModelOptions& options, std::uint64_t seed) {
  Gpt2Run run(shape, options, 3);
  KeptBlocks& blocks = *run.model->kept_blocks();
  const std::int32_t layers = run.model->layout().layer_count();
  const int micro_steps = options.micro_step_count;
  Step step;
  const std::int64_t before_bytes = tensor_memory_use().in_use_bytes;
  const auto look = [&] {
    step.peak_bytes = std::max(step.peak_bytes, tensor_memory_use().in_use_bytes - before_bytes);
  };
  for (int m = 0; m < micro_steps; ++m) {
    const Batch batch(options.batch, options.sequence, shape.vocabulary,
                      seed + static_cast<std::uint64_t>(m));
    REQUIRE(run.model->set_batch(m, batch.view(), BatchUse::training).ok());
  }
  std::vector<Elsewhere> elsewhere(static_cast<std::size_t>(layers * micro_steps));
  for (const LayerId layer : all_ids<LayerId>(layers)) {
    for (int m = 0; m < micro_steps; ++m) {
      REQUIRE(run.model->forward(layer, m).ok());
      look();
      if (!leaves(options, layer) || (micro_steps > 1 && m % 2 == 1)) continue;
      Elsewhere& place = elsewhere[static_cast<std::size_t>(index_of(layer) * micro_steps + m)];
      place.take(blocks, layer, m);
      step.largest_bytes = std::max(step.largest_bytes, place.size_bytes());
    }
  }
  step.gradient.resize(static_cast<std::size_t>(run.model->layout().parameter_count));
  for (std::int32_t l = layers; l-- > 0;) {
    const LayerRange& range = run.model->layout().layer(LayerId{l});
    const LayerGradient into{.values_fp32 = step.gradient.data() + range.first,
                             .element_count = range.count};
    for (int m = 0; m < micro_steps; ++m) {
      Elsewhere& place = elsewhere[static_cast<std::size_t>(l * micro_steps + m)];
      if (!place.blocks.empty()) place.give(blocks, LayerId{l}, m);
      look();
      REQUIRE(run.model->backward(LayerId{l}, m, 1.0, into).ok());
      if (leaves(options, LayerId{l})) blocks.forget(LayerId{l}, m);
    }
  }
  for (int m = 0; m < micro_steps; ++m) step.losses.push_back(run.model->loss(m));
  return step;
}

LayerActivations parsed(const char* text) {
  auto activations = LayerActivations::parse(text);
  REQUIRE(activations.ok());
  return *activations;
}

TEST_CASE("what leaves is, block by block, what the plan says from the shape alone") {
  for (const ModelShape& shape : {kSmall, kWide, kDeep, llama_shape()}) {
    for (const Activations choice : {Activations::offload, Activations::offload_inputs}) {
      for (const ParameterKind kind :
           {ParameterKind::bf16, ParameterKind::fp16, ParameterKind::fp32}) {
        const ModelOptions options{
            .batch = 3, .sequence = shape.sequence, .activations = choice, .compute = kind};
        Gpt2Run run(shape, options);
        const Batch batch(3, shape.sequence, shape.vocabulary, 1);
        REQUIRE(run.model->set_batch(0, batch.view(), BatchUse::training).ok());
        for (const LayerId layer : all_ids<LayerId>(run.model->layout().layer_count())) {
          INFO(shape.name << " layer " << index_of(layer) << " of " << bytes_of(kind) << " bytes");
          REQUIRE(run.model->forward(layer, 0).ok());
          const auto kept = run.model->kept_blocks()->kept(layer, 0);
          REQUIRE(kept.ok());
          std::vector<std::int64_t> sizes;
          for (const KeptBlock& block : *kept) sizes.push_back(block.size_bytes);
          CHECK(sizes == kept_block_bytes(shape, layer, 3, shape.sequence, choice, kind));
        }
      }
    }
  }
}

TEST_CASE("every mix gives the bits of keeping all, with micro-batches too") {
  for (const int micro_steps : {1, 3}) {
    ModelOptions options{.batch = 3, .sequence = 20, .micro_step_count = micro_steps};
    const Step kept = take_step(kSmall, options, 7);
    for (const char* mix :
         {"offload", "offload_inputs", "offload:1,recompute:2,keep", "keep:1,offload:2-3,recompute",
          "recompute:1,offload:2,offload_inputs:3,keep",
          "offload:4,offload_inputs:1-2,recompute"}) {
      INFO(mix);
      options.activations = parsed(mix);
      CHECK(take_step(kSmall, options, 7) == kept);
    }
  }
  ModelOptions options{.batch = 2, .sequence = 64};
  const Step kept = take_step(kWide, options, 7);
  options.activations = Activations::offload;
  CHECK(take_step(kWide, options, 7) == kept);
}

TEST_CASE("eight layers take less than 53 % of the memory when their activations are elsewhere") {
  ModelOptions options{.batch = 8, .sequence = 128};
  const std::int64_t kept_bytes = take_step(kDeep, options, 7).peak_bytes;
  options.activations = Activations::offload;
  const Step offloaded = take_step(kDeep, options, 7);
  // Here one layer is in memory at a time. A run has two more on their way (core/activation).
  const std::int64_t run_bytes = offloaded.peak_bytes + 2 * offloaded.largest_bytes;
  INFO("kept " << kept_bytes << ", offloaded " << offloaded.peak_bytes << ", in a run "
               << run_bytes);
  CHECK(run_bytes * 100 <= kept_bytes * 53);
}

TEST_CASE("a value that is changed in place is an error, before and after the write") {
  use_tensor_memory();
  at::Tensor value = at::ones({1000});
  const BlockMemory memory;
  SavedBlocks saved(memory);
  saved.note(value);
  REQUIRE(saved.kept().ok());
  value.add_(1);
  CHECK_FALSE(saved.release().ok());
  const auto kept = saved.kept();
  REQUIRE_FALSE(kept.ok());
  CHECK_THAT(kept.error().message(), Catch::Contains("changed in place"));
}

TEST_CASE("a storage is written once, and parameters and foreign memory never") {
  use_tensor_memory();
  const at::Tensor value = at::ones({10, 10});
  std::vector<float> parameters(100);
  const at::Tensor weights = at::from_blob(parameters.data(), {10, 10});
  const BlockMemory memory{.parameters = std::as_bytes(std::span(parameters))};
  SavedBlocks saved(memory);
  for (const at::Tensor& tensor : {value, value.t(), value.narrow(0, 2, 3), weights, weights.t()})
    saved.note(tensor);
  const auto kept = saved.kept();
  REQUIRE(kept.ok());
  REQUIRE(kept->size() == 1);
  CHECK(kept->front().size_bytes == 400);
}

}  // namespace
}  // namespace sluice::model
