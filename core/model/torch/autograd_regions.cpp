#include "core/model/torch/autograd_regions.h"

#include <ATen/record_function.h>

#include <atomic>
#include <memory>

#include "core/model/torch/check.h"

namespace sluice::model {
namespace {

struct Current {
  const LaunchRegion* region;
  LayerId layer;
};
// libtorch calls plain functions. Written while autograd runs nothing.
Current the_current{nullptr, kNoLayer};
std::atomic<const Current*> current{nullptr};
// A function called within a node, or by whoever calls autograd, is in a region already.
thread_local bool is_in_region = false;

struct OpenRegion final : at::ObserverContext {
  explicit OpenRegion(std::shared_ptr<void> opened) : region(std::move(opened)) {}
  std::shared_ptr<void> region;
};

std::unique_ptr<at::ObserverContext> begin_call(const at::RecordFunction& /*call*/) {
  const Current* const now = current.load();
  if (now == nullptr || is_in_region) return nullptr;
  is_in_region = true;
  return std::make_unique<OpenRegion>((*now->region)(now->layer));
}

// libtorch destroys the context later, and perhaps elsewhere.
void end_call(const at::RecordFunction& /*call*/, at::ObserverContext* context) {
  if (context == nullptr) return;
  static_cast<OpenRegion*>(context)->region.reset();
  is_in_region = false;
}

}  // namespace

// A callback of this thread goes along to the threads that work for it. Between two nodes autograd
// calls functions of its own: it sums what was broadcast, and adds up what came twice.
AutogradRegions::AutogradRegions(const LaunchRegion& region, LayerId layer) : is_on_(region) {
  if (!is_on_) return;
  CHECK(current.load() == nullptr);
  the_current = {&region, layer};
  is_in_region = true;
  current.store(&the_current);
  callback_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(begin_call, end_call)
          .scopes({at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::FUNCTION}));
}

AutogradRegions::~AutogradRegions() {
  if (!is_on_) return;
  at::removeCallback(callback_);
  is_in_region = false;
  current.store(nullptr);
}

}  // namespace sluice::model
