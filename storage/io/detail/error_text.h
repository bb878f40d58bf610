#pragma once
// Errors of the kernel in words: name, meaning, and what to do where there is something to do.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::io::detail {

std::string errno_text(int error_number);  // "ENOSPC (No space left on device)"

ErrorCode errno_code(int error_number);

// "; free space or choose another state_dir", or empty where there is no advice to give.
std::string_view errno_advice(int error_number);

// "PATH: cannot ACTION: ENOENT (No such file or directory)" with its advice.
Error file_error(std::string_view path, std::string_view action, int error_number);

}  // namespace sluice::io::detail
