#pragma once
// The control groups that this process is in, of both versions, as it sees them: a group's folder,
// and those above it up to the mount point. A limit of any of them counts.
//
// Every path is read below a root, "" for the system's own, so that tests have trees of theirs.
//
// Thread contract: free functions, any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// Folders from the process's own group up to the mount point, as the process names them. The
// controller of version 1 ("memory", "cpu", "pids"); "" is version 2, which has one tree for all.
// Empty: no such tree is mounted, or the process is in none.
std::vector<std::string> cgroup_folders(const std::string& root, std::string_view controller);
// The same of the texts of /proc/self/mountinfo and /proc/self/cgroup.
std::vector<std::string> cgroup_folders(std::string_view mounts, std::string_view groups,
                                        std::string_view controller);

// All of a file; empty if it cannot be read.
std::string text_below(const std::string& root, const std::string& path);
// The first number of a file. Nothing: there is no such file, or it says that there is no limit
// ("max", a negative number, or version 1's largest whole number of pages).
std::optional<std::int64_t> number_below(const std::string& root, const std::string& path);
// The number behind a word, in a text of such pairs ("inactive_file 4096\n", "VmSize:  12 kB\n").
std::optional<std::int64_t> number_behind(std::string_view text, std::string_view word);

}  // namespace sluice
