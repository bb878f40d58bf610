#pragma once
// Exit codes of the command: 0 done; 1 the run failed; 2 usage or configuration; 3 a --fail-if
// tripped, or with --fail a --when held; 4 a --fail-if was not judged, since the runs cannot be
// compared; 5 a change was taken back by its --revert-if.
//
// Thread contract: main thread.

#include <cstdio>

#include "base/escaped_text.h"
#include "base/status.h"
#include "cli/output.h"

namespace sluice::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kTripped = 3;
inline constexpr int kIncomparable = 4;
inline constexpr int kTakenBack = 5;

inline int exit_code_of(const Error& error) {
  switch (error.code()) {
    case ErrorCode::config:
    case ErrorCode::not_found:
    case ErrorCode::memory:
    case ErrorCode::unsupported:
      return kUsage;
    default:
      return kFailed;
  }
}

// A run database that cannot be read is a wrong argument, whatever is wrong with it and wherever in
// it that was found.
inline Error wrong_database(const Error& error) {
  return error.code() == ErrorCode::corrupt ? Error(ErrorCode::config, error.message()) : error;
}

template <typename T>
Result<T> of_database(Result<T> result) {
  if (!result.ok()) return wrong_database(result.error());
  return result;
}

// Says the error on stderr and gives its exit code.
inline int report_error(const Error& error) {
  flush_lines();
  // An error of memory has the memory plan, which has a line for each part and no name in it.
  const auto line_feeds = error.code() == ErrorCode::memory ? LineFeeds::keep : LineFeeds::escape;
  std::fprintf(stderr, "sluice: error: %s\n",
               escaped_for_terminal(error.message(), line_feeds).c_str());
  return exit_code_of(error);
}

}  // namespace sluice::cli
