#include "core/model/torch/torch_gradients.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "base/units.h"
#include "core/model/torch/devices.h"
#include "core/model/torch/gradient_kernels.h"
#include "core/model/torch/host_bytes.h"
#include "core/model/torch/torch_border.h"
#include "core/optimizer/gradient_stats.h"

namespace sluice::model {
namespace {

std::int64_t most_sums(const FlatLayout& layout, const DeviceSelection& selection) {
  std::int64_t most = 0;
  for (std::int32_t l = 0; l < layout.layer_count(); ++l) {
    const std::int64_t blocks = optimizer::norm_block_count(layout.layer(LayerId{l}).count);
    most = std::max(most, blocks + std::ssize(selection.parts_of(LayerId{l})));
  }
  return most;
}

std::int64_t most_kept(const DeviceSelection& selection) {
  std::int64_t most = 0;
  for (std::size_t l = 0; l < selection.segments.size(); ++l)
    most = std::max(most, selection.kept_count(LayerId{static_cast<std::int32_t>(l)}));
  return most;
}

std::int64_t selection_bytes(const DeviceSelection& selection) {
  std::int64_t most = 0;
  for (const auto& of_layer : selection.segments) {
    for (const DeviceSegment& segment : of_layer) {
      most = std::max(
          most, segment.count * kLargestElementBytes + segment.kept_count * kLargestFoundBytes);
    }
  }
  return most;
}

at::Tensor bytes_of(const at::Tensor& tensor) { return tensor.view(at::kByte); }

// The bytes of `part` in the first and in the second of two arrays, one behind the other.
std::array<BytePart, 2> halves_of(BytePart part, std::int64_t half_bytes) {
  const std::int64_t end = part.first_byte + part.size_bytes;
  const std::int64_t first_end = std::min(end, half_bytes);
  const std::int64_t second_begin = std::max(part.first_byte, half_bytes);
  return {{{part.first_byte, std::max<std::int64_t>(0, first_end - part.first_byte)},
           {second_begin - half_bytes, std::max<std::int64_t>(0, end - second_begin)}}};
}

void bring_out(const at::Tensor& from, BytePart part, void* into) {
  if (part.size_bytes == 0) return;
  bytes_in_host_memory(static_cast<std::byte*>(into) + part.first_byte, part.size_bytes)
      .copy_(bytes_of(from).narrow(0, part.first_byte, part.size_bytes), /*non_blocking=*/true);
}

}  // namespace

MemoryItems torch_gradient_memory(const FlatLayout& layout, const DeviceSelection& selection) {
  const std::int64_t piece = std::min(kPieceElements, layout.largest_layer_elements());
  return {{"block sums of a layer's gradients", most_sums(layout, selection) * 8},
          {"temporaries of the gradients' check",
           round_up(piece, optimizer::kNormBlockElements) * kPieceElementBytes},
          {"what a layer keeps (density)", kept_bytes(most_kept(selection))},
          {"temporaries of the selection", selection_bytes(selection)},
          {"residual (error_feedback)", selection.has_feedback ? layout.parameter_count * 4 : 0}};
}

Status TorchGradients::prepare(const DeviceSelection& selection) {
  return at_torch_border("making room for gradient work", [&]() -> Status {
    selection_ = selection;
    parts_.streams.now([this] { take_memory(); });
    return ok_status();
  });
}

// Old memory goes before new memory is taken.
void TorchGradients::take_memory() {
  const at::TensorOptions options(parts_.device);
  const auto take = [&](at::Tensor& place, std::int64_t count, at::ScalarType dtype,
                        const char* name) {
    place.reset();
    if (count == 0) return;
    place = at::zeros({count}, options.dtype(dtype));
    name_memory(parts_.device, place.data_ptr(), name);
  };
  take(sums_, most_sums(parts_.layout, selection_), at::kDouble, "block sums of gradients");
  take(kept_indices_, most_kept(selection_), at::kInt, "indices that a layer keeps");
  take(kept_values_, most_kept(selection_), at::kFloat, "values that a layer keeps");
  const bool stays = selection_.has_feedback && residual_.defined();
  if (!stays) {
    take(residual_, selection_.has_feedback ? parts_.layout.parameter_count : 0, at::kFloat,
         "the residual");
  }
}

std::string TorchGradients::named(std::string_view what, LayerId layer) const {
  return fmt::format("{} of layer {}", what, parts_.layout.layer(layer).name);
}

Status TorchGradients::copy(StreamRole role, std::string_view what, LayerId layer,
                            DeviceStreams::Launch launch, WhenDone done) {
  return parts_.streams.copy(role, what, parts_.in_region(layer, std::move(launch)),
                             std::move(done));
}

Status TorchGradients::check(LayerId layer, int gradient, WhenDone done) {
  const at::Tensor values = parts_.gradient(layer, gradient);
  parts_.streams.launch(StreamRole::out, named("checking gradients", layer),
                        parts_.in_region(layer, [this, values, layer] { sum(layer, values); }),
                        std::move(done));
  return ok_status();
}

// A part is of one block, and is summed as one.
void TorchGradients::sum(LayerId layer, const at::Tensor& gradient) {
  std::int64_t sums = optimizer::norm_block_count(gradient.numel());
  put_block_sums(gradient, sums_.narrow(0, 0, sums));
  for (const DevicePart& part : selection_.parts_of(layer)) {
    put_block_sums(gradient.narrow(0, part.layer_offset, part.count), sums_.narrow(0, sums++, 1));
  }
}

Status TorchGradients::sums_out(BytePart part, double* block_sums, WhenDone done) {
  return copy(
      StreamRole::out, "taking block sums", kNoLayer, [&] { bring_out(sums_, part, block_sums); },
      std::move(done));
}

Status TorchGradients::select(LayerId layer, int gradient, int segment, float scale,
                              WhenDone done) {
  const at::Tensor values = parts_.gradient(layer, gradient);
  const DeviceSegment& chosen = selection_.of(layer)[static_cast<std::size_t>(segment)];
  parts_.streams.launch(StreamRole::out, named("selecting gradients", layer),
                        parts_.in_region(layer, [this, values, &chosen,
                                                 scale] { select_from(chosen, values, scale); }),
                        std::move(done));
  return ok_status();
}

void TorchGradients::select_from(const DeviceSegment& segment, const at::Tensor& gradient,
                                 float scale) {
  const at::Tensor fresh = gradient.narrow(0, segment.layer_offset, segment.count);
  at::Tensor values;
  if (selection_.has_feedback) {
    values = residual_.narrow(0, segment.flat_first, segment.count);
    accumulate_into(values, fresh, scale);
  } else {
    values = fresh.to(at::kFloat);
  }
  const at::Tensor indices = largest(values, segment.kept_count);
  kept_values_.narrow(0, segment.kept_first, segment.kept_count)
      .copy_(values.index_select(0, indices));
  kept_indices_.narrow(0, segment.kept_first, segment.kept_count)
      .copy_(indices + segment.first_index);
  if (selection_.has_feedback) values.index_fill_(0, indices, 0);
}

Status TorchGradients::kept_out(LayerId layer, BytePart part, const KeptPlace& into,
                                WhenDone done) {
  const auto halves = halves_of(part, selection_.kept_count(layer) * 4);
  return copy(
      StreamRole::out, named("taking what is kept", layer), layer,
      [&] {
        bring_out(kept_indices_, halves[0], into.indices);
        bring_out(kept_values_, halves[1], into.values);
      },
      std::move(done));
}

Status TorchGradients::put_back(LayerId layer, const KeptPlace& from, WhenDone done) {
  const std::int64_t count = selection_.kept_count(layer);
  return copy(
      StreamRole::in, named("putting back gradients", layer), layer,
      [&] {
        bytes_of(kept_indices_.narrow(0, 0, count))
            .copy_(bytes_in_host_memory(from.indices, count * 4), /*non_blocking=*/true);
        bytes_of(kept_values_.narrow(0, 0, count))
            .copy_(bytes_in_host_memory(from.values, count * 4), /*non_blocking=*/true);
        for (const DeviceSegment& segment : selection_.of(layer)) put_back_into(segment);
      },
      std::move(done));
}

void TorchGradients::put_back_into(const DeviceSegment& segment) {
  const at::Tensor indices =
      kept_indices_.narrow(0, segment.kept_first, segment.kept_count).to(at::kLong);
  residual_.narrow(0, segment.flat_first, segment.count)
      .index_copy_(0, indices - segment.first_index,
                   kept_values_.narrow(0, segment.kept_first, segment.kept_count));
}

Status TorchGradients::residual_out(BytePart part, std::byte* residual, WhenDone done) {
  return copy(
      StreamRole::out, "taking the residual", kNoLayer,
      [&] {
        bytes_in_host_memory(residual, part.size_bytes)
            .copy_(bytes_of(residual_).narrow(0, part.first_byte, part.size_bytes),
                   /*non_blocking=*/true);
      },
      std::move(done));
}

Status TorchGradients::residual_in(BytePart part, const std::byte* residual, WhenDone done) {
  return copy(
      StreamRole::in, "bringing the residual", kNoLayer,
      [&] {
        bytes_of(residual_)
            .narrow(0, part.first_byte, part.size_bytes)
            .copy_(bytes_in_host_memory(residual, part.size_bytes), /*non_blocking=*/true);
      },
      std::move(done));
}

}  // namespace sluice::model
