// Every operator without a kernel of its own: the CPU's kernel, as a job of the current stream, on
// the bytes of the device. Where the outputs' shapes are known beforehand, the call returns at
// once.

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <torch/library.h>

#include <exception>
#include <memory>

#include "soft/accelerator/alias.h"
#include "soft/accelerator/current.h"
#include "soft/accelerator/device_scope.h"
#include "soft/accelerator/placing.h"
#include "soft/accelerator/shapes.h"
#include "soft/accelerator/torch_parts.h"

namespace sluice::soft_accelerator {
namespace {

using torch::jit::Stack;

bool is_written(const c10::Argument& argument) {
  const c10::AliasInfo* const alias = argument.alias_info();
  if (alias == nullptr) return false;
  if (alias->isWrite()) return true;
  for (const c10::AliasInfo& inner : alias->containedTypes())
    if (inner.isWrite()) return true;
  return false;
}

bool is_view(const c10::Argument& returned) {
  return returned.alias_info() != nullptr && !is_written(returned);
}

bool returns_view(const c10::FunctionSchema& schema) {
  for (const c10::Argument& returned : schema.returns())
    if (is_view(returned)) return true;
  return false;
}

// The argument that a return like Tensor(a!) is.
const c10::IValue& written_argument(const c10::FunctionSchema& schema, const Stack& arguments,
                                    const c10::Argument& returned) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* const alias = schema.arguments()[i].alias_info();
    if (alias != nullptr && alias->beforeSets() == returned.alias_info()->beforeSets())
      return arguments[i];
  }
  TORCH_CHECK(false, "software accelerator: ", schema.name(), " returns what is no argument");
}

int device_of_call(const Stack& arguments) {
  int device = -1;
  for (const c10::IValue& value : arguments) {
    for_each_tensor(value, [&](const at::Tensor& tensor) {
      if (device < 0 && is_on_device(tensor)) device = tensor.get_device();
    });
    if (device < 0 && value.isDevice() && value.toDevice().is_privateuseone())
      device = value.toDevice().index();
  }
  return device_or_current(device);
}

// A tensor that was given as room for a result, and is not of its size, becomes that.
void fit_outputs(const c10::FunctionSchema& schema, const Stack& arguments,
                 const std::vector<OutputShape>& shapes) {
  for (std::size_t i = 0; i < schema.returns().size(); ++i) {
    if (!is_written(schema.returns()[i])) continue;
    for (std::size_t k = 0; k < arguments.size(); ++k) {
      const c10::Argument& argument = schema.arguments()[k];
      const bool is_it =
          argument.is_out() && arguments[k].isTensor() &&
          argument.alias_info()->beforeSets() == schema.returns()[i].alias_info()->beforeSets();
      if (is_it && arguments[k].toTensor().sizes() != shapes[i].sizes)
        arguments[k].toTensor().resize_(shapes[i].sizes);
    }
  }
}

// The kernel's own arguments, and what it does to the memory behind them.
struct JobArguments {
  Stack stack = {};
  std::vector<Use> uses = {};
};

at::Tensor job_tensor(const c10::OperatorHandle& op, const at::Tensor& tensor, int device,
                      Aliases& aliases) {
  if (is_on_device(tensor)) {
    TORCH_CHECK(tensor.get_device() == device, "software accelerator: ", op.schema().name(),
                " was given tensors of soft:", device, " and of soft:", tensor.get_device());
    return aliases.of(tensor);
  }
  TORCH_CHECK(tensor.device().is_cpu() && tensor.dim() == 0,
              "software accelerator: ", op.schema().name(), " was given a tensor on ",
              tensor.device(), ", which is not soft:", device);
  at::Tensor scalar = tensor.detach().clone();
  mark_as_number(tensor, scalar);
  return scalar;
}

JobArguments job_arguments(const c10::OperatorHandle& op, const Stack& arguments, int device,
                           Aliases& aliases) {
  JobArguments job;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const AccessKind kind =
        is_written(op.schema().arguments()[i]) ? AccessKind::write : AccessKind::read;
    for_each_tensor(arguments[i], [&](const at::Tensor& tensor) {
      if (is_on_device(tensor)) add_use(job.uses, tensor, kind);
    });
    job.stack.push_back(arguments[i].isDevice()
                            ? c10::IValue(c10::Device(at::kCPU))
                            : with_tensors(arguments[i], [&](const at::Tensor& tensor) {
                                return job_tensor(op, tensor, device, aliases);
                              }));
  }
  return job;
}

