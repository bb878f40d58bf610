#pragma once
// A run on a server, as people name it: ssh://[user@]host[:port]/abs/path/run.db, and the command
// that reaches it. The words go to ssh as they are, with no shell here; what the shell at the other
// end reads is quoted.
//
// Thread contract: plain data and free functions.

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sluice::relay {

struct FarRun {
  std::string user = {};  // empty: ssh's own choice
  std::string host = {};  // a name of ~/.ssh/config too; an IPv6 address without its brackets
  int port = 0;           // 0: ssh's own choice
  std::string path = {};  // absolute, at the other end

  std::string text() const;  // as it was named
};

bool is_far_run(std::string_view text);  // begins as one
// Errors: config, with what is wrong; a host or user that ssh would take for an option is refused.
Result<FarRun> parse_far_run(std::string_view text);

struct FarOptions {
  std::string program = "sluice";   // at the other end
  std::string control_socket = {};  // here, from the root, to the run's control socket; empty: none
};
// The first word is `ssh`, found in PATH.
std::vector<std::string> ssh_command(const FarRun& run, const FarOptions& options);
// Why the run's control socket cannot be had at this place through ssh; empty: it can.
std::string why_no_control(const FarRun& run, const std::string& control_socket);

}  // namespace sluice::relay
