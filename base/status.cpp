#include "base/status.h"

namespace sluice {

const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::config:
      return "configuration";
    case ErrorCode::not_found:
      return "not found";
    case ErrorCode::busy:
      return "busy";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::memory:
      return "memory";
    case ErrorCode::io:
      return "i/o";
    case ErrorCode::no_space:
      return "no space";
    case ErrorCode::corrupt:
      return "corrupt";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::diverged:
      return "diverged";
    case ErrorCode::internal:
      return "internal";
  }
  return "unknown";
}

}  // namespace sluice
