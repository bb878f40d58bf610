#pragma once
// Where coroutine frames come from: free lists by size, so that a step, once warm, takes no memory.
// Frames of one size recur every step; how many exist at once depends on what overlaps, so after
// the first step there are made twice as many (reserve_frames) instead of more later.
//
// Thread contract: thread-local; a frame is freed on the thread that made it (the schedule's).

#include <cstddef>

namespace sluice::runtime {

void* take_frame(std::size_t size_bytes);
void give_frame(void* frame, std::size_t size_bytes) noexcept;

// Makes frames until there are twice as many of each size as were ever in use at once, and a few.
void reserve_frames();

}  // namespace sluice::runtime
