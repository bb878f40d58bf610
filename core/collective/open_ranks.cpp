#include "core/collective/open_ranks.h"

#include <cstdlib>
#include <string_view>

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

namespace {

// Without PMIx srun tells its tasks nothing of one another, and each would be the only rank.
Status check_srun() {
  const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  if (tasks == nullptr || std::string_view(tasks) == "1") return ok_status();
  return make_error(ErrorCode::config,
                    "srun has started {} tasks and has told them nothing of one another: give it "
                    "--mpi=pmix (`srun --mpi=list` says whether this Slurm has it)",
                    tasks);
}

}  // namespace

Result<std::unique_ptr<Communicator>> open_ranks(const CommunicatorOptions& options,
                                                 UseMpi use_mpi) {
  const bool is_launched = use_mpi == UseMpi::by_launcher && launcher_variable() != nullptr;
  if (use_mpi == UseMpi::always || is_launched) {
    return Communicator::open(open_mpi_transport, options);
  }
  if (use_mpi == UseMpi::by_launcher) RETURN_IF_ERROR(check_srun());
  return Communicator::open(
      []() -> Result<std::unique_ptr<Transport>> {
        return ThreadWorld::make({.rank_count = 1})->transport(0);
      },
      options);
}

}  // namespace sluice::collective
