#pragma once
// The two engines behind open_io_engine(), which has checked the options.

#include <memory>

#include "storage/io/io_engine.h"

namespace sluice::io::detail {

Result<std::unique_ptr<IoEngine>> open_uring_engine(const IoEngineOptions& options);
Result<std::unique_ptr<IoEngine>> open_posix_engine(const IoEngineOptions& options);

}  // namespace sluice::io::detail
