#include "core/runtime/frame_pool.h"

#include <array>
#include <new>

namespace sluice::runtime {
namespace {

constexpr std::size_t kGrainBytes = 64;
constexpr std::size_t kLargestPooledBytes = 16 * 1024;

struct FreeFrame {
  FreeFrame* next;
};

class FrameLists {
 public:
  ~FrameLists() {
    for (FreeFrame*& head : heads_) {
      while (head != nullptr) {
        FreeFrame* next = head->next;
        ::operator delete(head);
        head = next;
      }
    }
  }
  FreeFrame*& list_of(std::size_t size_bytes) { return heads_[grains(size_bytes)]; }
  static std::size_t grains(std::size_t size_bytes) {
    return (size_bytes + kGrainBytes - 1) / kGrainBytes;
  }

 private:
  std::array<FreeFrame*, kLargestPooledBytes / kGrainBytes + 1> heads_{};
};

thread_local FrameLists frame_lists;

}  // namespace

void* take_frame(std::size_t size_bytes) {
  if (size_bytes > kLargestPooledBytes) return ::operator new(size_bytes);
  FreeFrame*& head = frame_lists.list_of(size_bytes);
  if (head == nullptr) return ::operator new(FrameLists::grains(size_bytes) * kGrainBytes);
  FreeFrame* frame = head;
  head = frame->next;
  return frame;
}

void give_frame(void* frame, std::size_t size_bytes) noexcept {
  if (size_bytes > kLargestPooledBytes) return ::operator delete(frame);
  FreeFrame*& head = frame_lists.list_of(size_bytes);
  head = new (frame) FreeFrame{head};
}

}  // namespace sluice::runtime
