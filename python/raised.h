#pragma once
// Errors of Sluice's as Python sees them.
//
// Thread contract: whoever raises has the interpreter's lock.

#include <type_traits>
#include <utility>

#include "base/status.h"

namespace sluice::python {

// Leaves C++ as the exception class that the package names (sluice.Error).
struct Raised {
  Error error;
};

template <typename T>
T value_or_raise(Result<T> result) {
  if (!result.ok()) throw Raised{result.error()};
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace sluice::python