void call_cpu_kernel(const c10::OperatorHandle& op, Stack& stack) {
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below;
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
}

// ---- outputs of known shapes

// Returns whether it had to be moved.
bool put(const at::Tensor& target, const at::Tensor& result) {
  TORCH_CHECK(result.defined() && result.sizes() == target.sizes() &&
                  result.scalar_type() == target.scalar_type(),
              "its output is not of the shape that was foreseen");
  const bool is_there = result.data_ptr() == target.data_ptr();
  if (target.numel() == 0 || (is_there && result.strides() == target.strides())) return false;
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below;
  target.copy_(is_there ? result.clone() : result);
  return true;
}

// `targets` are aliases of the outputs, by return; undefined where a return is no new tensor.
void run_kernel(const c10::OperatorHandle& op, Stack& stack,
                const std::vector<at::Tensor>& targets) {
  std::vector<Place> places;
  for (const at::Tensor& target : targets)
    if (target.defined() && target.numel() > 0)
      places.push_back({target.data_ptr(), target.storage().nbytes()});
  {
    const Placing placing(std::move(places));
    call_cpu_kernel(op, stack);
  }
  std::int64_t all = 0, moved = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!targets[i].defined()) continue;
    ++all;
    moved += put(targets[i], stack[i].toTensor());
  }
  if (all > 0) Accelerator::instance().count_outputs(all, moved);
}

at::Tensor make_output(const OutputShape& shape, int device) {
  if (!shape.is_defined) return {};
  const c10::Device place(c10::kPrivateUse1, static_cast<c10::DeviceIndex>(device));
  return at::empty_strided(shape.sizes, shape.strides, at::TensorOptions(place).dtype(shape.dtype));
}

Stack run_ahead(const c10::OperatorHandle& op, const Stack& arguments, int device,
                const std::vector<OutputShape>& shapes) {
  const auto& returns = op.schema().returns();
  fit_outputs(op.schema(), arguments, shapes);
  Aliases aliases;
  JobArguments job = job_arguments(op, arguments, device, aliases);
  Stack results;
  std::vector<at::Tensor> targets(returns.size());
  for (std::size_t i = 0; i < returns.size(); ++i) {
    if (is_written(returns[i])) {
      results.push_back(written_argument(op.schema(), arguments, returns[i]));
      continue;
    }
    const at::Tensor output = make_output(shapes[i], device);
    if (output.defined()) targets[i] = aliases.of(output);
    add_use(job.uses, output, AccessKind::write);
    results.emplace_back(output);
  }
  auto stack = std::make_shared<Stack>(std::move(job.stack));
  Accelerator::instance().submit(
      device, current().stream_of(device),
      {.name = op.operator_name().name.c_str(),
       .run = [op, stack, targets = std::move(targets)] { run_kernel(op, *stack, targets); }},
      job.uses);
  return results;
}

// ---- outputs of shapes that only the kernel knows

// The kernel's exception is the caller's, and not the next synchronize's.
Stack run_and_wait(const c10::OperatorHandle& op, JobArguments job, int device) {
  struct Outcome {
    Stack stack;
    std::exception_ptr failure;
  };
  auto outcome = std::make_shared<Outcome>();
  outcome->stack = std::move(job.stack);
  Accelerator& accelerator = Accelerator::instance();
  accelerator.count_blocking_job(op.operator_name().name.c_str());
  accelerator.synchronize(accelerator.submit(device, current().stream_of(device),
                                             {.name = op.operator_name().name.c_str(),
                                              .run =
                                                  [op, outcome] {
                                                    try {
                                                      call_cpu_kernel(op, outcome->stack);
                                                    } catch (...) {
                                                      outcome->failure = std::current_exception();
                                                    }
                                                  }},
                                             job.uses));
  if (outcome->failure) std::rethrow_exception(outcome->failure);
  return std::move(outcome->stack);
}

// A new tensor of the device with what a kernel made on the host.
at::Tensor moved_to_device(const c10::OperatorHandle& op, const at::Tensor& made, int device) {
  const at::Tensor output =
      make_output({true, made.sizes().vec(), made.strides().vec(), made.scalar_type()}, device);
  if (made.numel() == 0) return output;
  std::vector<Use> uses;
  add_use(uses, output, AccessKind::write);
  Accelerator::instance().submit(
      device, current().stream_of(device),
      {.name = op.operator_name().name.c_str(),
       .run = [target = Aliases().of(output), made] { put(target, made); }},
      uses);
  return output;
}

