#include "base/process_limits.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cgroups.h"
#include "base/units.h"

namespace sluice {
namespace {

using Limits = std::vector<ProcessLimit>;

// The first of those that are alike.
ProcessLimit smallest(const Limits& limits) {
  const auto found = std::ranges::min_element(limits, {}, &ProcessLimit::count);
  return found == limits.end() ? ProcessLimit() : *found;
}

std::int64_t soft_limit(auto which) {
  rlimit limit = {};
  if (getrlimit(which, &limit) != 0) return kUnlimited;
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > static_cast<rlim_t>(kUnlimited)) {
    return kUnlimited;
  }
  return static_cast<std::int64_t>(limit.rlim_cur);
}

// The main thread is asked: one that was bound elsewhere does not speak for the process. The
// set of a machine of many processors takes more room than the C library's type has.
std::int64_t allowed_processor_count() {
  for (int room = CPU_SETSIZE; room <= (1 << 20); room *= 2) {
    std::vector<cpu_set_t> set(static_cast<std::size_t>(room / CPU_SETSIZE));
    const std::size_t size_bytes = set.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(getpid(), size_bytes, set.data()) == 0) {
      return std::max(1, CPU_COUNT_S(size_bytes, set.data()));
    }
    if (errno != EINVAL) break;
  }
  return std::max<std::int64_t>(1, sysconf(_SC_NPROCESSORS_ONLN));
}

// A figure that /proc has for the process itself, in bytes; 0 where it has none.
std::int64_t own_bytes(const ProcessFacts& facts, std::string_view word) {
  return 1024 * number_behind(text_below(facts.root, "/proc/self/status"), word).value_or(0);
}

std::int64_t sum_of(std::string_view text, std::initializer_list<std::string_view> words) {
  std::int64_t sum = 0;
  for (const std::string_view word : words) sum += number_behind(text, word).value_or(0);
  return sum;
}

std::string phrase(std::string_view file, std::string_view folder) {
  return fmt::format("cgroup {} of {}", file, folder);
}

// Memory that the kernel takes back from a group when it gets scarce does not count as used.
void add_group(const ProcessFacts& facts, const std::string& folder, std::string_view limit_file,
               std::int64_t used_bytes, Limits& limits) {
  const auto limit = number_below(facts.root, fmt::format("{}/{}", folder, limit_file));
  if (!limit) return;
  const std::int64_t left_bytes = *limit - std::clamp<std::int64_t>(used_bytes, 0, *limit);
  const std::int64_t own = own_bytes(facts, "RssAnon:");
  limits.push_back({std::min(left_bytes + own, *limit), phrase(limit_file, folder)});
}

void add_memory_groups(const ProcessFacts& facts, Limits& limits) {
  for (const std::string& folder : cgroup_folders(facts.root, "memory")) {
    const std::string stat = text_below(facts.root, folder + "/memory.stat");
    const std::int64_t used_bytes =
        number_below(facts.root, folder + "/memory.usage_in_bytes").value_or(0) -
        sum_of(stat, {"total_inactive_file", "total_active_file"});
    add_group(facts, folder, "memory.limit_in_bytes", used_bytes, limits);
  }
  for (const std::string& folder : cgroup_folders(facts.root, "")) {
    const std::string stat = text_below(facts.root, folder + "/memory.stat");
    const std::int64_t used_bytes =
        number_below(facts.root, folder + "/memory.current").value_or(0) -
        sum_of(stat, {"inactive_file", "active_file", "slab_reclaimable"});
    // Above memory.high the kernel slows a group down until it is below: not a place to be in.
    for (const char* file : {"memory.max", "memory.high"}) {
      add_group(facts, folder, file, used_bytes, limits);
    }
  }
}

// Address space and data count also what was never touched, so they are what is left, and what the
// process has in fact.
void add_own(const ProcessFacts& facts, std::int64_t limit_bytes, std::string_view used,
             const char* what, Limits& limits) {
  if (limit_bytes == kUnlimited) return;
  const std::int64_t left_bytes = std::max<std::int64_t>(0, limit_bytes - own_bytes(facts, used));
  limits.push_back({std::min(left_bytes + own_bytes(facts, "RssAnon:"), limit_bytes), what});
}

Limits set_memory_limits(const ProcessFacts& facts) {
  Limits limits;
  add_memory_groups(facts, limits);
  add_own(facts, facts.address_space_bytes, "VmSize:", "RLIMIT_AS, ulimit -v", limits);
  add_own(facts, facts.data_bytes, "VmData:", "RLIMIT_DATA, ulimit -d", limits);
  return limits;
}

