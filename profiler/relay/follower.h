#pragma once
// This end of a followed run: starts the command whose output is the run, writes what comes into a
// copy, and starts it again where the line is cut. The copy says how far it is, so that each
// connection goes on where the one before ended.
//
// Thread contract: a free function; blocks its thread, in which `tell` is called.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/stops.h"
#include "profiler/relay/line_process.h"

namespace sluice::relay {

enum class LineState : std::uint8_t {
  connecting,  // nothing has come yet
  following,
  cut,  // it will be tried again
};

struct FollowState {
  LineState line = LineState::connecting;
  bool has_copy = false;        // there is a file to open
  bool is_live = false;         // the run was being recorded when the last turn was read
  std::int64_t spans = 0;       // that the copy has
  std::int64_t spans_left = 0;  // that the other end still has to send
  std::chrono::steady_clock::time_point heard_at = {};  // since when nothing came
  std::string why = {};                                 // cut: the reason
};

inline constexpr std::int64_t kCopyBytesMax = 16'000'000'000;

struct FollowOptions {
  std::vector<std::string> command = {};
  std::string copy = {};                        // the database to write
  std::int64_t size_bytes_max = kCopyBytesMax;  // of the copy
  bool replaces_others = false;                 // also a copy of another recording
  bool ends_with_run = true;                    // else until `stops` says so
  ErrorOutput errors = ErrorOutput::shown;
  std::chrono::milliseconds first_pause{500};  // before a second attempt; each is twice as long
  std::chrono::milliseconds longest_pause{30'000};
  Stops stops = {};
  std::function<void(const FollowState&)> tell = [](const FollowState&) {};
};

// Until the run has ended and all of it is here, or `stops` says so: neither is an error, and both
// leave a sound file. Errors: the command cannot reach a run at all (config), the far end's own
// (with its words), what comes is no run or none of this version (corrupt, unsupported), and those
// of rundb::CopyWriter.
Status follow_run(const FollowOptions& options);

}  // namespace sluice::relay
