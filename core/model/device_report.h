#pragma once
// The devices that libtorch can compute on here, for `sluice doctor`.
//
// Thread contract: plain data.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::model {

struct DeviceReport {
  std::string torch_version;      // that this was compiled against
  bool has_cuda_build = false;    // whether libtorch's CUDA half is loaded and registered
  std::int32_t cuda_version = 0;  // of the runtime beside it: 13000 is 13.0; 0: not known

  struct Gpu {
    std::int64_t free_bytes = 0;
    std::int64_t memory_bytes = 0;
  };
  std::vector<Gpu> gpus;
  std::string problem;  // that the GPUs did not answer; empty: none
  // Ordered pairs of GPUs that reach each other's memory; unset where nobody could be asked.
  std::optional<int> peer_pairs;

  std::string soft_library;  // where the software accelerator is looked for
  std::string soft_problem;  // why it cannot be loaded; empty: it can
};

}  // namespace sluice::model
