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
#include "core/compress/top_k.h"
#include "core/model/gradient_device.h"
#include "core/optimizer/gradient_stats.h"
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

// Gradient work by the host's own definitions, block by block and segment by segment.
class ArithmeticGradients final : public model::GradientDevice {
 public:
  // `start` begins work in the stream of what goes out (false: comes in).
  using Start = std::function<Status(bool out, model::WhenDone, std::function<Status()>)>;
  ArithmeticGradients(const model::FlatLayout& layout, optimizer::GradientKind kind,
                      std::array<std::vector<float>, 2>& gradients, Start start)
      : layout_(layout), kind_(kind), gradients_(gradients), start_(std::move(start)) {}

  Status prepare(const model::DeviceSelection& selection) override {
    selection_ = selection;
    if (!selection.has_feedback) residual_.clear();
    if (selection.has_feedback) residual_.resize(static_cast<std::size_t>(layout_.parameter_count));
    return ok_status();
  }
  Status check(LayerId layer, int gradient, model::WhenDone done) override {
    return start_(true, std::move(done), [this, layer, gradient] {
      const std::int64_t count = layout_.layer(layer).count;
      sums_.clear();
      const auto sum = [&](std::int64_t first, std::int64_t length) {
        sums_.push_back(
            optimizer::gradient_stats_reference(at(gradient, first), kind_, length).sum_of_squares);
      };
      for (std::int64_t first = 0; first < count; first += optimizer::kNormBlockElements) {
        sum(first, std::min(optimizer::kNormBlockElements, count - first));
      }
      for (const model::DevicePart& part : selection_.parts_of(layer)) {
        sum(part.layer_offset, part.count);
      }
      return ok_status();
    });
  }
  Status sums_out(model::BytePart part, double* block_sums, model::WhenDone done) override {
    out_bytes += part.size_bytes;
    return start_(true, std::move(done), [this, part, block_sums] {
      copy_part(part, sums_.data(), block_sums);
      return ok_status();
    });
  }
  Status select(LayerId layer, int gradient, int segment, float scale,
                model::WhenDone done) override {
    return start_(true, std::move(done), [this, layer, gradient, segment, scale] {
      select_from(selection_.of(layer)[static_cast<std::size_t>(segment)], gradient, scale);
      return ok_status();
    });
  }
  Status kept_out(LayerId layer, model::BytePart part, const model::KeptPlace& into,
                  model::WhenDone done) override {
    out_bytes += part.size_bytes;
    return start_(true, std::move(done), [this, layer, part, into] {
      const std::int64_t half = selection_.kept_count(layer) * 4;
      for (std::int64_t b = part.first_byte; b < part.first_byte + part.size_bytes; ++b) {
        const auto* const from = b < half ? bytes_of(indices_) + b : bytes_of(values_) + b - half;
        auto* const to = b < half ? reinterpret_cast<std::byte*>(into.indices) + b
                                  : reinterpret_cast<std::byte*>(into.values) + b - half;
        *to = *from;
      }
      return ok_status();
    });
  }
  Status put_back(LayerId layer, const model::KeptPlace& from, model::WhenDone done) override {
    in_bytes += model::kept_bytes(selection_.kept_count(layer));
    return start_(false, std::move(done), [this, layer, from] {
      for (const model::DeviceSegment& segment : selection_.of(layer)) {
        for (std::int64_t i = segment.kept_first; i < segment.kept_first + segment.kept_count;
             ++i) {
          const std::int64_t element = from.indices[i] - segment.first_index + segment.flat_first;
          residual_[static_cast<std::size_t>(element)] = from.values[i];
        }
      }
      return ok_status();
    });
  }
  Status residual_out(model::BytePart part, std::byte* residual, model::WhenDone done) override {
    out_bytes += part.size_bytes;
    return start_(true, std::move(done), [this, part, residual] {
      std::memcpy(residual, bytes_of(residual_) + part.first_byte,
                  static_cast<std::size_t>(part.size_bytes));
      return ok_status();
    });
  }
  Status residual_in(model::BytePart part, const std::byte* residual,
                     model::WhenDone done) override {
    in_bytes += part.size_bytes;
    return start_(false, std::move(done), [this, part, residual] {
      std::memcpy(reinterpret_cast<std::byte*>(residual_.data()) + part.first_byte, residual,
                  static_cast<std::size_t>(part.size_bytes));
      return ok_status();
    });
  }

