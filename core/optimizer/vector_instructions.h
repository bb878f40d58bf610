#pragma once
// The vector instructions of this processor, by Highway's names ("AVX2", "AVX3_ZEN4"). The kernels
// here are compiled for several of them and take the best as they are called, so one build does for
// all processors.
//
// Thread contract: free function.

#include <string>
#include <vector>

namespace sluice::optimizer {

// Best first; never empty.
std::vector<std::string> vector_instructions();

}  // namespace sluice::optimizer
