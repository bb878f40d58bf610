#include "tests/storage/io/faulty_engine.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "storage/io/detail/attempt_hook.h"
#include "storage/io/detail/completion_signal.h"
#include "storage/io/detail/index_ring.h"
#include "storage/io/page_aligned_buffer.h"

namespace sluice::io {
namespace {

using Fault = FaultPlan::Fault;

// A number that depends on the seed and the request alone, not on which thread asks first.
std::uint64_t draw(std::uint64_t seed, std::uint64_t request_index, std::uint64_t below) {
  std::seed_seq sequence{seed, seed >> 32, request_index, request_index >> 32};
  std::mt19937_64 generator(sequence);
  return generator() % below;
}

void flip_bit(std::span<std::byte> data, std::uint64_t bit) {
  data[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
}

class FaultyEngine final : public IoEngine, private detail::AttemptHook {
 public:
  FaultyEngine(std::unique_ptr<IoEngine> inner, FaultPlan plan)
      : plan_(std::move(plan)),
        inner_(std::move(inner)),
        name_(fmt::format("faulty({})", inner_->name())),
        slots_(inner_->queue_depth()),
        free_(slots_.size()),
        order_generator_(plan_.seed) {
    for (std::size_t i = 0; i < slots_.size(); ++i) free_.push(static_cast<std::uint32_t>(i));
    auto* engine = dynamic_cast<detail::KernelEngine*>(inner_.get());
    CHECK(engine != nullptr);  // it wraps what open_io_engine() made
    engine->set_attempt_hook(this);
  }
  // First, since it waits for transfers that use the slots.
  ~FaultyEngine() override { inner_.reset(); }

  std::size_t submit(std::span<const IoRequest> requests) override;
  std::size_t reap(std::span<IoCompletion> completions, std::size_t at_least) override;

  int completion_fd() const override { return inner_->completion_fd(); }
  Status register_buffers(std::span<const std::span<std::byte>> buffers) override {
    return inner_->register_buffers(buffers);
  }
  std::size_t inflight_count() const override { return slots_.size() - free_.size(); }
  std::size_t queue_depth() const override { return slots_.size(); }
  std::string_view name() const override { return name_; }

 private:
  struct Slot {
    IoRequest request;  // as the caller gave it
    std::uint64_t request_index = 0;
    std::vector<Fault> faults;  // still to come at the kernel border, last first
    bool flips_bit = false;
    PageAlignedBuffer flipped;  // the damaged copy that is written instead
    Status status;
  };

  std::optional<std::int32_t> before_attempt(std::uint64_t user_data,
                                             detail::Attempt& attempt) override;
  std::optional<std::int32_t> shorten(const Slot& slot, detail::Attempt& attempt) const;
  IoRequest arm(std::uint32_t slot, const IoRequest& request);
  void damage_copy(Slot& slot, IoRequest& request) const;
  void collect(std::size_t at_least);
  void release_held();

  const FaultPlan plan_;
  std::unique_ptr<IoEngine> inner_;
  const std::string name_;
  std::vector<Slot> slots_;
  detail::IndexRing free_;
  std::vector<std::uint32_t> held_;   // finished, but kept until their order is drawn
  std::vector<std::uint32_t> ready_;  // to hand out, last first
  std::mt19937_64 order_generator_;
  std::uint64_t next_request_index_ = 0;
};

std::size_t FaultyEngine::submit(std::span<const IoRequest> requests) {
  const std::size_t count = std::min(requests.size(), free_.size());
  std::vector<IoRequest> armed;
  for (const IoRequest& request : requests.first(count)) armed.push_back(arm(free_.pop(), request));
  CHECK_EQ(inner_->submit(armed), count);
  return count;
}

IoRequest FaultyEngine::arm(std::uint32_t slot_index, const IoRequest& request) {
  Slot& slot = slots_[slot_index];
  slot = Slot();
  slot.request = request;
  slot.request_index = next_request_index_++;
  IoRequest armed = request;
  armed.user_data = slot_index;
  for (const FaultPlan::Planned& planned : plan_.planned) {
    if (planned.request_index != slot.request_index) continue;
    if (planned.fault == Fault::flip_bit) {
      slot.flips_bit = true;
    } else {
      slot.faults.insert(slot.faults.begin(), planned.fault);
    }
  }
  if (slot.flips_bit && request.direction == IoDirection::write) damage_copy(slot, armed);
  return armed;
}

// The caller's memory stays as it is. The copy keeps the place within a page, so that a misaligned
// request stays one.
void FaultyEngine::damage_copy(Slot& slot, IoRequest& request) const {
  if (request.data.empty()) return;
  const std::size_t in_page = reinterpret_cast<std::uintptr_t>(request.data.data()) % kPageBytes;
  auto copy = PageAlignedBuffer::allocate(static_cast<std::int64_t>(in_page + request.data.size()));
  CHECK(copy.ok());
  slot.flipped = std::move(*copy);
  const std::span<std::byte> damaged = slot.flipped.bytes().subspan(in_page, request.data.size());
  std::memcpy(damaged.data(), request.data.data(), damaged.size());
  flip_bit(damaged, draw(plan_.seed, slot.request_index, damaged.size() * 8));
  request.data = damaged;
}

std::optional<std::int32_t> FaultyEngine::before_attempt(std::uint64_t user_data,
                                                         detail::Attempt& attempt) {
  Slot& slot = slots_[user_data];
  if (slot.faults.empty()) return std::nullopt;
  const Fault fault = slot.faults.back();
  slot.faults.pop_back();
  switch (fault) {
    case Fault::eio:
      return -EIO;
    case Fault::no_space:
      return -ENOSPC;
    case Fault::again:
      return -EAGAIN;
    case Fault::interrupted:
      return -EINTR;
    case Fault::cut_transfer:
      slot.faults.push_back(Fault::eio);
      return shorten(slot, attempt);
    case Fault::short_transfer:
      return shorten(slot, attempt);
    case Fault::flip_bit:
      break;  // not a matter of the kernel border: see arm() and collect()
  }
  return std::nullopt;
}

// The kernel is asked for a part only, so what it did not transfer is truly missing. One page
// on a direct file has no part that can be asked for: then half of it is said to have come, and
// nothing has.
std::optional<std::int32_t> FaultyEngine::shorten(const Slot& slot,
                                                  detail::Attempt& attempt) const {
  const std::size_t unit_bytes = slot.request.file->caching() == Caching::direct ? kPageBytes : 1;
  const std::uint64_t unit_count = attempt.size_bytes / unit_bytes;
  if (unit_count < 2) return static_cast<std::int32_t>(attempt.size_bytes / 2);
  attempt.size_bytes = (1 + draw(plan_.seed, slot.request_index, unit_count - 1)) * unit_bytes;
  return std::nullopt;
}

std::size_t FaultyEngine::reap(std::span<IoCompletion> completions, std::size_t at_least) {
  const std::size_t wanted = std::min({at_least, completions.size(), inflight_count()});
  const std::size_t missing = wanted > ready_.size() ? wanted - ready_.size() : 0;
  // A drawn order does not depend on timing only if all that is in flight takes part in it.
  collect(missing > 0 && plan_.shuffle_completions ? inner_->inflight_count() : missing);
  const std::size_t count = std::min(completions.size(), ready_.size());
  for (IoCompletion& completion : completions.first(count)) {
    const std::uint32_t slot = ready_.back();
    ready_.pop_back();
    completion = {slots_[slot].request.user_data, std::move(slots_[slot].status)};
    free_.push(slot);
  }
  if (!ready_.empty()) detail::CompletionSignal::raise(completion_fd());
  return count;
}

void FaultyEngine::collect(std::size_t at_least) {
  std::vector<IoCompletion> finished(inner_->inflight_count());
  const std::size_t count = inner_->reap(finished, at_least);
  for (IoCompletion& completion : std::span(finished).first(count)) {
    Slot& slot = slots_[completion.user_data];
    slot.status = std::move(completion.status);
    const IoRequest& request = slot.request;
    if (slot.flips_bit && slot.status.ok() && request.direction == IoDirection::read)
      flip_bit(request.data, draw(plan_.seed, slot.request_index, request.data.size() * 8));
    held_.push_back(static_cast<std::uint32_t>(completion.user_data));
  }
  if (!plan_.shuffle_completions || inner_->inflight_count() == 0) release_held();
}

void FaultyEngine::release_held() {
  if (plan_.shuffle_completions) {
    std::sort(held_.begin(), held_.end(), [this](std::uint32_t a, std::uint32_t b) {
      return slots_[a].request_index < slots_[b].request_index;
    });
    for (std::size_t i = held_.size(); i > 1; --i)
      std::swap(held_[i - 1], held_[order_generator_() % i]);
  }
  std::reverse(held_.begin(), held_.end());
  ready_.insert(ready_.begin(), held_.begin(), held_.end());
  held_.clear();
}

}  // namespace

std::unique_ptr<IoEngine> make_faulty_engine(std::unique_ptr<IoEngine> inner, FaultPlan plan) {
  return std::make_unique<FaultyEngine>(std::move(inner), std::move(plan));
}

}  // namespace sluice::io
