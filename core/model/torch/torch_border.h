#pragma once
// The border at which libtorch's exceptions end: everything that calls libtorch runs inside
// at_torch_border(), and comes out as Status or Result.
//
// Thread contract: the thread that calls into libtorch.

#include <c10/util/Exception.h>

#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "base/process_limits.h"
#include "base/status.h"

namespace sluice::model {

// libtorch has no type for "out of memory" on the CPU; its allocator says this.
inline Error error_from_torch(std::string_view what, std::string_view message) {
  if (message.find("can't allocate memory") != std::string_view::npos) {
    return make_error(ErrorCode::memory,
                      "{}: libtorch could not get memory, of which this process may have {}; ask "
                      "for a smaller batch or sequence, or for activations = recompute ({})",
                      what, memory_limit_text(), message);
  }
  return make_error(ErrorCode::internal, "{}: libtorch failed: {}", what, message);
}

// A device's allocator has a type for it. The plan has promised that what was asked for fits, so it
// is the run that fails, and not the asking. What libtorch says after the figures is advice on
// settings of its own.
inline Error error_of_device_memory(std::string_view what, std::string_view message) {
  return make_error(ErrorCode::internal,
                    "{}: the device has no memory left; give it more (accelerator_memory), or ask "
                    "for a smaller batch or sequence, or for activations = recompute ({})",
                    what, message.substr(0, message.find(" If reserved but unallocated")));
}

// `function` returns Status or a Result; `what` says what was being done.
template <typename Function>
auto at_torch_border(std::string_view what, Function&& function) -> decltype(function()) {
  try {
    return std::forward<Function>(function)();
  } catch (const c10::OutOfMemoryError& failure) {
    return error_of_device_memory(what, failure.what_without_backtrace());
  } catch (const c10::Error& failure) {
    return error_from_torch(what, failure.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return error_from_torch(what, "can't allocate memory");
  } catch (const std::exception& failure) {
    return error_from_torch(what, failure.what());
  }
}

}  // namespace sluice::model
