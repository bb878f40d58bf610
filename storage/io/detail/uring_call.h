#pragma once
// Calls of liburing return a negative errno. The macro leaves the function with the text of the
// call, its place and the decoded errno.

#include "base/status.h"
#include "storage/io/detail/error_text.h"

namespace sluice::io::detail {

inline Error uring_error(const char* call, const char* file, int line, int error_number) {
  return make_error(errno_code(error_number), "{} failed with {} [{}:{}]", call,
                    errno_text(error_number), file, line);
}

#define URING_OR_RETURN(call)                                                             \
  do {                                                                                    \
    if (const int uring_result = (call); uring_result < 0)                                \
      return ::sluice::io::detail::uring_error(#call, __FILE__, __LINE__, -uring_result); \
  } while (false)

}  // namespace sluice::io::detail
