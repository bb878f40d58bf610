#pragma once
// A root folder with what the kernel would say in /proc and in mounted cgroups.
//
// Thread contract: made by one thread.

#include <filesystem>
#include <fstream>
#include <string>

#include "base/process_limits.h"
#include "tests/test_folder.h"

namespace sluice {

// A machine of 8 GB and 4 processors, of which 6 GB are available; the process has 100 MB.
class MadeSystem {
 public:
  MadeSystem() {
    write("/proc/meminfo",
          "MemTotal:        8000000 kB\nMemFree:  1000 kB\nMemAvailable:    6000000 kB\n");
    write("/proc/self/status",
          "Name:\tsluice\nVmSize:\t 2000000 kB\nRssAnon:\t  100000 kB\nVmData:\t  500000 kB\n");
  }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = folder_.path() + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole, std::ios::binary) << text;
  }

  // One tree for all controllers, in which the process is in `group`.
  void mount_version_2(const std::string& group, const std::string& top = "/") {
    write("/proc/self/cgroup", "0::" + group + "\n");
    write("/proc/self/mountinfo",
          "22 1 0:20 / /proc rw shared:5 - proc proc rw\n"
          "30 22 0:26 " +
              top + " /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
  }

  // A tree for memory, one for two controllers of processors, and one without any.
  void mount_version_1(const std::string& group, const std::string& top = "/") {
    write("/proc/self/cgroup", "9:name=systemd:/x\n4:memory:" + group + "\n3:cpu,cpuacct:" + group +
                                   "\n0::/elsewhere\n");
    write("/proc/self/mountinfo",
          "31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n"
          "32 31 0:29 " +
              top +
              " /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
              "35 31 0:32 " +
              top +
              " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
              "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  }

  ProcessFacts facts() const {
    ProcessFacts facts;
    facts.root = folder_.path();
    facts.machine_memory_bytes = 8'192'000'000;
    facts.machine_processor_count = 4;
    facts.own_processor_count = 4;
    return facts;
  }

 private:
  TestFolder folder_;
};

}  // namespace sluice
