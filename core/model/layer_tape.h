#pragma once
// The memory of a layer's tensors in its backward, found by going through its operations. Autograd
// runs them from the last to the first: each makes the gradients of its inputs and of its weight,
// has tensors of its own beside them, and lets go of what it kept; what a tensor receives from
// several of them is added up. Gradients of weights stay until the layer is done.
//
// A family lists its operations once (LayerKind::record). Their sizes are those of libtorch's
// kernels on a processor, as core/model/torch calls them; tests/core/model/memory holds them to
// libtorch's allocator. Numbers a row (a norm's, a sum of attention's) are left out.
//
// Thread contract: a tape has one owner.

#include <cstdint>
#include <vector>

#include "base/parameter_span.h"
#include "core/model/made_tensors.h"

namespace sluice::model {

// How products are made.
enum class Products : std::uint8_t {
  as_they_are,   // by instructions for such numbers
  summed_apart,  // of bf16 by a processor without these: added up in fp32 of their own by oneDNN
  widened,       // of 16-bit numbers that are widened to fp32 (core/model/widened_pieces.h)
};

// The most that one product of 16-bit numbers has beside its factors and its result: the elements
// of these.
std::int64_t product_beside_bytes(Products products, ParameterKind precision, std::int64_t factors,
                                  std::int64_t result);

struct TapeSetting {
  LayerTokens tokens;
  ParameterKind precision = ParameterKind::bf16;
  Products products = Products::as_they_are;
  // What an attention has at once, beside the gradients of queries, keys and values.
  std::int64_t attention_bytes = 0;
  bool trains_weights = true;  // else adapters alone, which are not on it
};

// Beside what is there when backward begins: kept_bytes(), the input and the output's gradient, of
// which the caller holds the input, the output and its gradient to the end.
struct BackwardBytes {
  std::int64_t most = 0;
  std::int64_t at_end = 0;  // below 0 where more has gone than has come
};

class LayerTape {
 public:
  enum class Value : std::int32_t {};

  explicit LayerTape(const TapeSetting& setting) : setting_(setting) {}

  // The layer below made it; and the encoder's output, which a decoder's blocks read.
  Value input(std::int64_t width);
  Value source(std::int64_t width);

  // With a weight of width(x) x width.
  Value product(Value x, std::int64_t width);
  Value product_plus_bias(Value x, std::int64_t width);
  Value layer_norm(Value x);
  Value rms_norm(Value x);
  Value first_rows(Value x);             // of each window of a source
  Value scaled(Value x);                 // by a constant
  Value dropped(Value x, double share);  // x itself where nothing is dropped
  Value activated(Value x);              // by gelu or silu, whose backward asks for x
  Value rectified(Value x);              // by relu, whose backward asks for the result
  Value turned(Value x);                 // rotary positions
  Value sum(Value a, Value b);
  Value times(Value a, Value b);
  // Queries, keys and values lie side by side, or apart.
  Value attention(Value query_key_value);
  Value attention(Value query, Value key, Value value);

  // The layer above reads it.
  void output(Value value);

  std::int64_t width(Value value) const { return of(value).width; }
  // Bytes between forward and backward, with the output, without input and source.
  std::int64_t kept_bytes() const;
  // An offloaded layer's kept tensors stay until its backward has ended.
  enum class Kept : std::uint8_t { goes_when_done, stays };
  BackwardBytes backward_bytes(Kept kept = Kept::goes_when_done) const;

 private:
  struct Tensor {
    std::int64_t width = 0;
    std::int64_t bytes = 0;
    bool is_of_sources = false;
  };
  // A gradient that an operation makes, and what it has beside all that is there meanwhile.
  struct Step {
    enum class Of : std::uint8_t { input, weight, nothing } of = Of::nothing;
    Value input = {};
    std::int64_t bytes = 0;
    std::int64_t beside_bytes = 0;
  };
  struct Operation {
    Value result = {};
    std::vector<Value> kept = {};
    std::vector<Step> steps = {};    // in order
    std::vector<Value> passes = {};  // inputs whose gradient is the result's own
  };
  class Backward;

  const Tensor& of(Value value) const { return tensors_[static_cast<std::size_t>(value)]; }
  Value make(std::int64_t width, bool is_of_sources);
  Value make_like(Value x, std::int64_t width) { return make(width, of(x).is_of_sources); }
  Step gradient_of(Value input, std::int64_t beside_bytes = 0) const;
  Value multiplied(Value x, std::int64_t width, bool weight_first);
  std::int64_t beside_product(std::int64_t factors, std::int64_t result) const {
    return product_beside_bytes(setting_.products, setting_.precision, factors, result);
  }
  Value weighted(Value normalised, std::int64_t temporaries);
  std::int64_t values_of(Value value) const;
  std::int64_t wide_bytes(Value value) const { return values_of(value) * kFp32Bytes; }
  void add(Operation operation) { operations_.push_back(std::move(operation)); }

  TapeSetting setting_;
  std::vector<Tensor> tensors_;
  std::vector<Operation> operations_;
  std::vector<Value> callers_;  // input, source
  Value output_ = {};
};

}  // namespace sluice::model
