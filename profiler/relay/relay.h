#pragma once
// The far end of a followed run: reads a run database, live or finished, and sends what a copy has
// not. It reads that file and nothing else, writes nowhere but to `out`, and listens on nothing.
//
// Thread contract: one thread at a time; blocks.

#include <chrono>
#include <string>

#include "base/status.h"
#include "base/stops.h"

namespace sluice::relay {

struct RelayOptions {
  // Between two looks at a file in which nothing was new. The recorder writes every 100 ms while
  // somebody watches.
  std::chrono::milliseconds pause{100};
  // At most between two turns, so that the other end can tell a quiet run from a dead line.
  std::chrono::milliseconds sign_of_life{1000};
};

// Until the other end closes `in`, or nobody reads `out` any more, which are no errors. Errors:
// those of rundb::Reader, which the other end is told, too.
Status serve_relay(const std::string& database, int in, int out, RelayOptions options = {});

}  // namespace sluice::relay
