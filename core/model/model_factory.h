#pragma once
// Who makes the model of a run: core/model/library, or the arithmetic of tests, which needs no
// libtorch.
//
// Thread contract: make() and memory() from one thread; what they make has TrainableModel's.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_item.h"
#include "base/parameter_span.h"
#include "base/status.h"
#include "core/model/activations.h"
#include "core/model/gradient_device.h"
#include "core/model/model_shape.h"
#include "core/model/trainable_model.h"
#include "core/model/window_shape.h"
#include "storage/io/page_aligned_buffer.h"

namespace sluice::model {

// How a model computes.
struct ModelOptions {
  std::int64_t batch = 8;
  std::int64_t sequence = 128;
  int micro_step_count = 1;
  LayerActivations activations = {};            // keep
  std::int64_t activation_buffer_bytes = 0;     // of what is offloaded, in memory at once besides
  ParameterKind compute = ParameterKind::bf16;  // also of the parameters
  int thread_count = 0;                         // 0 = all cores
  // Where adapters alone are trained: the model's own parameters, of the same kind, in memory that
  // outlives the model. What is there of it does not change.
  ParameterSpan base = {};
  // A layer's part of it is there when the layer's own parameters are.
  bool base_comes_by_layer = false;
  Documents documents = Documents::together;
  bool ranks_add_gradients = false;  // to those of other ranks, in fp32

  // In fp32, of several micro-batches or ranks; else a layer's gradients have the parameters' type.
  bool adds_gradients() const { return micro_step_count > 1 || ranks_add_gradients; }
};

// Without `text_of` a token is a byte.
struct SampleOptions {
  std::string prompt = {};
  std::vector<std::int32_t> prompt_tokens = {};  // the same; with `text_of`
  std::int64_t written_tokens = 256;             // only tokens below it are written
  std::function<std::string_view(std::int32_t token)> text_of = {};
  std::int64_t token_count = 200;
  double temperature = 0.8;  // 0: always the likeliest token
  std::uint64_t seed = 0;
};

// Text that the model writes, layer by layer, in host memory: for each token all layers upwards, of
// which the last one's forward chooses it. On the model's compute thread, between steps.
class TextWriter {
 public:
  virtual ~TextWriter() = default;
  virtual bool is_done() const = 0;
  virtual Status forward(LayerId layer) = 0;
  // With the prompt.
  virtual const std::string& text() const = 0;
  // Tokens behind the prompt.
  virtual std::int64_t written_count() const = 0;
};

struct BuiltModel {
  std::unique_ptr<TrainableModel> model;
  // Where it computes if not in host memory: then forward and backward are asked of the device, and
  // set_batch() and loss() of the model. Null: in host memory.
  std::unique_ptr<ComputeDevice> device = {};
  // Text that the model writes, on its compute thread between steps. Empty: it writes none.
  std::function<Result<std::unique_ptr<TextWriter>>(const SampleOptions&)> write_text = {};
};

struct ModelFactory {
  // `parameters` is the caller's flat array (TrainableModel::parameters), in memory of
  // `pinned` where that is there; it outlives the model.
  std::function<Result<BuiltModel>(const ModelShape&, const ModelOptions&,
                                   const ParameterSpan& parameters)>
      make;
  // Upper bounds of what the model takes besides the parameters while it computes.
  std::function<MemoryItems(const ModelShape&, const ModelOptions&)> memory;
  // The same of a device with memory of its own, and what that has at most; unset without one.
  std::function<MemoryItems(const ModelShape&, const ModelOptions&)> device_memory = {};
  // The memory that gradient work takes of it (core/model/gradient_device.h).
  std::function<MemoryItems(const FlatLayout&, const DeviceSelection&)> gradient_memory = {};
  std::int64_t device_memory_cap_bytes = 0;
  bool is_device_in_host_memory = false;  // its memory is a part of the host's
  std::string device_description = {};
  std::shared_ptr<io::PinnedMemory> pinned = {};
};

}  // namespace sluice::model
