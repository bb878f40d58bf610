#pragma once
// What the subgroups of one device wait for.

#include <memory>
#include <vector>

#include "core/offload/offload.h"

namespace sluice::offload {

struct Offload::DeviceLine {
  DeviceLine(runtime::Runtime& runtime, DeviceId device, std::int32_t set_count,
             std::int32_t variable_count, std::vector<SubgroupId> of_device)
      : subgroups(std::move(of_device)), sets(runtime, set_count, device), reader(runtime, 1) {
    for (std::size_t s = 0; s < subgroups.size(); ++s) {
      state_turns.push_back(std::make_unique<runtime::Pool>(runtime, 1));
    }
    for (std::int32_t v = 0; v < variable_count; ++v) {
      variables.push_back(std::make_unique<runtime::Pool>(runtime, 1, device));
    }
  }

  const std::vector<SubgroupId> subgroups;  // in the order they are updated
  runtime::Pool sets;    // nbuffer: so many subgroups under way; serial: one, a round
  runtime::Pool reader;  // one subgroup reads at a time, so that the first is complete soonest
  // nbuffer, as `subgroups`: one step at a time has its state.
  std::vector<std::unique_ptr<runtime::Pool>> state_turns;
  std::vector<std::unique_ptr<runtime::Pool>> variables;  // handover: a buffer for each
  runtime::Pool::Lease round_set;                         // serial: of the round under way
};

inline runtime::Waiting waiting_for(const char* what, DeviceId device, SubgroupId subgroup) {
  runtime::Waiting waiting;
  waiting.what = what;
  waiting.device = device;
  waiting.subgroup = subgroup;
  return waiting;
}

}  // namespace sluice::offload
