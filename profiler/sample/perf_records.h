#pragma once
// The records of a perf ring as plain structs. The kernel writes them; they are read as bytes of
// anybody's all the same: a record that is cut or of an impossible size ends the reading, and the
// rest counts as lost. The layout is that of the attributes which perf_rings.cpp asks for
// (IP, TID, TIME, CPU, CALLCHAIN; sample_id_all), after perf_event_open(2).
//
// Thread contract: plain data and free functions.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"

namespace sluice::sample {

enum class PerfKind : std::uint8_t {
  sample,         // of a running thread: `chain`
  switched_in,    // a thread got a processor
  switched_out,   // it waits for something
  preempted,      // it could go on, another thread got its processor
  thread_begins,  //
  thread_ends,    //
  name,           // a thread's name is `name` from now on
  lost,           // the ring had no room for `lost_count` records
};

struct PerfRecord {
  PerfKind kind = PerfKind::lost;
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint32_t cpu = 0;
  TimeNs ts = 0;                 // of CLOCK_MONOTONIC
  std::uint32_t parent_tid = 0;  // that began the thread
  std::uint64_t lost_count = 0;
  std::string name = {};
  // Addresses of code of the process, the innermost first: where the thread was, and where each
  // call returns to.
  std::vector<std::uint64_t> chain = {};
};

// Longer chains lose their outermost calls.
inline constexpr std::size_t kChainMax = 64;

// Appends the records that `bytes` begins with, and returns how many bytes at the end are none.
// Kinds that nobody asked for are left out.
std::size_t read_perf_records(std::span<const std::byte> bytes, std::vector<PerfRecord>& into);

}  // namespace sluice::sample
