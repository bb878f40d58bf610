#pragma once
// Another program, run to its end at low priority, its output kept.
//
// Thread contract: free functions, not the frame thread. run_child blocks its thread until the
// program ends or is stopped; the program is killed if that thread ends first, and so with the
// process.

#include <string>
#include <vector>

#include "base/status.h"

namespace sluice::gui {

// A process beside a training run, whose processors it shares, has this niceness.
inline constexpr int kNiceness = 15;

struct ChildOutput {
  int exit_code = 0;  // 128 + the signal, if one ended it
  std::string out;
  std::string err;
};

// `arguments[0]` is the program's path. When `stop_descriptor` becomes readable the program is
// killed: ErrorCode::cancelled. Output beyond kChildOutputMax is an error, too.
Result<ChildOutput> run_child(const std::vector<std::string>& arguments, int stop_descriptor);
inline constexpr std::size_t kChildOutputMax = 16 << 20;
inline constexpr int kNeverStopped = -1;  // as stop_descriptor

// Why a program ended with another code than 0: the last line it wrote to its standard error, where
// errors come whatever progress was shown before.
std::string why_failed(const std::string& program, const ChildOutput& output);

// The program `sluice`: beside this one, else in PATH. Empty: in neither.
std::string find_sluice();
// As it is called in a command that is pasted.
std::string pasted_sluice();
// In PATH; empty: it is not there.
std::string find_program(const std::string& name);

// Starts a process that outlives this one, with its output in the file `log`; returns its id.
Result<long> start_detached(const std::vector<std::string>& arguments, const std::string& log);

}  // namespace sluice::gui
