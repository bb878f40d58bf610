#pragma once
// What LoHan's artifact (2024; also Fuyou and Ratel) says of GPT-3 13B on one RTX 4090 and up to
// twelve drives, against simulation; and the part of docs/published_results.md that shows it.
//
// Thread contract: free functions.

#include <string>

namespace sluice::simulate {

std::string lohan_checks_text();

}  // namespace sluice::simulate
