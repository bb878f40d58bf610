#pragma once
// What CEMU (ASPLOS 2026) found on Smart-Infinity's workload against simulation: the rows, and the
// part of docs/published_results.md that shows them.
//
// Thread contract: free functions.

#include <string>

namespace sluice::simulate {

std::string emulator_checks_text();

}  // namespace sluice::simulate
