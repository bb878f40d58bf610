// The memory plan of the model, of any family: plans and simulations ask for families that nothing
// here computes, too. The measured numbers say how they were measured.
// tests/core/model/memory/memory_test.cpp holds all of it against the process's peak.

#include "core/model/compute_memory.h"

#include <utility>

#include "core/model/architecture.h"
#include "core/model/step_memory.h"

namespace sluice::model {
namespace {

// libtorch loaded, its thread pool, oneDNN's generated kernels and what these have of their own:
// 141 MB for the smallest model, 155 to 163 MB for shapes of GPT-2 and T5 (the peak of the process
// less that of the tensors and kWaitingBytes; libtorch 2.13, two threads).
constexpr std::int64_t kLibraryBytes = 165'000'000;

// Attention a window at a time has small tensors on the C library's heap: 165 to 187 MB in all.
constexpr std::int64_t kHeapBytes = 25'000'000;

// Where products are widened, oneDNN is not asked, but the pieces are there: 125 to 141 MB.
constexpr std::int64_t kWideningLibraryBytes = 152'000'000;

// Memory that waits for the next tensor of its size: kSpareBytes
// (core/model/torch/tensor_memory.h).
constexpr std::int64_t kWaitingBytes = 8 << 20;

std::int64_t library_bytes(const ModelShape& shape, const ModelOptions& options,
                           Products products) {
  const bool is_by_window =
      architecture_of(shape).attends_by_window || options.documents == Documents::apart;
  return (products == Products::widened ? kWideningLibraryBytes : kLibraryBytes) +
         (is_by_window ? kHeapBytes : 0);
}

// A layer begins in its place where it does in a cache line.
std::int64_t base_bytes(const ModelShape& shape, const ModelOptions& options) {
  constexpr std::int64_t kLineBytes = 64;
  if (!shape.has_adapters()) return 0;
  const FlatLayout base = shape.base_layout();
  const std::int64_t value_bytes = bytes_of(options.compute);
  if (!options.base_comes_by_layer) return base.parameter_count * value_bytes;
  const std::int64_t places = base.staying_elements() + 2 * base.largest_passing();
  return places * value_bytes + 2 * kLineBytes;
}

}  // namespace

ComputeMemory compute_memory(const ModelShape& shape, const ModelOptions& options,
                             Products products) {
  const StepPeak peak = step_peak(shape, options, products);
  return {.library_bytes = library_bytes(shape, options, products),
          .activation_bytes = peak.kept_bytes,
          .temporary_bytes = peak.beside_bytes + kWaitingBytes,
          .tied_gradient_bytes = peak.tied_gradient_bytes,
          .offloaded_bytes = peak.offloaded_bytes,
          .base_bytes = base_bytes(shape, options)};
}

MemoryItems compute_items(const ComputeMemory& memory) {
  return {{"activations", memory.activation_bytes},
          {"temporaries of the widest layer", memory.temporary_bytes},
          {"gradient of the tied table", memory.tied_gradient_bytes}};
}

MemoryItems host_items(const ComputeMemory& memory) {
  MemoryItems items = {{"program and libraries", memory.library_bytes}};
  for (MemoryItem& item : compute_items(memory)) items.push_back(std::move(item));
  return items;
}

}  // namespace sluice::model
