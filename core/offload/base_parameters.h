#pragma once
// The base weights of adapters where they lie on the drives (docs/lora.md): behind the trained
// parameters, in the same files, written when the offload is made and only read from then on. Layer
// by layer they come as trained parameters do, through a window of their own.
//
// Thread contract: the schedule's thread; `fill` is called on workers, one subgroup at a time each.

#include <cstdint>

#include "base/stops.h"
#include "core/offload/fill_initial.h"
#include "core/offload/parameter_carrier.h"

namespace sluice::offload {

class BaseParameters {
 public:
  struct Parts {  // all outlive it
    runtime::Runtime& runtime;
    const BaseCut& cut;
    const OffloadOptions& options;
    const HostKernels& kernels;
    const Drives& drives;
    BufferPool& bounces;
    ParameterSpan parameters;  // addresses of all of them; empty: no payload
  };
  // `begin_bytes`: where they begin in each device's file.
  BaseParameters(const Parts& parts, const IdVector<DeviceId, std::int64_t>& begin_bytes);

  // All of them to the drives, as `fill` says of variable 0; ends early if `stops` says so.
  runtime::Task<Status> write(const FillInitial& fill, const Stops& stops);
  ParameterCarrier& carrier() { return carrier_; }
  std::int64_t layer_bytes(LayerId layer) const {
    return parts_.cut.layout.layer(layer).count * bytes_of(parts_.options.parameter_kind);
  }

 private:
  runtime::Task<Status> write_on(DeviceId device, const FillInitial& fill, const Stops& stops);
  runtime::Task<Status> write_subgroup(SubgroupId subgroup, const FillInitial& fill,
                                       const Stops& stops);
  DeviceId device_of(SubgroupId subgroup) const {
    return parts_.cut.device_map[static_cast<std::size_t>(index_of(subgroup))];
  }

  Parts parts_;
  ParameterArrival arrival_;  // nothing updates them: they are up all along
  ParameterStore store_;
  ParameterCarrier carrier_;
};

// A layer's trained parameters and its base weights together.
class WithBase final : public ParameterSource {
 public:
  WithBase(ParameterSource& trained, ParameterSource& base) : trained_(trained), base_(base) {}

  void begin_pass(Pass pass) override;
  runtime::Task<Status> bring(LayerId layer) override;
  void done(LayerId layer) override;
  runtime::Task<Status> finish_pass() override;
  bool comes_ahead() const override { return true; }
  TimeNs completed_ns() const override { return trained_.completed_ns(); }

 private:
  ParameterSource& trained_;
  ParameterSource& base_;
};

}  // namespace sluice::offload