  std::int64_t in_bytes = 0;
  std::int64_t out_bytes = 0;

 private:
  template <typename T>
  static const std::byte* bytes_of(const std::vector<T>& values) {
    return reinterpret_cast<const std::byte*>(values.data());
  }
  static void copy_part(model::BytePart part, const void* from, void* to) {
    std::memcpy(static_cast<std::byte*>(to) + part.first_byte,
                static_cast<const std::byte*>(from) + part.first_byte,
                static_cast<std::size_t>(part.size_bytes));
  }
  const std::byte* at(int gradient, std::int64_t element) const {
    return bytes_of(gradients_[static_cast<std::size_t>(gradient)]) + element * bytes_of_kind();
  }
  std::int64_t bytes_of_kind() const { return optimizer::bytes_of(kind_); }

  void select_from(const model::DeviceSegment& segment, int gradient, float scale) {
    std::vector<float> fresh(static_cast<std::size_t>(segment.count));
    const std::byte* const from = at(gradient, segment.layer_offset);
    if (kind_ == optimizer::GradientKind::fp32) {
      std::memcpy(fresh.data(), from, fresh.size() * 4);
    } else {
      optimizer::widen(
          reinterpret_cast<const std::uint16_t*>(from),
          kind_ == optimizer::GradientKind::bf16 ? Float16Kind::bf16 : Float16Kind::fp16,
          fresh.data(), segment.count);
    }
    std::span<float> values = fresh;
    if (selection_.has_feedback) {
      values = std::span(residual_).subspan(static_cast<std::size_t>(segment.flat_first),
                                            static_cast<std::size_t>(segment.count));
      compress::accumulate_residual_reference({fresh, scale, values});
    }
    const auto end = static_cast<std::size_t>(segment.kept_first + segment.kept_count);
    indices_.resize(std::max(indices_.size(), end));
    values_.resize(indices_.size());
    compress::top_k_reference(values, segment.kept_count,
                              {indices_.data() + segment.kept_first,
                               values_.data() + segment.kept_first, segment.kept_count});
    const auto kept = std::span(indices_).subspan(static_cast<std::size_t>(segment.kept_first),
                                                  static_cast<std::size_t>(segment.kept_count));
    if (selection_.has_feedback) compress::clear_residual(kept, values);
    for (std::uint32_t& index : kept) index += static_cast<std::uint32_t>(segment.first_index);
  }

  const model::FlatLayout& layout_;
  optimizer::GradientKind kind_;
  std::array<std::vector<float>, 2>& gradients_;
  Start start_;
  model::DeviceSelection selection_;
  std::vector<double> sums_;
  std::vector<std::uint32_t> indices_;
  std::vector<float> values_;
  std::vector<float> residual_;
};

