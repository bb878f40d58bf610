#pragma once
// Kernels of the host's processor as operations: their cost on its engines, and their work where
// there is a payload. Without one the work is left out, so whoever asks for a kernel need not know.
//
// Thread contract: makes operations for the schedule's thread; the work runs on a worker.

#include "core/csd/device_memory.h"
#include "core/platform/platform.h"
#include "core/runtime/operation.h"

namespace sluice::offload {

class HostKernels {
 public:
  HostKernels(runtime::Runtime& runtime, const platform::Platform& platform, csd::Payload payload)
      : runtime_(runtime), platform_(platform), payload_(payload) {}

  // A pass over `elements` of gradients or parameters, at the host's rate "stage".
  runtime::Operation stage(const runtime::OperationLabel& label, std::int64_t elements,
                           const runtime::InlineFunction& work) const;
  // The selection of the largest of `elements`, on the engine that compresses.
  runtime::Operation compress(const runtime::OperationLabel& label, std::int64_t elements,
                              const runtime::InlineFunction& work) const;
  // Anything else.
  runtime::Operation kernel(const runtime::OperationLabel& label, const runtime::Cost& cost,
                            const runtime::InlineFunction& work) const;

  const platform::Platform& platform() const { return platform_; }
  runtime::Runtime& runtime() const { return runtime_; }

 private:
  runtime::Operation rated(const runtime::OperationLabel& label, platform::EngineId engine,
                           const std::string& rate, std::int64_t elements,
                           const runtime::InlineFunction& work) const;

  runtime::Runtime& runtime_;
  const platform::Platform& platform_;
  csd::Payload payload_;
};

}  // namespace sluice::offload