// The kernel gets room on the host for each output, and may make it as large as it likes.
JobArguments with_outputs_on_host(const c10::FunctionSchema& schema, JobArguments job) {
  for (std::size_t i = 0; i < job.stack.size(); ++i)
    if (schema.arguments()[i].is_out() && job.stack[i].isTensor())
      job.stack[i] = at::empty({0}, job.stack[i].toTensor().options());
  return job;
}

void fill_outputs(const c10::FunctionSchema& schema, const Stack& arguments, const Stack& made) {
  for (std::size_t i = 0; i < schema.returns().size(); ++i) {
    if (!is_written(schema.returns()[i]) || !made[i].isTensor()) continue;
    const c10::IValue& argument = written_argument(schema, arguments, schema.returns()[i]);
    const at::Tensor &target = argument.toTensor(), &result = made[i].toTensor();
    if (!is_on_device(target) || Accelerator::instance().is_device_memory(result.data_ptr()))
      continue;
    if (target.sizes() != result.sizes()) target.resize_(result.sizes());
    target.copy_(result);
  }
}

Stack run_blocking(const c10::OperatorHandle& op, const Stack& arguments, int device) {
  const auto& returns = op.schema().returns();
  Aliases aliases;
  JobArguments job = job_arguments(op, arguments, device, aliases);
  const Stack made = run_and_wait(op, with_outputs_on_host(op.schema(), std::move(job)), device);
  fill_outputs(op.schema(), arguments, made);
  Stack results;
  for (std::size_t i = 0; i < returns.size(); ++i)
    results.push_back(is_written(returns[i]) ? written_argument(op.schema(), arguments, returns[i])
                                             : with_tensors(made[i], [&](const at::Tensor& tensor) {
                                                 return moved_to_device(op, tensor, device);
                                               }));
  return results;
}

// ---- views: the CPU's kernel reckons with sizes only, so it needs no job

Stack run_view(const c10::OperatorHandle& op, const Stack& arguments, int device) {
  const at::Tensor self = arguments[0].toTensor();
  Aliases aliases;
  Stack stack = job_arguments(op, arguments, device, aliases).stack;
  call_cpu_kernel(op, stack);
  TORCH_CHECK(stack.size() == 1 && stack[0].isTensor(),
              "software accelerator: ", op.schema().name(), " is not supported");
  const at::Tensor& seen = stack[0].toTensor();
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(self.storage()), self.key_set(), seen.dtype());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(seen.sizes(), seen.strides(),
                                                    seen.storage_offset());
  return {view};
}

void run_boxed(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, Stack* stack) {
  const std::size_t count = op.schema().arguments().size();
  const Stack arguments(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  const int device = device_of_call(arguments);
  const DeviceScope scope(device);
  Stack results;
  if (returns_view(op.schema())) {
    results = run_view(op, arguments, device);
  } else if (const auto shapes = output_shapes(op, arguments)) {
    results = run_ahead(op, arguments, device, *shapes);
  } else {
    results = run_blocking(op, arguments, device);
  }
  torch::jit::drop(*stack, count);
  for (c10::IValue& result : results) stack->push_back(std::move(result));
}

// An operator that has a kernel for the CPU and one of other operators would take the latter on the
// device, whose bits are not those of the CPU.
void prefer_cpu_kernels(torch::Library& library) {
  using c10::DispatchKey;
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    const auto op = dispatcher.findSchema(name);
    const bool is_composite =
        op && (op->hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
               op->hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd));
    if (!is_composite || !op->hasKernelForDispatchKey(DispatchKey::CPU) ||
        op->hasKernelForDispatchKey(DispatchKey::PrivateUse1) || returns_view(op->schema()))
      continue;
    const std::string full =
        name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
    library.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&run_boxed>());
  }
}

}  // namespace

void register_fallback() {
  static auto* const all = new torch::Library(torch::Library::IMPL, "_",
                                              c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  all->fallback(torch::CppFunction::makeFromBoxedFunction<&run_boxed>());
  static auto* const aten = new torch::Library(torch::Library::IMPL, "aten",
                                               c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  prefer_cpu_kernels(*aten);
}

}  // namespace sluice::soft_accelerator
