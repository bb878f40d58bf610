#include "core/model/torch/autograd_regions.h"

#include <ATen/record_function.h>

#include <atomic>
#include <memory>

#include "base/check.h"

namespace sluice::model {
namespace {

struct Current {
  const LaunchRegion* region;
  LayerId layer;
};
// libtorch calls plain functions. Written while autograd runs nothing.
Current the_current{nullptr, kNoLayer};
std::atomic<const Current*> current{nullptr};

struct OpenRegion final : at::ObserverContext {
  explicit OpenRegion(std::shared_ptr<void> opened) : region(std::move(opened)) {}
  std::shared_ptr<void> region;
};

std::unique_ptr<at::ObserverContext> begin_node(const at::RecordFunction& /*node*/) {
  const Current* const now = current.load();
  if (now == nullptr) return nullptr;
  return std::make_unique<OpenRegion>((*now->region)(now->layer));
}

// libtorch destroys the context later, and perhaps elsewhere.
void end_node(const at::RecordFunction& /*node*/, at::ObserverContext* context) {
  if (context != nullptr) static_cast<OpenRegion*>(context)->region.reset();
}

}  // namespace

// A callback of this thread goes along to the threads that work for it.
AutogradRegions::AutogradRegions(const LaunchRegion& region, LayerId layer) : is_on_(region) {
  if (!is_on_) return;
  CHECK(current.load() == nullptr);
  the_current = {&region, layer};
  current.store(&the_current);
  callback_ = at::addThreadLocalCallback(at::RecordFunctionCallback(begin_node, end_node)
                                             .scopes({at::RecordScope::BACKWARD_FUNCTION}));
}

AutogradRegions::~AutogradRegions() {
  if (!is_on_) return;
  at::removeCallback(callback_);
  current.store(nullptr);
}

}  // namespace sluice::model
