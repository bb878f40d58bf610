#pragma once
// What the subgroups of one device wait for.

#include <vector>

#include "core/offload/offload.h"

namespace sluice::offload {

struct Offload::DeviceLine {
  DeviceLine(runtime::Runtime& runtime, std::int32_t buffers)
      : sets(runtime, buffers), reader(runtime, 1) {}

  runtime::Pool sets;    // buffer sets: `buffers` subgroups in flight
  runtime::Pool reader;  // one subgroup reads at a time, so that the first is complete soonest
  std::vector<SubgroupId> subgroups;  // in the order they are updated
};

}  // namespace sluice::offload
