// The folder in a build without MPI: one rank works, and why several do not is said.

#include "core/collective/mpi_ranks.h"

namespace sluice::collective {

Result<std::unique_ptr<Transport>> open_mpi_transport() {
  return make_error(ErrorCode::unsupported,
                    "this program was built without MPI, so it can be no rank among several: "
                    "install it (Debian: libopenmpi-dev, openmpi-bin) and build again, or start "
                    "it without a launcher");
}

}  // namespace sluice::collective
