#include "core/model/torch/saved_tensors.h"

#include <ATen/core/VariableHooksInterface.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <memory>
#include <utility>

#include "core/model/torch/check.h"

namespace sluice::model {
namespace {

thread_local const SavedTensorWatch::OnSaved* on_saved_here = nullptr;

// Keeps the tensor as it is. Cut off from its graph: an operation that saved its own result would
// keep itself otherwise.
class Saved final : public torch::autograd::SavedVariableHooks {
 public:
  explicit Saved(const SavedTensorWatch::OnSaved& on_saved) : on_saved_(on_saved) {}

  void call_pack_hook(const at::Tensor& tensor) override {
    tensor_ = tensor.detach();
    version_ = tensor_._version();
    on_saved_(tensor_);
  }
  at::Tensor call_unpack_hook() override {
    TORCH_CHECK(tensor_._version() == version_,
                "a tensor that backward needs was changed in place after forward had saved it");
    return tensor_;
  }

 private:
  const SavedTensorWatch::OnSaved& on_saved_;  // used while the watch lives: packing comes at once
  at::Tensor tensor_;
  std::int64_t version_ = 0;
};

class WatchingEngine final : public torch::autograd::Engine {
 public:
  static torch::autograd::Engine& get() {
    static auto* const engine = new WatchingEngine;  // as libtorch's own, never destroyed
    return *engine;
  }
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    return on_saved_here == nullptr ? nullptr : std::make_unique<Saved>(*on_saved_here);
  }
};

}  // namespace

void watch_saved_tensors() {
  static const bool is_watching = [] {
    torch::autograd::set_default_engine_stub(&WatchingEngine::get);
    return true;
  }();
  CHECK(is_watching);
}

SavedTensorWatch::SavedTensorWatch(OnSaved on_saved) : on_saved_(std::move(on_saved)) {
  CHECK(on_saved_here == nullptr);
  on_saved_here = &on_saved_;
}

SavedTensorWatch::~SavedTensorWatch() { on_saved_here = nullptr; }

}  // namespace sluice::model
