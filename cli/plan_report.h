#pragma once
// The text of `sluice tune --placement`.
//
// Thread contract: free function.

#include <string>

#include "core/answers/placement.h"

namespace sluice::cli {

std::string plan_text(const answers::PlacementAnswer& answer);

}  // namespace sluice::cli
