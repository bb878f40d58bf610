#pragma once
// What MPI was really asked to move by this process, counted at its profiling interface (PMPI):
// independent of the counters of core/collective, which follow from calls.
//
// Thread contract: any thread; exact once the calls have ended.

#include <cstdint>

namespace sluice::collective {

struct MpiByteCounts {
  std::int64_t sent_bytes = 0;
  std::int64_t received_bytes = 0;
  std::int64_t note_bytes = 0;  // sent from rank to rank
};
MpiByteCounts mpi_byte_counts();

}  // namespace sluice::collective
