#pragma once
// The one border that XRT's exceptions do not cross.
//
// Thread contract: free functions.

#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "base/status.h"

namespace sluice::hls_host {

// "WHAT: what XRT said", and what to do where that is known.
Error xrt_error(std::string_view what, const std::exception& thrown);

// Runs `call`, which calls XRT. `what` is what was to be done, for the message.
template <typename Call>
auto xrt_call(std::string_view what, const Call& call) -> Result<std::invoke_result_t<Call>> {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Call>>) {
      call();
      return {};
    } else {
      return call();
    }
  } catch (const std::exception& thrown) {
    return xrt_error(what, thrown);
  } catch (...) {
    return make_error(ErrorCode::internal, "{}: XRT threw something that is no error", what);
  }
}

// The meaning of the state in which a run ended (ert_cmd_state), and what to do.
std::string run_state_text(int state);

}  // namespace sluice::hls_host
