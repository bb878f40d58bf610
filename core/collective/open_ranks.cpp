#include "core/collective/open_ranks.h"

#include <cstdlib>

#include "core/collective/mpi_ranks.h"
#include "core/collective/thread_ranks.h"

namespace sluice::collective {

const char* launcher_variable() {
  // Open MPI's mpirun and PRRTE; MPICH's and Slurm's PMI; PMIx.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"}) {
    if (std::getenv(name) != nullptr) return name;
  }
  return nullptr;
}

Result<std::unique_ptr<Communicator>> open_ranks(const CommunicatorOptions& options,
                                                 UseMpi use_mpi) {
  const bool is_launched = use_mpi == UseMpi::by_launcher && launcher_variable() != nullptr;
  if (use_mpi == UseMpi::always || is_launched) {
    return Communicator::open(open_mpi_transport, options);
  }
  return Communicator::open(
      []() -> Result<std::unique_ptr<Transport>> {
        return ThreadWorld::make({.rank_count = 1})->transport(0);
      },
      options);
}

}  // namespace sluice::collective
