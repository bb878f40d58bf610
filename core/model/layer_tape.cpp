#include "core/model/layer_tape.h"

#include <algorithm>

#include "base/check.h"
#include "core/model/widened_pieces.h"

namespace sluice::model {

// oneDNN sums them in fp32: in registers, or in an array like the result. Where it multiplies them
// as they are it may lay out the factors anew.
std::int64_t product_beside_bytes(Products products, ParameterKind precision, std::int64_t factors,
                                  std::int64_t result) {
  if (!has_16_bits(precision)) return 0;
  switch (products) {
    case Products::as_they_are:
      return factors * bytes_of(precision);
    case Products::summed_apart:
      return result * kFp32Bytes;
    case Products::widened:
      return kWidenedBytes;
  }
  return 0;
}

LayerTape::Value LayerTape::make(std::int64_t width, bool is_of_sources) {
  const std::int64_t rows = is_of_sources ? setting_.tokens.source : setting_.tokens.own;
  tensors_.push_back({width, rows * width * bytes_of(setting_.precision), is_of_sources});
  return static_cast<Value>(tensors_.size() - 1);
}

std::int64_t LayerTape::values_of(Value value) const {
  return of(value).bytes / bytes_of(setting_.precision);
}

LayerTape::Step LayerTape::gradient_of(Value input, std::int64_t beside_bytes) const {
  return {Step::Of::input, input, of(input).bytes, beside_bytes};
}

LayerTape::Value LayerTape::input(std::int64_t width) {
  callers_.push_back(make(width, false));
  return callers_.back();
}

LayerTape::Value LayerTape::source(std::int64_t width) {
  callers_.push_back(make(width, true));
  return callers_.back();
}

LayerTape::Value LayerTape::multiplied(Value x, std::int64_t width, bool weight_first) {
  const Value y = make_like(x, width);
  const std::int64_t weight = this->width(x) * width;
  const Step of_x = gradient_of(x, beside_product(values_of(y) + weight, values_of(x)));
  if (!setting_.trains_weights) {
    add({.result = y, .steps = {of_x}});
    return y;
  }
  const Step of_weight = {Step::Of::weight,
                          {},
                          weight * bytes_of(setting_.precision),
                          beside_product(values_of(x) + values_of(y), weight)};
  add({.result = y,
       .kept = {x},
       .steps = weight_first ? std::vector{of_weight, of_x} : std::vector{of_x, of_weight}});
  return y;
}

LayerTape::Value LayerTape::product(Value x, std::int64_t width) {
  return multiplied(x, width, /*weight_first=*/true);
}

LayerTape::Value LayerTape::product_plus_bias(Value x, std::int64_t width) {
  return multiplied(x, width, /*weight_first=*/false);
}

// A norm's result times its weight, whose gradient is a product of two tensors before it is summed.
LayerTape::Value LayerTape::weighted(Value normalised, std::int64_t temporaries) {
  const Value y = make_like(normalised, width(normalised));
  add({.result = y,
       .kept = {normalised},
       .steps = {gradient_of(normalised, temporaries * of(normalised).bytes)}});
  return y;
}

LayerTape::Value LayerTape::layer_norm(Value x) {
  const Value normalised = make_like(x, width(x));
  add({.result = normalised, .kept = {x}, .steps = {gradient_of(x)}});
  return weighted(normalised, 2);
}

// In fp32: x and the gradient, and what is made of them.
LayerTape::Value LayerTape::rms_norm(Value x) {
  const Value normalised = make_like(x, width(x));
  const std::int64_t wide = wide_bytes(x);
  std::vector<Step> steps;
  if (has_16_bits(setting_.precision)) {
    steps.push_back({.beside_bytes = 4 * wide});
    steps.push_back(gradient_of(x, 2 * wide));
  } else {
    steps.push_back(gradient_of(x, 2 * wide));
  }
  add({.result = normalised, .kept = {x}, .steps = std::move(steps)});
  return weighted(normalised, 1);
}

LayerTape::Value LayerTape::first_rows(Value x) {
  const Value y = make(width(x), /*is_of_sources=*/false);
  add({.result = y, .steps = {gradient_of(x)}});
  return y;
}

LayerTape::Value LayerTape::scaled(Value x) {
  const Value y = make_like(x, width(x));
  add({.result = y, .steps = {gradient_of(x)}});
  return y;
}

// The values that stay are found anew: a byte each.
LayerTape::Value LayerTape::dropped(Value x, double share) {
  if (share <= 0) return x;
  const Value y = make_like(x, width(x));
  add({.result = y, .steps = {gradient_of(x, values_of(x))}});
  return y;
}

LayerTape::Value LayerTape::activated(Value x) {
  const Value y = make_like(x, width(x));
  add({.result = y, .kept = {x}, .steps = {gradient_of(x)}});
  return y;
}

LayerTape::Value LayerTape::rectified(Value x) {
  const Value y = make_like(x, width(x));
  add({.result = y, .kept = {y}, .steps = {gradient_of(x)}});
  return y;
}

// Halves of rows: two products and their sum.
LayerTape::Value LayerTape::turned(Value x) {
  const Value y = make_like(x, width(x));
  add({.result = y, .steps = {gradient_of(x, of(x).bytes / 2 * 3)}});
  return y;
}

LayerTape::Value LayerTape::sum(Value a, Value b) {
  const Value y = make_like(a, width(a));
  add({.result = y, .passes = {a, b}});
  return y;
}

LayerTape::Value LayerTape::times(Value a, Value b) {
  const Value y = make_like(a, width(a));
  add({.result = y, .kept = {a, b}, .steps = {gradient_of(a), gradient_of(b)}});
  return y;
}

LayerTape::Value LayerTape::attention(Value query_key_value) {
  const Value y = make_like(query_key_value, width(query_key_value) / 3);
  add({.result = y,
       .kept = {query_key_value, y},
       .steps = {gradient_of(query_key_value, setting_.attention_bytes)}});
  return y;
}

LayerTape::Value LayerTape::attention(Value query, Value key, Value value) {
  const Value y = make_like(query, width(query));
  add({.result = y,
       .kept = {query, key, value, y},
       .steps = {gradient_of(query), gradient_of(key),
                 gradient_of(value, setting_.attention_bytes)}});
  return y;
}

void LayerTape::output(Value value) { output_ = value; }

std::int64_t LayerTape::kept_bytes() const {
  std::vector<bool> is_kept(tensors_.size(), false);
  is_kept[static_cast<std::size_t>(output_)] = true;
  for (const Operation& operation : operations_) {
    for (const Value value : operation.kept) is_kept[static_cast<std::size_t>(value)] = true;
  }
  for (const Value value : callers_) is_kept[static_cast<std::size_t>(value)] = false;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < tensors_.size(); ++i) bytes += is_kept[i] ? tensors_[i].bytes : 0;
  return bytes;
}

