#pragma once
// Where coroutine frames come from: free lists by size, so that a step, once warm, takes no memory
// (style: memory is taken before step 0). Frames of one size recur every step, hence the lists hold
// exactly what the widest step needed.
//
// Thread contract: thread-local; a frame is freed on the thread that made it (the schedule's).

#include <cstddef>

namespace sluice::runtime {

void* take_frame(std::size_t size_bytes);
void give_frame(void* frame, std::size_t size_bytes) noexcept;

}  // namespace sluice::runtime
