#pragma once
// AMSP's table V (arXiv 2311.00257), LLaMA of three sizes on 64 GPUs with four settings of overlap,
// against simulation; the order of three shardings on 1024 ranks; and the part of
// docs/published_results.md that shows them.
//
// Thread contract: free functions.

#include <string>

namespace sluice::simulate {

std::string amsp_checks_text();

}  // namespace sluice::simulate
