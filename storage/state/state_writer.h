#pragma once
// Writes a state that is made from another one: a subgroup's values in fp32 into its slot, in the
// format of the store. Where that rounds, it rounds to the nearest. The opposite of StateReader.
//
// Thread contract: one thread; the store is new, and its first commit is still to come.

#include <span>
#include <vector>

#include "storage/state/state_store.h"

namespace sluice::state {

class StateWriter {
 public:
  // The store outlives it. Takes memory for a subgroup's values, and for its slot.
  explicit StateWriter(StateStore& store);

  // What is to be written of a variable of the fp32 format: of as many elements as the subgroup
  // has.
  std::span<float> values(SubgroupId subgroup, std::int32_t variable);
  // The subgroup's values go into its current slot.
  Result<SubgroupVersion> write(SubgroupId subgroup);

 private:
  StateStore& store_;
  std::vector<std::vector<float>> values_;  // by variable
};

}  // namespace sluice::state
