#pragma once
// Which tensors autograd saves for a backward, as they are saved: libtorch has no interface for
// this in C++ but the engine's own, which is replaced by one that does nothing else besides.
//
// Where tensors are watched, libtorch makes no version check of its own when they are used; it is
// made here then, so that a value that was changed in place is an error.
//
// Thread contract: watch_saved_tensors() once, before the first watch; a SavedTensorWatch belongs
// to the thread that made it, and what it saw may be used on any.

#include <ATen/core/Tensor.h>

#include <functional>

namespace sluice::model {

// Replaces the engine, for all of the process. Only the first call does something.
void watch_saved_tensors();

// While it lives, `on_saved` is told of each tensor that this thread's operations save.
class SavedTensorWatch {
 public:
  using OnSaved = std::function<void(const at::Tensor&)>;
  explicit SavedTensorWatch(OnSaved on_saved);
  ~SavedTensorWatch();
  SavedTensorWatch(const SavedTensorWatch&) = delete;
  SavedTensorWatch& operator=(const SavedTensorWatch&) = delete;

 private:
  OnSaved on_saved_;
};

}  // namespace sluice::model