class ArithmeticDevice final : public model::ComputeDevice {
 public:
  // `host` holds the batches, and is told the losses; its parameters are what is brought.
  ArithmeticDevice(const model::ModelShape& shape, const model::ModelOptions& options,
                   model::TrainableModel& host, const ArithmeticDeviceOptions& how)
      : how_(how),
        host_(host),
        parameters_(static_cast<std::size_t>(host.parameters().size_bytes())),
        computing_(shape, options.micro_step_count,
                   {parameters_.data(), host.parameters().size(), options.compute}),
        element_bytes_(options.micro_step_count > 1 ? 4 : bytes_of(options.compute)),
        batches_(static_cast<std::size_t>(options.micro_step_count)),
        gradient_work_(host.layout(),
                       options.micro_step_count > 1 ? optimizer::GradientKind::fp32
                                                    : optimizer::gradient_kind(options.compute),
                       gradients_,
                       [this](bool out, model::WhenDone done, std::function<Status()> work) {
                         return start(out ? out_ : in_, std::move(done), std::move(work));
                       }) {
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
      std::memcpy(parameters_.data() + first, host_.parameters().data() + first,
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
  Status blocks_out(LayerId, int, model::BytePart, model::WhenDone) override {
    return keeps_no_blocks();
  }
  Status blocks_in(LayerId, int, model::BytePart, model::WhenDone) override {
    return keeps_no_blocks();
  }
  MemoryUse memory_use() const override { return {1 << 20, 1 << 20, 2 << 20}; }
  model::GradientDevice& gradients() override { return gradient_work_; }
  std::int64_t all_in_bytes() const { return in_bytes + gradient_work_.in_bytes; }
  std::int64_t all_out_bytes() const { return out_bytes + gradient_work_.out_bytes; }

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
  static Status keeps_no_blocks() {
    return make_error(ErrorCode::unsupported, "the test device keeps no blocks");
  }
  std::size_t first_byte(LayerId layer) const {
    return static_cast<std::size_t>(host_.layout().layer(layer).first *
                                    bytes_of(host_.parameter_kind()));
  }
  void take_place(LayerId layer) {
    if (index_of(layer) == 0) return;
    LayerId& held = places_[static_cast<std::size_t>(index_of(layer) % 2)];
    if (held == layer) return;
    if (held != kNoLayer) {
      const model::LayerRange& range = host_.layout().layer(held);
      const std::int64_t element_bytes = bytes_of(host_.parameter_kind());
      const auto first = parameters_.begin() + range.first * element_bytes;
      std::fill(first, first + range.count * element_bytes, std::byte{0xff});
    }
    held = layer;
  }

  ArithmeticDeviceOptions how_;
  model::TrainableModel& host_;
  std::vector<std::byte> parameters_;  // of all layers; two are held
  ArithmeticModel computing_;
  std::int64_t element_bytes_;
  std::vector<Batch> batches_;
  std::array<double, 64> losses_{};
  std::array<std::vector<float>, 2> gradients_;
  std::array<LayerId, 2> places_ = {kNoLayer, kNoLayer};
  std::int64_t call_count_ = 0;
  ArithmeticGradients gradient_work_;
  DeviceStream compute_{how_.seed};  // the last: they work on the memory above
  DeviceStream in_{how_.seed + 1};
  DeviceStream out_{how_.seed + 2};
};

// The host's side of it: keeps what is to be brought.
class ModelOnDevice final : public model::TrainableModel {
 public:
  ModelOnDevice(const model::ModelShape& shape, const ParameterSpan& parameters)
      : layout_(shape.flat_layout()), parameters_(parameters) {}

  const model::FlatLayout& layout() const override { return layout_; }
  ParameterKind parameter_kind() const override { return parameters_.kind(); }
  ParameterSpan parameters() override { return parameters_; }
  Status set_batch(int micro_step, const model::TokenBatch& batch,
                   model::BatchUse /*use*/) override {
    device->keep_batch(micro_step, batch);
    return ok_status();
  }
  Status forward(LayerId, int) override { return on_host(); }
  Status backward(LayerId, int, double, const model::LayerGradient&) override { return on_host(); }
  double loss(int micro_step) const override { return device->loss(micro_step); }
  Status choose_activations(const model::LayerActivations&) override { return ok_status(); }

  ArithmeticDevice* device = nullptr;

 private:
  static Status on_host() {
    return make_error(ErrorCode::internal, "the host was asked to compute beside a device");
  }
  model::FlatLayout layout_;
  ParameterSpan parameters_;
};

// `made`, where it is not null, is pointed at the device.
inline model::ModelFactory arithmetic_device_factory(const ArithmeticDeviceOptions& how,
                                                     ArithmeticDevice** made = nullptr) {
  model::ModelFactory factory = arithmetic_factory();
  factory.make = [how, made](const model::ModelShape& shape, const model::ModelOptions& options,
                             const ParameterSpan& parameters) -> Result<model::BuiltModel> {
    auto host = std::make_unique<ModelOnDevice>(shape, parameters);
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
  factory.gradient_memory = [](const model::FlatLayout&, const model::DeviceSelection&) {
    return MemoryItems{{"its gradient work", 1 << 16}};
  };
  factory.device_memory_cap_bytes = 2 << 20;
  factory.device_description = "TEST DEVICE of plain arithmetic";
  return factory;
}

}  // namespace sluice