ProcessLimit machine_memory(const ProcessFacts& facts) {
  const auto available = number_behind(text_below(facts.root, "/proc/meminfo"), "MemAvailable:");
  if (!available) return {facts.machine_memory_bytes, "all that the machine has"};
  return {std::min(*available * 1024 + own_bytes(facts, "RssAnon:"), facts.machine_memory_bytes),
          "what the machine has available"};
}

void add_quota(std::optional<std::int64_t> quota, std::optional<std::int64_t> period,
               const std::string& what, Limits& limits) {
  if (!quota || !period || *quota == 0 || *period == 0) return;
  limits.push_back({divide_up(*quota, *period), what});
}

Limits quotas(const ProcessFacts& facts) {
  Limits limits;
  for (const std::string& folder : cgroup_folders(facts.root, "cpu")) {
    add_quota(number_below(facts.root, folder + "/cpu.cfs_quota_us"),
              number_below(facts.root, folder + "/cpu.cfs_period_us"),
              phrase("cpu.cfs_quota_us", folder), limits);
  }
  for (const std::string& folder : cgroup_folders(facts.root, "")) {
    // "max 100000" or "150000 100000": quota and period in microseconds.
    const auto quota = number_below(facts.root, folder + "/cpu.max");
    const std::string text = text_below(facts.root, folder + "/cpu.max");
    if (!quota) continue;
    add_quota(quota, number_behind(text, std::to_string(*quota)), phrase("cpu.max", folder),
              limits);
  }
  return limits;
}

void add_thread_groups(const ProcessFacts& facts, const char* controller, Limits& limits) {
  for (const std::string& folder : cgroup_folders(facts.root, controller)) {
    const auto limit = number_below(facts.root, folder + "/pids.max");
    if (!limit) continue;
    const std::int64_t used = number_below(facts.root, folder + "/pids.current").value_or(0);
    limits.push_back({std::max<std::int64_t>(0, *limit - used), phrase("pids.max", folder)});
  }
}

}  // namespace

ProcessFacts process_facts() {
  ProcessFacts facts;
  facts.machine_memory_bytes =
      static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  facts.own_processor_count = allowed_processor_count();
  facts.machine_processor_count =
      std::max<std::int64_t>(facts.own_processor_count, sysconf(_SC_NPROCESSORS_ONLN));
  facts.address_space_bytes = soft_limit(RLIMIT_AS);
  facts.data_bytes = soft_limit(RLIMIT_DATA);
  facts.file_bytes = soft_limit(RLIMIT_FSIZE);
  facts.open_file_count = soft_limit(RLIMIT_NOFILE);
  facts.user_process_count = soft_limit(RLIMIT_NPROC);
  return facts;
}

ProcessLimit set_memory_limit(const ProcessFacts& facts) {
  return smallest(set_memory_limits(facts));
}

ProcessLimit memory_limit(const ProcessFacts& facts) {
  Limits limits = set_memory_limits(facts);
  limits.insert(limits.begin(), machine_memory(facts));
  return smallest(limits);
}

ProcessLimit processor_limit(const ProcessFacts& facts) {
  Limits limits = quotas(facts);
  const bool is_bound = facts.own_processor_count < facts.machine_processor_count;
  limits.insert(limits.begin(),
                {facts.own_processor_count,
                 is_bound ? "its affinity: taskset, cpuset" : "all of the machine"});
  return smallest(limits);
}

ProcessLimit thread_limit(const ProcessFacts& facts) {
  Limits limits;
  if (facts.user_process_count != kUnlimited) {
    limits.push_back({facts.user_process_count, "RLIMIT_NPROC, ulimit -u"});
  }
  add_thread_groups(facts, "pids", limits);
  add_thread_groups(facts, "", limits);
  return smallest(limits);
}

ProcessLimit open_file_limit(const ProcessFacts& facts) {
  return {facts.open_file_count, "RLIMIT_NOFILE, ulimit -n"};
}

ProcessLimit file_size_limit(const ProcessFacts& facts) {
  return {facts.file_bytes, "RLIMIT_FSIZE, ulimit -f"};
}

int usable_processor_count() { return static_cast<int>(processor_limit(process_facts()).count); }

std::string memory_limit_text() {
  const ProcessLimit limit = memory_limit(process_facts());
  return fmt::format("{} ({})", format_bytes(limit.count), limit.what);
}

}  // namespace sluice
