#pragma once
// The resources that this process may have: memory, processors, threads, open files and the size of
// a file, each the smallest of what the machine has and of what a container, a batch system, a
// service or a shell has set, with the limit that counted. Whoever takes "all there is" asks here.
//
// A limit of this process alone (ulimit) and one of a group that others are in (cgroups of both
// versions, docs/guide.md) are alike. No limit of a group above the mount point can be seen.
//
// Thread contract: free functions, any thread.

#include <cstdint>
#include <limits>
#include <string>

namespace sluice {

inline constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

struct ProcessLimit {
  std::int64_t count = kUnlimited;  // bytes, processors, threads, files
  std::string what = {};            // "cgroup memory.max of /sys/fs/cgroup/small"

  bool is_limited() const { return count != kUnlimited; }
};

// Facts that the system is asked for; tests make them up.
struct ProcessFacts {
  std::string root = {};  // before every path that is read (/proc, cgroups); "": the system's own
  std::int64_t machine_memory_bytes = 0;
  std::int64_t machine_processor_count = 1;
  std::int64_t own_processor_count = 1;  // on which this process may run
  // The process's soft limits.
  std::int64_t address_space_bytes = kUnlimited;
  std::int64_t data_bytes = kUnlimited;
  std::int64_t file_bytes = kUnlimited;
  std::int64_t open_file_count = kUnlimited;
  std::int64_t user_process_count = kUnlimited;
};
ProcessFacts process_facts();

// In all, with what it has taken already; page cache that the kernel would give back is free.
ProcessLimit memory_limit(const ProcessFacts& facts);
// The same of what somebody has set alone: neither other programs nor the machine count.
ProcessLimit set_memory_limit(const ProcessFacts& facts);
// A share of a processor counts as one.
ProcessLimit processor_limit(const ProcessFacts& facts);
// Beside those that there are; of the user's processes the limit, since the kernel does not say
// how many there are.
ProcessLimit thread_limit(const ProcessFacts& facts);
ProcessLimit open_file_limit(const ProcessFacts& facts);
ProcessLimit file_size_limit(const ProcessFacts& facts);

// On which a run computes unless it is told another number.
int usable_processor_count();
// "420 MB (cgroup memory.max of /sys/fs/cgroup/small)"
std::string memory_limit_text();

}  // namespace sluice
