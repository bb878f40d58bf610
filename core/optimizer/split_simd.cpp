#include "core/optimizer/split_update.h"

namespace sluice::optimizer {

void update(const UpdateScalars& scalars, const SplitArrays& arrays) {
  update_reference(scalars, arrays);
}

}  // namespace sluice::optimizer
