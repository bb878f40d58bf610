#pragma once
// Ranks that are processes of MPI (docs/collective.md). The folder's only way to MPI; without it
// the build has mpi_absent.cpp in its place.
//
// Thread contract: called once in a process, on the thread that makes progress: MPI is initialized,
// used and finalized there (MPI_THREAD_FUNNELED).

#include <memory>

#include "core/collective/transport.h"

namespace sluice::collective {

// Errors: ErrorCode::unsupported in a program built without MPI; ErrorCode::internal for what MPI
// says.
Result<std::unique_ptr<Transport>> open_mpi_transport();

}  // namespace sluice::collective
