#include "core/runtime/frame_pool.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace sluice::runtime {
namespace {

constexpr std::size_t kGrainBytes = 64;
constexpr std::size_t kLargestPooledBytes = 16 * 1024;
// A first step that was slow to compute may have had one write under way at a time where a later
// one has as many as there are bounce buffers, which are eight.
constexpr std::size_t kFewestReserved = 16;

struct FreeFrame {
  FreeFrame* next;
};

class FrameLists {
 public:
  ~FrameLists() {
    for (List& list : lists_) {
      while (list.head != nullptr) ::operator delete(std::exchange(list.head, list.head->next));
    }
  }

  void* take(std::size_t size_bytes) {
    List& list = lists_[grains(size_bytes)];
    list.used_count += 1;
    list.most_used_count = std::max(list.most_used_count, list.used_count);
    if (list.head == nullptr) return make(list, grains(size_bytes));
    return std::exchange(list.head, list.head->next);
  }

  void give(void* frame, std::size_t size_bytes) {
    List& list = lists_[grains(size_bytes)];
    list.head = new (frame) FreeFrame{list.head};
    list.used_count -= 1;
  }

  void reserve() {
    for (std::size_t grain_count = 1; grain_count < lists_.size(); ++grain_count) {
      List& list = lists_[grain_count];
      if (list.most_used_count == 0) continue;
      const std::size_t wanted_count = std::max(kFewestReserved, 2 * list.most_used_count);
      while (list.made_count < wanted_count) {
        list.head = new (make(list, grain_count)) FreeFrame{list.head};
      }
    }
  }

 private:
  struct List {
    FreeFrame* head = nullptr;
    std::size_t made_count = 0;
    std::size_t used_count = 0;
    std::size_t most_used_count = 0;
  };
  static std::size_t grains(std::size_t size_bytes) {
    return (size_bytes + kGrainBytes - 1) / kGrainBytes;
  }
  static void* make(List& list, std::size_t grain_count) {
    list.made_count += 1;
    return ::operator new(grain_count * kGrainBytes);
  }

  std::array<List, kLargestPooledBytes / kGrainBytes + 1> lists_{};
};

thread_local FrameLists frame_lists;

}  // namespace

void* take_frame(std::size_t size_bytes) {
  if (size_bytes > kLargestPooledBytes) return ::operator new(size_bytes);
  return frame_lists.take(size_bytes);
}

void give_frame(void* frame, std::size_t size_bytes) noexcept {
  if (size_bytes > kLargestPooledBytes) return ::operator delete(frame);
  frame_lists.give(frame, size_bytes);
}

void reserve_frames() { frame_lists.reserve(); }

}  // namespace sluice::runtime
