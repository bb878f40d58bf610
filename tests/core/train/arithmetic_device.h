#pragma once
// A compute device of plain arithmetic: memory of its own, and a thread each for what is computed,
// what comes in and what goes out, with pauses of seeded length. No libtorch, so the whole schedule
// around a device runs under the sanitizers, which see each access that nothing orders.
//
// Like a real one it holds two layers' parameters: what a place held before is spoilt when another
// layer comes. A failure may be planted: the call number N of a kind answers with an error, or
// never.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>

#include "base/split_mix.h"
#include "tests/core/train/arithmetic_model.h"

namespace sluice {

// One thread that does what it is given, in order.
class DeviceStream {
 public:
  explicit DeviceStream(std::uint64_t seed) : seed_(seed), thread_([this] { work(); }) {}
  ~DeviceStream() {
    {
      const std::lock_guard lock(mutex_);
      stops_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void push(std::function<void()> job) {
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    changed_.notify_all();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (std::uint64_t number = 0;; ++number) {
      changed_.wait(lock, [this] { return stops_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(split_mix(seed_, number) % 200));
      job();
      lock.lock();
    }
  }

  std::uint64_t seed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool stops_ = false;
  std::thread thread_;
};

enum class DeviceFault : std::uint8_t { none, fails, never_ends };

struct ArithmeticDeviceOptions {
  std::uint64_t seed = 1;
  DeviceFault fault = DeviceFault::none;
  std::int64_t fault_at = 0;  // call of any kind, from 1
};

class ArithmeticDevice final : public model::ComputeDevice {
 public:
  // `host` holds the batches, and is told the losses; its parameters are what is brought.
  ArithmeticDevice(const model::ModelShape& shape, const model::ModelOptions& options,
                   model::TrainableModel& host, const ArithmeticDeviceOptions& how)
      : how_(how),
        host_(host),
        parameters_(host.parameters().size()),
        computing_(shape, options.micro_step_count, options.compute, parameters_),
        element_bytes_(options.micro_step_count > 1 ? 4 : 2),
        batches_(static_cast<std::size_t>(options.micro_step_count)) {
    const auto largest = static_cast<std::size_t>(host.layout().largest_layer_elements());
    for (std::vector<float>& gradient : gradients_) gradient.resize(largest);
  }

  std::string description() const override { return "TEST DEVICE of plain arithmetic"; }

  // The numbers themselves go with set_batch() below; what crosses is counted.
  Status batch_in(int micro_step, model::BytePart part, model::WhenDone done) override {
    in_bytes += part.size_bytes;
    return start(in_, std::move(done), [this, micro_step] {
      const Batch& batch = batches_[static_cast<std::size_t>(micro_step)];
      return computing_.set_batch(micro_step,
                                  {batch.rows, batch.columns, batch.inputs, batch.targets},
                                  model::BatchUse::training);
    });
  }
  Status layer_in(LayerId layer, model::BytePart part, model::WhenDone done) override {
    in_bytes += part.size_bytes;
    return start(in_, std::move(done), [this, layer, part] {
      take_place(layer);
      const std::size_t first = first_byte(layer) + static_cast<std::size_t>(part.first_byte);
      std::memcpy(reinterpret_cast<std::byte*>(parameters_.data()) + first,
                  reinterpret_cast<const std::byte*>(host_.parameters().data()) + first,
                  static_cast<std::size_t>(part.size_bytes));
      return ok_status();
    });
  }
  Status forward(LayerId layer, int micro_step, model::WhenDone done) override {
    return start(compute_, std::move(done),
                 [this, layer, micro_step] { return computing_.forward(layer, micro_step); });
  }
  Status backward(LayerId layer, int micro_step, double gradient_scale, int gradient,
                  model::WhenDone done) override {
    return start(compute_, std::move(done), [this, layer, micro_step, gradient_scale, gradient] {
      const std::int64_t count = host_.layout().layer(layer).count;
      float* const values = gradients_[static_cast<std::size_t>(gradient)].data();
      if (element_bytes_ == 2) {
        return computing_.backward(layer, micro_step, gradient_scale,
                                   {reinterpret_cast<std::uint16_t*>(values), nullptr, count});
      }
      if (micro_step == 0) std::fill(values, values + count, 0.0F);
      return computing_.backward(layer, micro_step, gradient_scale, {nullptr, values, count});
    });
  }
  Status gradient_out(LayerId /*layer*/, int gradient, model::BytePart part,
                      std::byte* layer_gradient, model::WhenDone done) override {
    out_bytes += part.size_bytes;
    return start(out_, std::move(done), [this, gradient, part, layer_gradient] {
      std::memcpy(layer_gradient + part.first_byte,
                  reinterpret_cast<const std::byte*>(
                      gradients_[static_cast<std::size_t>(gradient)].data()) +
                      part.first_byte,
                  static_cast<std::size_t>(part.size_bytes));
      return ok_status();
    });
  }
  Status loss_out(int micro_step, model::WhenDone done) override {
    out_bytes += model::kLossBytes;
    return start(out_, std::move(done), [this, micro_step] {
      losses_[static_cast<std::size_t>(micro_step)] = computing_.loss(micro_step);
      return ok_status();
    });
  }
  MemoryUse memory_use() const override { return {1 << 20, 1 << 20, 2 << 20}; }

  void keep_batch(int micro_step, const model::TokenBatch& batch) {
    batches_[static_cast<std::size_t>(micro_step)] = {batch.batch,
                                                      batch.sequence,
                                                      {batch.inputs.begin(), batch.inputs.end()},
                                                      {batch.targets.begin(), batch.targets.end()}};
  }
  double loss(int micro_step) const { return losses_[static_cast<std::size_t>(micro_step)]; }

  std::int64_t in_bytes = 0;
  std::int64_t out_bytes = 0;

 private:
  struct Batch {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::vector<std::int32_t> inputs = {};
    std::vector<std::int32_t> targets = {};
  };
  template <typename Work>
  Status start(DeviceStream& stream, model::WhenDone done, Work work) {
    const bool is_struck = how_.fault != DeviceFault::none && ++call_count_ == how_.fault_at;
    if (is_struck && how_.fault == DeviceFault::never_ends) return ok_status();
    stream.push([is_struck, work, done = std::move(done)] {
      if (is_struck) {
        done(make_error(ErrorCode::io, "the test device has failed as planned"));
      } else {
        done(work());
      }
    });
    return ok_status();
  }
  std::size_t first_byte(LayerId layer) const {
    return static_cast<std::size_t>(host_.layout().layer(layer).first) * 2;
  }
  void take_place(LayerId layer) {
    if (index_of(layer) == 0) return;
    LayerId& held = places_[static_cast<std::size_t>(index_of(layer) % 2)];
    if (held == layer) return;
    if (held != kNoLayer) {
      const model::LayerRange& range = host_.layout().layer(held);
      const auto first = parameters_.begin() + range.first;
      std::fill(first, first + range.count, std::numeric_limits<std::uint16_t>::max());
    }
    held = layer;
  }

  ArithmeticDeviceOptions how_;
  model::TrainableModel& host_;
  std::vector<std::uint16_t> parameters_;  // of all layers; two are held
  ArithmeticModel computing_;
  std::int64_t element_bytes_;
  std::vector<Batch> batches_;
  std::array<double, 64> losses_{};
  std::array<std::vector<float>, 2> gradients_;
  std::array<LayerId, 2> places_ = {kNoLayer, kNoLayer};
  std::int64_t call_count_ = 0;
  DeviceStream compute_{how_.seed};  // the last: they work on the memory above
  DeviceStream in_{how_.seed + 1};
  DeviceStream out_{how_.seed + 2};
};

// The host's side of it: keeps what is to be brought.
class ModelOnDevice final : public model::TrainableModel {
 public:
  ModelOnDevice(const model::ModelShape& shape, Float16Kind kind,
                std::span<std::uint16_t> parameters)
      : layout_(shape.flat_layout()), kind_(kind), parameters_(parameters) {}

  const model::FlatLayout& layout() const override { return layout_; }
  Float16Kind parameter_kind() const override { return kind_; }
  std::span<std::uint16_t> parameters() override { return parameters_; }
  Status set_batch(int micro_step, const model::TokenBatch& batch,
                   model::BatchUse /*use*/) override {
    device->keep_batch(micro_step, batch);
    return ok_status();
  }
  Status forward(LayerId, int) override { return on_host(); }
  Status backward(LayerId, int, double, const model::LayerGradient&) override { return on_host(); }
  double loss(int micro_step) const override { return device->loss(micro_step); }

  ArithmeticDevice* device = nullptr;

 private:
  static Status on_host() {
    return make_error(ErrorCode::internal, "the host was asked to compute beside a device");
  }
  model::FlatLayout layout_;
  Float16Kind kind_;
  std::span<std::uint16_t> parameters_;
};

// `made`, where it is not null, is pointed at the device.
inline model::ModelFactory arithmetic_device_factory(const ArithmeticDeviceOptions& how,
                                                     ArithmeticDevice** made = nullptr) {
  model::ModelFactory factory = arithmetic_factory();
  factory.make = [how, made](const model::ModelShape& shape, const model::ModelOptions& options,
                             std::span<std::uint16_t> parameters) -> Result<model::BuiltModel> {
    auto host = std::make_unique<ModelOnDevice>(shape, options.compute, parameters);
    auto device = std::make_unique<ArithmeticDevice>(shape, options, *host, how);
    host->device = device.get();
    if (made != nullptr) *made = device.get();
    model::BuiltModel built;
    built.model = std::move(host);
    built.device = std::move(device);
    return built;
  };
  factory.device_memory = [](const model::ModelShape&, const model::ModelOptions&) {
    return MemoryItems{{"all of it", 1 << 20}};
  };
  factory.device_memory_cap_bytes = 2 << 20;
  factory.device_description = "TEST DEVICE of plain arithmetic";
  return factory;
}

}  // namespace sluice
