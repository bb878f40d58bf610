#pragma once
// Whether a thread's pauses were waits for another thread's operation: seen from all of them
// together, where none alone says it.
//
// Thread contract: a free function.

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"

namespace sluice::replay {

// A pause of a thread in which an operation of another thread ended.
struct Pause {
  std::int32_t kind = 0;  // which operation of which thread followed what; from 0
  TimeNs dur_ns = 0;
  TimeNs after_ns = 0;  // of it, behind the other operation's end
};

// For each kind. True: its pauses differ in length, and what is left behind the other operation's
// end does not, so that the thread waited for it and then worked. Fewer than four say nothing.
std::vector<bool> are_wakes(std::span<const Pause> pauses);

}  // namespace sluice::replay
