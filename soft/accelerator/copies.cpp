// Copies between host and device, within a device, and between devices. A copy to or from the host
// is asynchronous where that is asked for and the host's memory is pinned, and else waits.

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_copy_from.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <torch/library.h>

#include <memory>

#include "soft/accelerator/alias.h"
#include "soft/accelerator/device_scope.h"
#include "soft/accelerator/torch_parts.h"

namespace sluice::soft_accelerator {
namespace {

enum class Waiting : std::uint8_t { asked_for, not_asked_for };

std::vector<Use> uses_of(const at::Tensor& from, const at::Tensor& to) {
  std::vector<Use> uses;
  add_use(uses, from, AccessKind::read);
  add_use(uses, to, AccessKind::write);
  return uses;
}

void copy_values(const at::Tensor& from, const at::Tensor& to) {
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below;
  to.copy_(from);
}

// The host's memory stays until the copy is over; the device's is held by nobody.
void copy_over_link(const at::Tensor& from, const at::Tensor& to, Waiting waiting) {
  const bool is_in = is_on_device(to);
  const at::Tensor &host = is_in ? from : to, &on_device = is_in ? to : from;
  TORCH_CHECK(host.device().is_cpu(), "software accelerator: no copies to or from ", host.device());
  Accelerator& accelerator = Accelerator::instance();
  const bool is_pinned = accelerator.is_pinned(host.storage().data());
  Aliases aliases;
  const int device = on_device.get_device();
  const Event over = accelerator.submit_copy(
      device, current().stream_of(device), is_in ? Direction::in : Direction::out,
      static_cast<std::int64_t>(from.nbytes()),
      [from_alias = aliases.of(from), to_alias = aliases.of(to), held = host.storage()] {
        copy_values(from_alias, to_alias);
      },
      uses_of(from, to));
  if (!is_pinned || waiting == Waiting::asked_for) accelerator.synchronize(over);
}

void copy_on_device(const at::Tensor& from, const at::Tensor& to) {
  Aliases aliases;
  const int device = to.get_device();
  Accelerator::instance().submit(
      device, current().stream_of(device),
      {.name = "aten::copy_",
       .run = [from_alias = aliases.of(from),
               to_alias = aliases.of(to)] { copy_values(from_alias, to_alias); }},
      uses_of(from, to));
}

// In the order of both devices' current streams, as CUDA does it.
void copy_between_devices(const at::Tensor& from, const at::Tensor& to) {
  Accelerator& accelerator = Accelerator::instance();
  const int source = from.get_device(), target = to.get_device();
  Event ready, over;
  accelerator.record(ready, source, current().stream_of(source));
  accelerator.block(ready, target, current().stream_of(target));
  copy_on_device(from, to);
  accelerator.record(over, target, current().stream_of(target));
  accelerator.block(over, source, current().stream_of(source));
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& to, bool is_non_blocking) {
  if (to.numel() == 0) return to;
  const at::Tensor from = self.sizes() == to.sizes() ? self : self.expand_as(to);
  if (is_on_device(from) && is_on_device(to)) {
    from.get_device() == to.get_device() ? copy_on_device(from, to)
                                         : copy_between_devices(from, to);
  } else {
    copy_over_link(from, to, is_non_blocking ? Waiting::not_asked_for : Waiting::asked_for);
  }
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& to) {
  to.resize_(self.sizes());
  return copy_from(self, to, false);
}

at::Scalar local_scalar(const at::Tensor& self) {
  Accelerator& accelerator = Accelerator::instance();
  const int device = self.get_device();
  auto value = std::make_shared<at::Scalar>();
  std::vector<Use> uses;
  add_use(uses, self, AccessKind::read);
  accelerator.synchronize(accelerator.submit_copy(
      device, current().stream_of(device), Direction::out,
      static_cast<std::int64_t>(self.itemsize()),
      [value, alias = Aliases().of(self)] { *value = at::_local_scalar_dense(alias); }, uses));
  return *value;
}

}  // namespace

void register_copies() {
  static auto* const aten = new torch::Library(torch::Library::IMPL, "aten",
                                               c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  aten->impl("_copy_from", TORCH_FN(copy_from));
  aten->impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  aten->impl("_local_scalar_dense", TORCH_FN(local_scalar));
}

}  // namespace sluice::soft_accelerator
