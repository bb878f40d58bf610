#pragma once
// How a process finds out whether it is one of several ranks, and gets its communicator.
//
// A launcher (mpirun, a cluster's own) says so in the environment. Without one there is one rank
// and MPI is not touched: the same seam, every call a copy. A program built without MPI has this
// header too, and refuses to be one of several ranks in words.
//
// Thread contract: the main thread, once.

#include <memory>

#include "core/collective/communicator.h"

namespace sluice::collective {

// Whether MPI is used. by_launcher: where a launcher started this process.
enum class UseMpi : std::uint8_t { by_launcher, always, never };

// The variable that says that a launcher started this process; null: none did.
const char* launcher_variable();

// Errors: ErrorCode::unsupported where MPI is wanted and this program was built without it;
// ErrorCode::config where srun has started several tasks without PMIx; what MPI says.
Result<std::unique_ptr<Communicator>> open_ranks(const CommunicatorOptions& options,
                                                 UseMpi use_mpi = UseMpi::by_launcher);

}  // namespace sluice::collective
