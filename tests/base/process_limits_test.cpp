#include "base/process_limits.h"

#include <catch2/catch.hpp>

#include "base/cgroups.h"
#include "tests/base/made_system.h"

namespace sluice {
namespace {

constexpr std::int64_t kKibi = 1024;
constexpr std::int64_t kOwnBytes = 100'000 * kKibi;  // RssAnon of the made process

TEST_CASE("without limits the machine counts") {
  const MadeSystem system;
  const ProcessFacts facts = system.facts();
  CHECK(memory_limit(facts).count == 6'000'000 * kKibi + kOwnBytes);
  CHECK(memory_limit(facts).what == "what the machine has available");
  CHECK(!set_memory_limit(facts).is_limited());
  CHECK(processor_limit(facts).count == 4);
  CHECK(processor_limit(facts).what == "all of the machine");
  CHECK(!thread_limit(facts).is_limited());
  CHECK(!open_file_limit(facts).is_limited());
  CHECK(!file_size_limit(facts).is_limited());
}

TEST_CASE("where /proc says nothing, the machine has what it has") {
  ProcessFacts facts;
  facts.root = "/nowhere";
  facts.machine_memory_bytes = 5;
  CHECK(memory_limit(facts).count == 5);
  CHECK(memory_limit(facts).what == "all that the machine has");
}

TEST_CASE("version 2: memory.max and memory.high all the way up count, page cache is free") {
  MadeSystem system;
  system.mount_version_2("/jobs/mine");
  const std::string top = "/sys/fs/cgroup/jobs";
  system.write(top + "/mine/memory.max", "max\n");
  system.write(top + "/mine/memory.high", "900000000\n");
  system.write(top + "/mine/memory.current", "500000000\n");
  system.write(top + "/mine/memory.stat",
               "anon 150000000\ninactive_file 200000000\nactive_file 100000000\n"
               "slab_reclaimable 40000000\nworkingset_refault_file 7\n");
  ProcessLimit limit = memory_limit(system.facts());
  CHECK(limit.count == 900'000'000 - (500'000'000 - 340'000'000) + kOwnBytes);
  CHECK(limit.what == "cgroup memory.high of /sys/fs/cgroup/jobs/mine");

  system.write(top + "/memory.max", "420000000\n");
  system.write(top + "/memory.current", "500000000\n");
  system.write(top + "/memory.stat", "inactive_file 300000000\n");
  limit = memory_limit(system.facts());
  CHECK(limit.count == 420'000'000 - 200'000'000 + kOwnBytes);
  CHECK(limit.what == "cgroup memory.max of /sys/fs/cgroup/jobs");
  CHECK(set_memory_limit(system.facts()).count == limit.count);
}

TEST_CASE("a process may never have more than the limit, nor less than it has") {
  MadeSystem system;
  system.mount_version_2("/");
  system.write("/sys/fs/cgroup/memory.max", "420000000\n");
  CHECK(memory_limit(system.facts()).count == 420'000'000);
  system.write("/sys/fs/cgroup/memory.current", "700000000\n");
  CHECK(memory_limit(system.facts()).count == kOwnBytes);
}

TEST_CASE("version 1: the smallest memory.limit_in_bytes on the way up counts") {
  MadeSystem system;
  system.mount_version_1("/batch/42");
  const std::string top = "/sys/fs/cgroup/memory";
  system.write(top + "/memory.limit_in_bytes", "9223372036854771712\n");
  system.write(top + "/batch/memory.limit_in_bytes", "1000000000\n");
  system.write(top + "/batch/memory.usage_in_bytes", "800000000\n");
  system.write(top + "/batch/memory.stat",
               "inactive_file 1\ntotal_inactive_file 50000000\ntotal_active_file 50000000\n");
  system.write(top + "/batch/42/memory.limit_in_bytes", "9223372036854771712\n");
  ProcessLimit limit = memory_limit(system.facts());
  CHECK(limit.count == 1'000'000'000 - 700'000'000 + kOwnBytes);
  CHECK(limit.what == "cgroup memory.limit_in_bytes of /sys/fs/cgroup/memory/batch");

  system.write(top + "/batch/42/memory.limit_in_bytes", "420000000\n");
  system.write(top + "/batch/42/memory.usage_in_bytes", "150000000\n");
  limit = memory_limit(system.facts());
  CHECK(limit.count == 270'000'000 + kOwnBytes);
  CHECK(limit.what == "cgroup memory.limit_in_bytes of /sys/fs/cgroup/memory/batch/42");
}

TEST_CASE("a container sees its own group at the mount point, whatever the group is called") {
  for (const char* group : {"/docker/ab", "/docker/ab/inner", "/../other", "/somewhere/else"}) {
    MadeSystem system;
    system.mount_version_2(group, "/docker/ab");
    system.write("/sys/fs/cgroup/memory.max", "420000000\n");
    CAPTURE(group);
    CHECK(memory_limit(system.facts()).what == "cgroup memory.max of /sys/fs/cgroup");
  }
}

TEST_CASE("folders of groups go from the own one up to the mount point") {
  using Folders = std::vector<std::string>;
  const std::string mounts =
      "30 22 0:26 / /sys/fs/my\\040groups rw - cgroup2 cgroup2 rw\n"
      "35 31 0:32 /host /elsewhere rw - cgroup cgroup rw,memory\n"
      "36 31 0:32 / /v1 rw shared:9 - cgroup cgroup rw,memory\n";
  const std::string groups = "4:memory:/a/b\n0::/c\n";
  CHECK(cgroup_folders(mounts, groups, "") == Folders{"/sys/fs/my groups/c", "/sys/fs/my groups"});
  CHECK(cgroup_folders(mounts, groups, "memory") == Folders{"/v1/a/b", "/v1/a", "/v1"});
  CHECK(cgroup_folders(mounts, groups, "cpu").empty());
  CHECK(cgroup_folders("", groups, "memory").empty());
  CHECK(cgroup_folders("no mounts", "no groups", "").empty());
}

TEST_CASE("ulimit -v and -d bound memory with what they count beside") {
  const MadeSystem system;
  ProcessFacts facts = system.facts();
  facts.address_space_bytes = 3'000'000'000;
  ProcessLimit limit = memory_limit(facts);
  CHECK(limit.count == 3'000'000'000 - 2'000'000 * kKibi + kOwnBytes);
  CHECK(limit.what == "RLIMIT_AS, ulimit -v");
  facts.data_bytes = 600'000'000;
  limit = memory_limit(facts);
  CHECK(limit.count == 600'000'000 - 500'000 * kKibi + kOwnBytes);
  CHECK(limit.what == "RLIMIT_DATA, ulimit -d");
  facts.data_bytes = 1;
  CHECK(memory_limit(facts).count == 1);
}

TEST_CASE("processors are bounded by affinity and by the quotas of groups, rounded up") {
  MadeSystem system;
  ProcessFacts facts = system.facts();
  facts.own_processor_count = 3;
  CHECK(processor_limit(facts).count == 3);
  CHECK(processor_limit(facts).what == "its affinity: taskset, cpuset");

  system.mount_version_2("/a/b");
  system.write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  CHECK(processor_limit(facts).count == 3);
  system.write("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  CHECK(processor_limit(facts).count == 2);
  CHECK(processor_limit(facts).what == "cgroup cpu.max of /sys/fs/cgroup/a");
  system.write("/sys/fs/cgroup/a/b/cpu.max", "1000 100000\n");
  CHECK(processor_limit(facts).count == 1);
  CHECK(processor_limit(facts).what == "cgroup cpu.max of /sys/fs/cgroup/a/b");

  system.mount_version_1("/a");
  system.write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
  system.write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  CHECK(processor_limit(facts).count == 3);
  system.write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "200000\n");
  CHECK(processor_limit(facts).count == 2);
  CHECK(processor_limit(facts).what == "cgroup cpu.cfs_quota_us of /sys/fs/cgroup/cpu,cpuacct/a");
}

TEST_CASE("threads are bounded by pids.max, less those that there are, and by the user's limit") {
  MadeSystem system;
  system.mount_version_2("/a");
  system.write("/sys/fs/cgroup/a/pids.max", "100\n");
  system.write("/sys/fs/cgroup/a/pids.current", "90\n");
  ProcessFacts facts = system.facts();
  facts.user_process_count = 50;
  CHECK(thread_limit(facts).count == 10);
  CHECK(thread_limit(facts).what == "cgroup pids.max of /sys/fs/cgroup/a");
  facts.user_process_count = 5;
  CHECK(thread_limit(facts).what == "RLIMIT_NPROC, ulimit -u");
}

TEST_CASE("a number behind a word is not that of a longer word") {
  const std::string text = "inactive_file_x 3\nactive_file 5\nVmSize:\t   12 kB\nempty\n";
  CHECK(number_behind(text, "active_file") == 5);
  CHECK(number_behind(text, "inactive_file") == std::nullopt);
  CHECK(number_behind(text, "VmSize:") == 12);
  CHECK(number_behind(text, "empty") == std::nullopt);
}

TEST_CASE("this process has memory and processors, and is told what bounds them") {
  const ProcessFacts facts = process_facts();
  CHECK(memory_limit(facts).count > 0);
  CHECK(memory_limit(facts).count <= facts.machine_memory_bytes);
  CHECK(!memory_limit(facts).what.empty());
  CHECK(usable_processor_count() >= 1);
  CHECK(usable_processor_count() <= facts.machine_processor_count);
}

}  // namespace
}  // namespace sluice
