#pragma once
// The requests an engine has in flight: from being taken until they are handed out. All memory is
// taken at construction, so that submit and reap allocate nothing but the text of errors.
//
// Thread contract: its owner's. A slot's transfer belongs to whoever works on that request.

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "storage/io/detail/index_ring.h"
#include "storage/io/detail/transfer.h"

namespace sluice::io::detail {

class SlotTable {
 public:
  explicit SlotTable(std::size_t queue_depth)
      : slots_(queue_depth), free_(queue_depth), finished_(queue_depth) {
    for (std::size_t i = 0; i < queue_depth; ++i) free_.push(static_cast<std::uint32_t>(i));
  }

  std::size_t queue_depth() const { return slots_.size(); }
  std::size_t room_count() const { return free_.size(); }
  std::size_t inflight_count() const { return slots_.size() - free_.size(); }
  std::size_t finished_count() const { return finished_.size(); }

  // A slot for the request. One that is bad in itself is finished at once, and `ready` is false.
  struct Taken {
    std::uint32_t slot;
    bool ready;
  };
  Taken take(const IoRequest& request) {
    const std::uint32_t slot = free_.pop();
    slots_[slot].transfer.begin(request);
    Status usable = check_request(request);
    if (usable.ok()) return {slot, true};
    finish(slot, std::move(usable));
    return {slot, false};
  }

  Transfer& transfer(std::uint32_t slot) { return slots_[slot].transfer; }

  void finish(std::uint32_t slot, Status status) {
    slots_[slot].status = std::move(status);
    finished_.push(slot);
  }

  // The transfer that finished first goes out first; the slots are free again.
  std::size_t hand_out(std::span<IoCompletion> completions) {
    const std::size_t count = std::min(completions.size(), finished_.size());
    for (IoCompletion& completion : completions.first(count)) {
      const std::uint32_t slot = finished_.pop();
      completion.user_data = slots_[slot].transfer.request().user_data;
      completion.status = std::move(slots_[slot].status);
      free_.push(slot);
    }
    return count;
  }

 private:
  struct Slot {
    Transfer transfer;
    Status status;
  };
  std::vector<Slot> slots_;
  IndexRing free_;
  IndexRing finished_;
};

}  // namespace sluice::io::detail
