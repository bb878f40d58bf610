#pragma once
// Mistakes that tests plant in the compute device, to see that each is found: a wait, an event or a
// stream guard that is left out. Only a build with SLUICE_PLANTED_MISTAKES has them; elsewhere
// is_planted() is false at compile time.
//
// Thread contract: planted_mistake is written before a device is made.

#include <string_view>

namespace sluice::model {

#ifdef SLUICE_PLANTED_MISTAKES
inline std::string_view planted_mistake;
inline bool is_planted(std::string_view mistake) { return planted_mistake == mistake; }
#else
constexpr bool is_planted(std::string_view) { return false; }
#endif

}  // namespace sluice::model
