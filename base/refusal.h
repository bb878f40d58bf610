#pragma once
// Memory and threads that the system refuses, where the standard library says so by an exception.
// Memory that is planned ahead is asked for with a Result (io::PageAlignedBuffer); the rest ends at
// one of two borders: around what a program does, and, for a thread or a coroutine that no
// exception may leave, where the program would be aborted.
//
// Thread contract: free functions, any thread.

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"

namespace sluice {

// A sentence with the limit that counted and what to do; nothing if it is another exception.
std::optional<std::string> refusal_text(const std::exception& exception);

// `function` returns a Status or a Result; a refusal inside comes out as its error. The run fails,
// and not what was asked for, so it is no ErrorCode::memory.
template <typename Function>
auto at_refusal_border(Function&& function) -> decltype(function()) {
  try {
    return std::forward<Function>(function)();
  } catch (const std::exception& exception) {
    std::optional<std::string> text = refusal_text(exception);
    if (!text) throw;
    return Error(ErrorCode::internal, *std::move(text));
  }
}

// From now on a refusal that nobody catches is said on stderr, after `speaker`
// ("sluice: error: "), and the program ends with 1; every other end is as before.
// `speaker` is kept.
void say_uncaught_refusals(const char* speaker);

}  // namespace sluice
