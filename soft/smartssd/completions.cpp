#include "soft/smartssd/completions.h"

#include <atomic>

namespace sluice::soft_smartssd {

void set_packet_state(const Buffer& packet, ert_cmd_state state) {
  auto& header = *reinterpret_cast<std::uint32_t*>(packet.host_bytes().data());
  const std::atomic_ref<std::uint32_t> shared(header);
  shared.store((shared.load() & ~std::uint32_t{0xf}) | static_cast<std::uint32_t>(state),
               std::memory_order_release);
}

Completions::Completions() : teller_([this] { tell_when_due(); }) {}

Completions::~Completions() {
  {
    MutexLock lock(mutex_);
    is_ending_ = true;
  }
  to_teller_.notify_all();
  teller_.join();
}

void Completions::publish(std::shared_ptr<Buffer> packet, ert_cmd_state state, SteadyTime due) {
  {
    MutexLock lock(mutex_);
    notices_.emplace(due, Notice{std::move(packet), state});
  }
  to_teller_.notify_all();
}

void Completions::tell_when_due() {
  MutexLock lock(mutex_);
  while (!is_ending_ || !notices_.empty()) {
    if (notices_.empty()) {
      to_teller_.wait(mutex_);
      continue;
    }
    const auto first = notices_.begin();
    const auto early = first->first - std::chrono::steady_clock::now();
    if (!is_ending_ && early > early.zero()) {
      to_teller_.wait_for(mutex_, early);
      continue;
    }
    set_packet_state(*first->second.packet, first->second.state);
    notices_.erase(first);
    ++told_;
    to_waiters_.notify_all();
  }
}

bool Completions::wait(std::uint64_t& seen, std::chrono::milliseconds timeout) {
  const SteadyTime end = std::chrono::steady_clock::now() + timeout;
  MutexLock lock(mutex_);
  while (told_ == seen) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= left.zero()) return false;
    to_waiters_.wait_for(mutex_, left);
  }
  seen = told_;
  return true;
}

}  // namespace sluice::soft_smartssd
