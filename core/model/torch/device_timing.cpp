#include "core/model/torch/device_timing.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <c10/core/Event.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <array>
#include <cstring>
#include <functional>

#include "base/clock.h"
#include "core/model/torch/compute_threads.h"
#include "core/model/torch/devices.h"
#include "core/model/torch/torch_border.h"

namespace sluice::model {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::array<std::int64_t, 3> kSizes = {kMiB, 16 * kMiB, 64 * kMiB};
constexpr std::int64_t kSmallBytes = 4096;
constexpr std::array<std::int64_t, 3> kSides = {1024, 2048, 4096};
// A larger product is left out where it would take longer; the device is then slow enough that the
// smaller ones say its rate.
constexpr double kProductSecondsMax = 2;

class Stopwatch {
 public:
  double seconds() const { return static_cast<double>(monotonic_now_ns() - start_) / 1e9; }

 private:
  TimeNs start_ = monotonic_now_ns();
};

at::Tensor bytes_over(std::byte* data, std::int64_t size_bytes) {
  return at::from_blob(data, {size_bytes}, at::kByte);
}

class DeviceTimer {
 public:
  DeviceTimer(const OpenedDevice& opened, const DeviceTiming& timing)
      : opened_(opened),
        timing_(timing),
        guard_(opened.device.type()),
        in_(guard_.getNewStream(opened.device)),
        out_(guard_.getNewStream(opened.device)),
        compute_(guard_.getNewStream(opened.device)) {
    name_stream(opened.device, in_.id(), "in");
    name_stream(opened.device, out_.id(), "out");
    name_stream(opened.device, compute_.id(), "compute");
  }

  Result<DeviceTimes> run() {
    DeviceTimes times;
    times.description = opened_.description;
    times.memory_bytes = opened_.memory_bytes;
    times.computes_on_processor = computes_on_processor(opened_.device);
    RETURN_IF_ERROR(take_memory());
    times.small_seconds = small_copies();
    for (const std::int64_t size_bytes : kSizes) {
      times.copies.push_back(copies(size_bytes, pinned_in_, pinned_out_));
      at::Tensor pageable_in = at::full({size_bytes}, 1, at::kByte);
      at::Tensor pageable_out = at::full({size_bytes}, 1, at::kByte);
      times.copies.push_back(copies(size_bytes, pageable_in, pageable_out));
      times.copies.back().is_pinned = false;
    }
    times.both_ways_seconds = both_ways();
    for (const std::int64_t side : kSides) {
      if (!times.products.empty() && times.products.back().seconds.back() * 8 > kProductSecondsMax)
        break;
      times.products.push_back(products(side));
    }
    return times;
  }

 private:
  Status take_memory() {
    constexpr std::int64_t kLargest = kSizes.back();
    ASSIGN_OR_RETURN(in_memory_, opened_.pinned->allocate(kLargest));
    ASSIGN_OR_RETURN(out_memory_, opened_.pinned->allocate(kLargest));
    pinned_in_ = bytes_over(in_memory_.bytes().data(), kLargest);
    pinned_out_ = bytes_over(out_memory_.bytes().data(), kLargest);
    const auto on_device = at::TensorOptions(opened_.device).dtype(at::kByte);
    {
      const c10::StreamGuard in(in_);
      into_ = at::empty({kLargest}, on_device);
      into_.copy_(pinned_in_, /*non_blocking=*/true);
    }
    in_.synchronize();
    {
      const c10::StreamGuard out(out_);
      from_ = at::empty({kLargest}, on_device);
      from_.fill_(1);
    }
    out_.synchronize();
    return ok_status();
  }

  double seconds_on(c10::Stream& stream, const std::function<void()>& launch) {
    const c10::StreamGuard guard(stream);
    const Stopwatch watch;
    launch();
    stream.synchronize();
    return watch.seconds();
  }

  // The first is not counted: a device that sleeps wakes up with it.
  std::vector<double> repeated(c10::Stream& stream, const std::function<void()>& launch) {
    std::vector<double> seconds;
    seconds_on(stream, launch);
    for (int i = 0; i < timing_.repeat_count; ++i) seconds.push_back(seconds_on(stream, launch));
    return seconds;
  }

  CopyTimes copies(std::int64_t size_bytes, const at::Tensor& host_in, const at::Tensor& host_out) {
    CopyTimes times{.size_bytes = size_bytes};
    times.in_seconds = repeated(
        in_, [&] { into_.narrow(0, 0, size_bytes).copy_(host_in.narrow(0, 0, size_bytes), true); });
    times.out_seconds = repeated(out_, [&] {
      host_out.narrow(0, 0, size_bytes).copy_(from_.narrow(0, 0, size_bytes), true);
    });
    return times;
  }

  std::vector<double> small_copies() {
    return repeated(in_, [&] {
      into_.narrow(0, 0, kSmallBytes).copy_(pinned_in_.narrow(0, 0, kSmallBytes), true);
    });
  }

  std::vector<double> both_ways() {
    std::vector<double> seconds;
    for (int i = 0; i < timing_.repeat_count; ++i) {
      const Stopwatch watch;
      {
        const c10::StreamGuard in(in_);
        into_.copy_(pinned_in_, true);
      }
      {
        const c10::StreamGuard out(out_);
        pinned_out_.copy_(from_, true);
      }
      in_.synchronize();
      out_.synchronize();
      seconds.push_back(watch.seconds());
    }
    return seconds;
  }

  ProductTimes products(std::int64_t side) {
    ProductTimes times{.side = side};
    at::Tensor a;
    at::Tensor b;
    const auto options = at::TensorOptions(opened_.device).dtype(at::kBFloat16);
    seconds_on(compute_, [&] {
      a = at::full({side, side}, 0.5, options);
      b = at::full({side, side}, 0.25, options);
    });
    times.seconds = repeated(compute_, [&] { at::matmul(a, b); });
    return times;
  }

  const OpenedDevice& opened_;
  const DeviceTiming& timing_;
  c10::impl::VirtualGuardImpl guard_;
  c10::Stream in_;
  c10::Stream out_;
  c10::Stream compute_;
  io::PinnedBuffer in_memory_;
  io::PinnedBuffer out_memory_;
  at::Tensor pinned_in_, pinned_out_;  // over those
  at::Tensor into_, from_;             // on the device
};

}  // namespace

Result<DeviceTimes> time_device(const DeviceTiming& timing) {
  ASSIGN_OR_RETURN(const DeviceName name, parse_device_name(timing.device));
  if (name.kind == DeviceKind::host) {
    return make_error(ErrorCode::config,
                      "device \"{}\" has no memory of its own, so nothing is copied to it",
                      timing.device);
  }
  ASSIGN_OR_RETURN(const OpenedDevice opened,
                   open_device({.name = name, .thread_count = timing.thread_count}));
  return at_torch_border("measuring the device", [&]() -> Result<DeviceTimes> {
    ComputeThreads(timing.thread_count).apply();
    const c10::InferenceMode no_autograd;
    return DeviceTimer(opened, timing).run();
  });
}

}  // namespace sluice::model
