#include "core/offload/host_kernels.h"

#include "core/runtime/kernel_cost.h"

namespace sluice::offload {

runtime::Operation HostKernels::kernel(const runtime::OperationLabel& label,
                                       const runtime::Cost& cost,
                                       const runtime::InlineFunction& work) const {
  runtime::Operation operation;
  operation.runtime = &runtime_;
  operation.label = label;
  operation.cost = cost;
  if (payload_ == csd::Payload::none) return operation;
  operation.work.kind = runtime::WorkKind::function;
  operation.work.function = work;
  return operation;
}

runtime::Operation HostKernels::rated(const runtime::OperationLabel& label,
                                      platform::EngineId engine, const std::string& rate,
                                      std::int64_t elements,
                                      const runtime::InlineFunction& work) const {
  const runtime::Cost cost =
      runtime::kernel_cost(engine, platform_.engine(engine), rate, static_cast<double>(elements));
  return kernel(label, cost, work);
}

runtime::Operation HostKernels::stage(const runtime::OperationLabel& label, std::int64_t elements,
                                      const runtime::InlineFunction& work) const {
  return rated(label, platform_.host_engine, "stage", elements, work);
}

runtime::Operation HostKernels::compress(const runtime::OperationLabel& label,
                                         std::int64_t elements,
                                         const runtime::InlineFunction& work) const {
  return rated(label, platform_.compressing_engine(), "compress", elements, work);
}

}  // namespace sluice::offload