// Goes through it. Gradients are counted by who holds them, since a sum's inputs share one.
class LayerTape::Backward {
 public:
  Backward(const LayerTape& tape, Kept kept)
      : tape_(tape),
        kept_(kept),
        holders_(tape.tensors_.size(), 0),
        gradients_(tape.tensors_.size(), kNone) {
    for (const Value value : tape.callers_) hold(value);
    hold(tape.output_);
    for (const Operation& operation : tape.operations_) {
      for (const Value value : operation.kept) hold(value);
    }
    // The output's is there already, and the caller holds it, too.
    made_.push_back({.bytes = tape.of(tape.output_).bytes, .holders = 2});
    gradients_[slot(tape.output_)] = 0;
  }

  BackwardBytes run() {
    for (auto it = tape_.operations_.rbegin(); it != tape_.operations_.rend(); ++it) run(*it);
    return {peak_, now_};
  }

 private:
  static constexpr int kNone = -1;
  struct Made {
    std::int64_t bytes = 0;
    int holders = 1;
  };
  static std::size_t index(int gradient) { return static_cast<std::size_t>(gradient); }
  static std::size_t slot(Value value) { return static_cast<std::size_t>(value); }

  void hold(Value value) { ++holders_[slot(value)]; }
  void let_go(Value value) {
    if (--holders_[slot(value)] == 0 && kept_ == Kept::goes_when_done)
      now_ -= tape_.of(value).bytes;
  }
  int add_gradient(std::int64_t bytes) {
    made_.push_back({bytes});
    take(bytes);
    return static_cast<int>(made_.size()) - 1;
  }
  void let_go_of_gradient(int gradient) {
    if (--made_[index(gradient)].holders == 0) now_ -= made_[index(gradient)].bytes;
  }
  void take(std::int64_t bytes, std::int64_t beside_bytes = 0) {
    now_ += bytes;
    peak_ = std::max(peak_, now_ + beside_bytes);
  }

  // In place where nobody else holds what is there already.
  void receive(Value value, int gradient) {
    int& there = gradients_[slot(value)];
    if (there == kNone) {
      there = gradient;
      return;
    }
    if (made_[index(there)].holders > 1) {
      const int added = add_gradient(made_[index(there)].bytes);
      let_go_of_gradient(there);
      there = added;
    }
    let_go_of_gradient(gradient);
  }

  void run(const Operation& operation) {
    const int of_result = gradients_[slot(operation.result)];
    CHECK_NE(of_result, kNone);
    std::vector<std::pair<Value, int>> found;
    for (const Step& step : operation.steps) {
      if (step.of == Step::Of::input) {
        found.emplace_back(step.input, add_gradient(step.bytes));
        take(0, step.beside_bytes);
      } else {
        take(step.of == Step::Of::weight ? step.bytes : 0, step.beside_bytes);
      }
    }
    for (const Value value : operation.passes) {
      ++made_[index(of_result)].holders;
      found.emplace_back(value, of_result);
    }
    for (const Value value : operation.kept) let_go(value);
    let_go_of_gradient(of_result);
    for (const auto& [value, gradient] : found) receive(value, gradient);
  }

  const LayerTape& tape_;
  Kept kept_;
  std::vector<int> holders_;  // of a tensor: operations that keep it, and callers
  std::vector<Made> made_;
  std::vector<int> gradients_;  // of a tensor
  std::int64_t now_ = 0;
  std::int64_t peak_ = 0;
};

BackwardBytes LayerTape::backward_bytes(Kept kept) const { return Backward(*this, kept).run(); }

}  // namespace sluice::model
