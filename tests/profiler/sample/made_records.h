#pragma once
// Bytes of a perf ring, made by hand.

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace sluice::sample {

class MadeRing {
 public:
  void add_sample(std::uint32_t pid, std::uint32_t tid, TimeNs ts,
                  std::initializer_list<std::uint64_t> chain) {
    begin(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
    put<std::uint64_t>(chain.size() == 0 ? 7 : *chain.begin());
    put(pid);
    put(tid);
    put<std::uint64_t>(static_cast<std::uint64_t>(ts));
    put<std::uint32_t>(3);  // processor
    put<std::uint32_t>(0);
    put<std::uint64_t>(chain.size() + 1);
    put<std::uint64_t>(static_cast<std::uint64_t>(PERF_CONTEXT_USER));
    for (const std::uint64_t address : chain) put(address);
    end();
  }
  void add_switch(std::uint32_t pid, std::uint32_t tid, TimeNs ts, std::uint16_t misc) {
    begin(PERF_RECORD_SWITCH, misc);
    put_trailer(pid, tid, ts);
    end();
  }
  void add_life(std::uint32_t type, std::uint32_t pid, std::uint32_t tid, std::uint32_t parent_tid,
                TimeNs ts) {
    begin(type, 0);
    for (const std::uint32_t field : {pid, pid, tid, parent_tid}) put(field);
    put<std::uint64_t>(static_cast<std::uint64_t>(ts));
    put_trailer(pid, tid, ts);
    end();
  }
  void add_name(std::uint32_t pid, std::uint32_t tid, TimeNs ts, std::string_view name) {
    begin(PERF_RECORD_COMM, 0);
    put(pid);
    put(tid);
    std::string text(name);
    text.resize((text.size() / 8 + 1) * 8);
    for (const char letter : text) put(letter);
    put_trailer(pid, tid, ts);
    end();
  }
  void add_lost(std::uint64_t count) {
    begin(PERF_RECORD_LOST, 0);
    put<std::uint64_t>(1);
    put(count);
    put_trailer(1, 1, 1);
    end();
  }
  // A record of any type that has these bytes behind its header.
  void add_bytes(std::uint32_t type, std::size_t count) {
    begin(type, 0);
    bytes_.resize(bytes_.size() + count);
    end();
  }

  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  template <typename T>
  void put(T value) {
    const auto* const from = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(T));
  }
  void put_trailer(std::uint32_t pid, std::uint32_t tid, TimeNs ts) {
    put(pid);
    put(tid);
    put<std::uint64_t>(static_cast<std::uint64_t>(ts));
    put<std::uint32_t>(3);
    put<std::uint32_t>(0);
  }
  void begin(std::uint32_t type, std::uint16_t misc) {
    begin_ = bytes_.size();
    put(type);
    put(misc);
    put<std::uint16_t>(0);
  }
  void end() {
    const auto size = static_cast<std::uint16_t>(bytes_.size() - begin_);
    std::memcpy(bytes_.data() + begin_ + 6, &size, sizeof(size));
  }

  std::vector<std::byte> bytes_;
  std::size_t begin_ = 0;
};

}  // namespace sluice::sample
