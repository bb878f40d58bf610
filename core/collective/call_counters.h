#pragma once
// The traffic that a rank asked for, by group and kind: exact, from the calls alone, with p ranks
// and n elements of e bytes (own: those of its own shard):
//
//   kind            sent                received
//   all_gather      (p-1) own e         (n - own) e
//   reduce_scatter  (n - own) e         (p-1) own e
//   all_reduce      both                both
//   broadcast       (p-1) n e at root   n e elsewhere
//
// Headers, of checks and of agreements, are counted apart. How a library spreads a broadcast is its
// own affair.
//
// Thread contract: plain data.

#include <cstdint>

namespace sluice::collective {

struct CallCounters {
  std::int64_t call_count = 0;
  std::int64_t sent_bytes = 0;
  std::int64_t received_bytes = 0;
  std::int64_t header_bytes = 0;  // sent, and as many received
};

}  // namespace sluice::collective
