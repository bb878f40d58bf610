#pragma once
// The wrapper that a test puts around a run's I/O engine, to let requests fail.
//
// Thread contract: the schedule's thread.

#include <functional>
#include <memory>

namespace sluice::io {
class IoEngine;
}

namespace sluice::session {

// Empty: the engine as it is.
using WrapEngine = std::function<std::unique_ptr<io::IoEngine>(std::unique_ptr<io::IoEngine>)>;

}  // namespace sluice::session
