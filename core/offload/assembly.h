#pragma once
// The offload of a run and everything that belongs to it, put together in one place for a training
// run, a simulation and the tests of the schedule. Two steps, because a run takes its memory before
// it touches a file:
//
//   take(plan, ...)   host memory, the devices with their own, buffer sets
//   attach(...)       the state and the scratch files; the offload is ready then
//
// Thread contract: the schedule's thread. Nothing of it is under way when it goes.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/parameter_span.h"
#include "core/offload/residual_file.h"
#include "core/offload/update_sites.h"

namespace sluice::csd {
class DeviceFactory;
}
namespace sluice::io {
enum class Caching;
}
namespace sluice::runtime {
class Runtime;
}
namespace sluice::state {
class Layout;
class StateStore;
}  // namespace sluice::state

namespace sluice::offload {

struct AssemblyPlan;
class Offload;
class OffloadMemory;

class Assembly {
 public:
  ~Assembly();
  Assembly(const Assembly&) = delete;
  Assembly& operator=(const Assembly&) = delete;

  // `parameters`: of the whole model; empty without payload, and so is `base`, of a plan that has
  // one. The factory makes the devices of method=csd.
  // Errors: ErrorCode::memory where it does not fit; those of the factory.
  static Result<std::unique_ptr<Assembly>> take(const AssemblyPlan& plan, runtime::Runtime& runtime,
                                                csd::DeviceFactory& factory,
                                                ParameterSpan parameters, ParameterSpan base = {});

  // With payload: the state lies in `store`; scratch files are made beside its files.
  Status attach(state::StateStore& store, io::Caching caching);
  // Without.
  void attach(state::Layout& layout);

  Offload& offload();
  OffloadMemory& memory();
  // The residual of error feedback, where the host selects.
  ResidualPlace residual_in_memory();
  const UpdateSites& sites() const;
  Drives& drives();
  const AssemblyPlan& plan() const;
  // Between two steps; the other options stay as they are.
  void set_prefetch(bool prefetch);
  // Host and device memory that transfers use, for registration with the I/O engine.
  std::vector<std::span<std::byte>> transfer_regions();

 private:
  struct Parts;

  explicit Assembly(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace sluice::offload
