#pragma once
// Operating errors: what can go wrong without the program being wrong. Every function that can fail
// returns Result<T> or Status, and the message says what was asked, what came, and what to do.
// Programmer errors are CHECKs (base/check.h).
//
// Thread contract: plain values.

#include <fmt/format.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace sluice {

enum class ErrorCode {
  config,       // what the user wrote is wrong: exit code 2
  not_found,    // a file or folder that was named is not there: exit code 2
  busy,         // somebody else holds it
  unsupported,  // this machine lacks it, or another version wrote it
  memory,       // it does not fit under the cap that was given: exit code 2
  io,           // the kernel or the device failed an operation
  no_space,     // the file system is full
  corrupt,      // bytes are not what was written: cut, foreign or flipped
  cancelled,    // stopped because something else failed or the user asked
  diverged,     // training came to numbers that are not finite, or changes no weight any more
  internal,     // a library failed in a way that has no better name
};

class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}
  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same error with a sentence in front: `context: message`.
  Error with_context(std::string_view context) const {
    return Error(code_, fmt::format("{}: {}", context, message_));
  }

 private:
  ErrorCode code_;
  std::string message_;
};

template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using Base = tl::expected<T, Error>;
  using Base::Base;
  Result(Error error) : Base(tl::unexpect, std::move(error)) {}
  bool ok() const { return this->has_value(); }
};

using Status = Result<void>;

inline Status ok_status() { return Status(); }

template <typename... Args>
Error make_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Error(code, fmt::format(format, std::forward<Args>(args)...));
}

#define SLUICE_CONCAT_INNER(a, b) a##b
#define SLUICE_CONCAT(a, b) SLUICE_CONCAT_INNER(a, b)

// Leaves the function with the error, if there is one. The CO_ forms are for coroutines; there the
// awaited value must already be in a variable, since g++ 12 mishandles temporaries around co_await.
#define RETURN_IF_ERROR(expression)                                 \
  do {                                                              \
    if (auto status_or_error = (expression); !status_or_error.ok()) \
      return std::move(status_or_error).error();                    \
  } while (false)

#define ASSIGN_OR_RETURN(declaration, expression) \
  ASSIGN_OR_RETURN_INNER(SLUICE_CONCAT(result_, __LINE__), declaration, expression)
#define ASSIGN_OR_RETURN_INNER(result, declaration, expression) \
  auto result = (expression);                                   \
  if (!result.ok()) return std::move(result).error();           \
  declaration = std::move(*result)

#define CO_RETURN_IF_ERROR(variable)                             \
  do {                                                           \
    if (!(variable).ok()) co_return std::move(variable).error(); \
  } while (false)

}  // namespace sluice
