#pragma once
// The region of a layer whose backward is launched, on the threads that launch it: a device's
// backward kernels are launched by a thread of autograd's own.
//
// Thread contract: one object at a time in the process, on the thread that calls autograd.

#include "core/model/launch_region.h"

namespace sluice::model {

class AutogradRegions {
 public:
  // An empty `region` is none; it outlives the object.
  AutogradRegions(const LaunchRegion& region, LayerId layer);
  ~AutogradRegions();
  AutogradRegions(const AutogradRegions&) = delete;
  AutogradRegions& operator=(const AutogradRegions&) = delete;

 private:
  std::uint64_t callback_ = 0;
  bool is_on_ = false;
};

}  // namespace sluice::model
