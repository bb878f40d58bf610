#pragma once
// A tool: its name and arguments as a client is told them, and the function that answers. A tool
// that cannot look gives an Error: its words are the `why` of the answer.
//
// Thread contract: plain data; functions of tools run one at a time, on one thread.

#include <chrono>
#include <string>
#include <vector>

#include "base/stops.h"
#include "mcp/arguments.h"
#include "mcp/bounded_answer.h"
#include "mcp/run_folders.h"

namespace sluice::mcp {

// The longest that a call may take; `timeout_ms` asks for less.
inline constexpr std::chrono::milliseconds kCallTimeMost{10'000};

// What a call has besides its arguments.
struct Call {
  const RunFolders& runs;
  const std::string& who;  // "mcp:CLIENT", as a run records it
  Stops stops;             // its time is over
  std::size_t bytes_max = kAnswerBytesDefault;
};

enum class Effect : std::uint8_t {
  reads,
  changes_run,  // of a live run; listed and called only where writing is allowed
};

struct Tool {
  const char* name;
  Effect effect;
  const char* description;
  std::vector<Parameter> parameters;
  Result<Answered> (*answer)(const Arguments& arguments, const Call& call);
};

}  // namespace sluice::mcp
