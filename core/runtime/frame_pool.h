#pragma once
// Where coroutine frames come from: free lists by size, so that a step, once warm, takes no memory.
// Frames of one size recur every step; how many exist at once depends on what overlaps, so after
// the first step the lists are doubled (reserve_frames) instead of growing later.
//
// Thread contract: thread-local; a frame is freed on the thread that made it (the schedule's).

#include <cstddef>

namespace sluice::runtime {

void* take_frame(std::size_t size_bytes);
void give_frame(void* frame, std::size_t size_bytes) noexcept;

// Makes as many frames again of each size as have been made so far.
void reserve_frames();

}  // namespace sluice::runtime
