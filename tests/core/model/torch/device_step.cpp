#include "tests/core/model/torch/device_step.h"

#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>

#include "core/optimizer/gradient_stats.h"
#include "soft/accelerator/soft_accelerator.h"

namespace sluice::model {

Started::Started(const std::function<Status(WhenDone)>& start)
    : ended_(std::make_shared<std::promise<Status>>()) {
  refused_ = start([ended = ended_](Status status) { ended->set_value(std::move(status)); });
}

Status Started::wait() {
  if (!refused_.ok() || ended_ == nullptr) return refused_;
  std::future<Status> end = ended_->get_future();
  if (end.wait_for(std::chrono::minutes(1)) != std::future_status::ready) {
    return make_error(ErrorCode::internal, "work on the device has not ended for a minute");
  }
  return end.get();
}

DeviceStep::DeviceStep(const ModelShape& shape, const ModelOptions& options,
                       const ModelFactory& factory, double weight_scale)
    : shape_(shape), options_(options) {
  const std::vector<float> weights = make_weights(shape, weight_scale);
  parameters_ = factory.pinned->allocate(std::ssize(weights) * bytes_of(options.compute)).value();
  const ParameterSpan all(parameters_.bytes().data(), std::ssize(weights), options.compute);
  optimizer::put_parameters(weights.data(), all);
  for (int i = 0; i < 2; ++i) {
    layer_gradients_.push_back(
        factory.pinned->allocate(shape.flat_layout().largest_layer_elements() * 4).value());
  }
  Result<BuiltModel> built = factory.make(shape, options, all);
  INFO((built.ok() ? std::string() : built.error().message()));
  REQUIRE(built.ok());
  built_ = std::move(*built);
}

Started DeviceStep::bring(LayerId layer) {
  const std::int64_t size_bytes = model().layout().layer(layer).count * bytes_of(options_.compute);
  return Started(
      [&](WhenDone done) { return device().layer_in(layer, {0, size_bytes}, std::move(done)); });
}

Status DeviceStep::cross(LayerId layer, int micro_step, std::int64_t size_bytes, bool goes_out) {
  const std::int64_t cut = size_bytes / 3 + 1;
  std::vector<Started> parts;
  for (const BytePart part : {BytePart{0, cut}, BytePart{cut, size_bytes - cut}}) {
    parts.emplace_back([&](WhenDone done) {
      return goes_out ? device().blocks_out(layer, micro_step, part, std::move(done))
                      : device().blocks_in(layer, micro_step, part, std::move(done));
    });
  }
  for (Started& part : parts) RETURN_IF_ERROR(part.wait());
  return ok_status();
}

Status DeviceStep::leave(LayerId layer, int micro_step) {
  if (!moves_blocks_) return ok_status();
  KeptBlocks& blocks = *model().kept_blocks();
  ASSIGN_OR_RETURN(const std::span<const KeptBlock> kept, blocks.kept(layer, micro_step));
  if (kept.empty()) return ok_status();
  std::int64_t size_bytes = 0;
  for (const KeptBlock& block : kept) size_bytes += block.size_bytes;
  RETURN_IF_ERROR(cross(layer, micro_step, size_bytes, /*goes_out=*/true));
  moved_bytes_ += size_bytes;
  if (index_of(layer) % 2 == 1) {  // every other layer's stay in the blocks
    in_host_bytes_[{layer, micro_step}] = size_bytes;
    return blocks.release_device(layer, micro_step);
  }
  std::vector<std::byte>& away = away_[{layer, micro_step}];
  away.clear();
  for (const KeptBlock& block : kept)
    away.insert(away.end(), block.data, block.data + block.size_bytes);
  return blocks.release(layer, micro_step);
}

Status DeviceStep::come_back(LayerId layer, int micro_step) {
  KeptBlocks& blocks = *model().kept_blocks();
  if (const auto stays = in_host_bytes_.extract({layer, micro_step}); !stays.empty()) {
    RETURN_IF_ERROR(cross(layer, micro_step, stays.mapped(), /*goes_out=*/false));
    return blocks.restore(layer, micro_step);
  }
  const auto found = away_.find({layer, micro_step});
  if (found == away_.end()) return ok_status();
  ASSIGN_OR_RETURN(const std::span<const KeptBlock> room, blocks.make_room(layer, micro_step));
  const std::byte* from = found->second.data();
  for (const KeptBlock& block : room) {
    std::memcpy(block.data, from, static_cast<std::size_t>(block.size_bytes));
    from += block.size_bytes;
  }
  RETURN_IF_ERROR(cross(layer, micro_step, std::ssize(found->second), /*goes_out=*/false));
  away_.erase(found);
  return blocks.restore(layer, micro_step);
}

Status DeviceStep::forward(int micro_step_count) {
  const std::int32_t layer_count = model().layout().layer_count();
  const std::int64_t numbers_bytes = batch_bytes(shape_, options_.batch, options_.sequence);
  Started coming = bring(LayerId{0});
  for (int m = 0; m < micro_step_count; ++m) {
    RETURN_IF_ERROR(Started([&](WhenDone done) {
                      return device().batch_in(m, {0, numbers_bytes}, std::move(done));
                    }).wait());
  }
  for (std::int32_t l = 0; l < layer_count; ++l) {
    RETURN_IF_ERROR(coming.wait());
    coming = l + 1 < layer_count ? bring(LayerId{l + 1}) : Started();
    for (int m = 0; m < micro_step_count; ++m) {
      RETURN_IF_ERROR(Started([&](WhenDone done) {
                        return device().forward(LayerId{l}, m, std::move(done));
                      }).wait());
      RETURN_IF_ERROR(leave(LayerId{l}, m));
    }
  }
  for (int m = 0; m < micro_step_count; ++m) {
    RETURN_IF_ERROR(
        Started([&](WhenDone done) { return device().loss_out(m, std::move(done)); }).wait());
  }
  return ok_status();
}

Status DeviceStep::backward(int micro_step_count, double gradient_scale,
                            std::vector<std::byte>& gradients) {
  const FlatLayout& layout = model().layout();
  const std::int64_t element_bytes = options_.micro_step_count > 1 ? 4 : bytes_of(options_.compute);
  gradients.resize(static_cast<std::size_t>(layout.parameter_count * element_bytes));
  Started coming = bring(LayerId{layout.layer_count() - 1});
  Started leaving;
  std::int32_t left = -1;  // the layer whose gradients leave
  const auto finish_leaving = [&]() -> Status {
    if (left < 0) return ok_status();
    RETURN_IF_ERROR(leaving.wait());
    const LayerRange& range = layout.layer(LayerId{left});
    std::memcpy(gradients.data() + range.first * element_bytes,
                layer_gradients_[static_cast<std::size_t>(left % 2)].bytes().data(),
                static_cast<std::size_t>(range.count * element_bytes));
    return ok_status();
  };
  for (std::int32_t l = layout.layer_count() - 1; l >= 0; --l) {
    RETURN_IF_ERROR(coming.wait());
    coming = l > 0 ? bring(LayerId{l - 1}) : Started();
    for (int m = 0; m < micro_step_count; ++m) {
      RETURN_IF_ERROR(come_back(LayerId{l}, m));
      RETURN_IF_ERROR(Started([&](WhenDone done) {
                        return device().backward(LayerId{l}, m, gradient_scale, l % 2,
                                                 std::move(done));
                      }).wait());
      if (moves_blocks_) model().kept_blocks()->forget(LayerId{l}, m);
    }
    RETURN_IF_ERROR(finish_leaving());
    left = l;
    leaving = Started([&](WhenDone done) {
      return device().gradient_out(
          LayerId{l}, l % 2, {0, layout.layer(LayerId{l}).count * element_bytes},
          layer_gradients_[static_cast<std::size_t>(l % 2)].bytes().data(), std::move(done));
    });
  }
  return finish_leaving();
}

Result<StepNumbers> DeviceStep::run(const std::vector<Batch>& micro_batches,
                                    double gradient_scale) {
  const auto count = static_cast<int>(micro_batches.size());
  for (int m = 0; m < count; ++m) {
    RETURN_IF_ERROR(model().set_batch(m, micro_batches[static_cast<std::size_t>(m)].view(),
                                      BatchUse::training));
  }
  StepNumbers numbers;
  RETURN_IF_ERROR(forward(count));
  RETURN_IF_ERROR(backward(count, gradient_scale, numbers.gradients));
  for (int m = 0; m < count; ++m) numbers.losses.push_back(model().loss(m));
  return numbers;
}

StepNumbers step_in_host_memory(const ModelShape& shape, const ModelOptions& options,
                                const std::vector<Batch>& micro_batches, double gradient_scale,
                                double weight_scale) {
  Gpt2Run run(shape, options, weight_scale);
  const auto count = static_cast<int>(micro_batches.size());
  const FlatLayout& layout = run.model->layout();
  const std::int64_t element_bytes = options.micro_step_count > 1 ? 4 : bytes_of(options.compute);
  StepNumbers numbers;
  numbers.gradients.resize(static_cast<std::size_t>(layout.parameter_count * element_bytes));
  for (int m = 0; m < count; ++m) {
    REQUIRE(
        run.model
            ->set_batch(m, micro_batches[static_cast<std::size_t>(m)].view(), BatchUse::training)
            .ok());
  }
  for (std::int32_t l = 0; l < layout.layer_count(); ++l) {
    for (int m = 0; m < count; ++m) REQUIRE(run.model->forward(LayerId{l}, m).ok());
  }
  for (std::int32_t l = layout.layer_count() - 1; l >= 0; --l) {
    const LayerRange& range = layout.layer(LayerId{l});
    std::byte* const into = numbers.gradients.data() + range.first * element_bytes;
    LayerGradient gradient{.element_count = range.count};
    if (element_bytes == 4)
      gradient.values_fp32 = reinterpret_cast<float*>(into);
    else
      gradient.values_16bit = reinterpret_cast<std::uint16_t*>(into);
    for (int m = 0; m < count; ++m)
      REQUIRE(run.model->backward(LayerId{l}, m, gradient_scale, gradient).ok());
  }
  for (int m = 0; m < count; ++m) numbers.losses.push_back(run.model->loss(m));
  return numbers;
}

namespace {

template <typename Function>
Function* soft_function(const char* name) {
  auto* const function = reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
  REQUIRE(function != nullptr);
  return function;
}

}  // namespace

namespace {

LaunchRegion soft_region;

}  // namespace

void set_soft_region(const LaunchRegion& region) { soft_region = region; }

ModelFactory soft_factory(const std::string& settings, std::int64_t cap_bytes) {
  constexpr int kThreads = 2;
  static const ModelFactory opened = [] {
    Result<ModelFactory> factory = model_factory("soft", 0, kThreads, [](LayerId layer) {
      return soft_region ? soft_region(layer) : std::shared_ptr<void>();
    });
    INFO((factory.ok() ? std::string() : factory.error().message()));
    REQUIRE(factory.ok());
    return *factory;
  }();
  const char* const problem = soft_function<decltype(sluice_soft_accelerator_set)>(
      "sluice_soft_accelerator_set")(settings.c_str());
  REQUIRE(problem == nullptr);
  if (cap_bytes > 0) {
    soft_function<decltype(sluice_soft_accelerator_set_cap)>("sluice_soft_accelerator_set_cap")(
        0, cap_bytes);
  }
  return opened;
}

std::int64_t soft_used_bytes() {
  SluiceSoftAcceleratorCounters counters{};
  soft_function<decltype(sluice_soft_accelerator_counters)>("sluice_soft_accelerator_counters")(
      0, &counters);
  return counters.used_bytes;
}

std::string kept_error() {
  const char* const error = soft_function<decltype(sluice_soft_accelerator_take_error)>(
      "sluice_soft_accelerator_take_error")();
  return error == nullptr ? std::string() : error;
}

}  // namespace sluice::model
