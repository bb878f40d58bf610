#include "hls/host/detail/xrt_call.h"

#include <xrt/xrt_kernel.h>

#include <cerrno>

namespace sluice::hls_host {
namespace {

ErrorCode code_of(const std::exception& thrown) {
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr) return ErrorCode::memory;
  const auto* of_system = dynamic_cast<const std::system_error*>(&thrown);
  if (of_system == nullptr) return ErrorCode::io;
  switch (of_system->code().value()) {
    case ENOMEM:
      return ErrorCode::memory;
    case ENOENT:
      return ErrorCode::not_found;
    case EBUSY:
      return ErrorCode::busy;
    case EOPNOTSUPP:
      return ErrorCode::unsupported;
    default:
      return ErrorCode::io;
  }
}

}  // namespace

Error xrt_error(std::string_view what, const std::exception& thrown) {
  const std::string said = thrown.what();
  if (said.find("XILINX_XRT not set") != std::string::npos) {
    return make_error(ErrorCode::unsupported,
                      "{}: XILINX_XRT is not set: source XRT's setup.sh, or let it name the folder "
                      "whose lib has libxrt_core",
                      what);
  }
  return make_error(code_of(thrown), "{}: XRT says: {}", what,
                    said == "std::bad_alloc" ? "out of memory" : said);
}

std::string run_state_text(int state) {
  switch (state) {
    case ERT_CMD_STATE_ERROR:
      return "ended with an error (ERT_CMD_STATE_ERROR): the driver refused the run; `dmesg` says "
             "why";
    case ERT_CMD_STATE_ABORT:
      return "was aborted (ERT_CMD_STATE_ABORT): by a reset of the card, or by another program";
    case ERT_CMD_STATE_TIMEOUT:
      return "took too long (ERT_CMD_STATE_TIMEOUT): the compute unit was reset; `xbutil examine` "
             "says how the card is";
    case ERT_CMD_STATE_NORESPONSE:
      return "got no answer (ERT_CMD_STATE_NORESPONSE): the compute unit hangs and could not be "
             "reset; `xbutil reset` resets the card";
    case ERT_CMD_STATE_SKERROR:
    case ERT_CMD_STATE_SKCRASHED:
      return "ended in a crashed soft kernel (ERT_CMD_STATE_SKCRASHED)";
    default:
      return fmt::format("ended in the state {} of XRT's ert.h", state);
  }
}

}  // namespace sluice::hls_host
