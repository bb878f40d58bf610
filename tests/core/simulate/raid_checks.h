#pragma once
// The ZeRO-Infinity rows of MLP-Offload's logs (SC 2025) against simulation: models of 44 and 106
// billion parameters on four GPUs and a RAID, and the part of docs/published_results.md that shows
// them.
//
// Thread contract: free functions.

#include <string>

namespace sluice::simulate {

std::string raid_checks_text();

}  // namespace sluice::simulate
