#include "core/offload/parameter_writing.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/units.h"
#include "core/csd/drive.h"
#include "core/offload/host_kernels.h"
#include "core/optimizer/gradient_stats.h"
#include "core/runtime/runtime.h"

namespace sluice::offload {
namespace {

// The parameters of a bounce buffer's master weights, in their place: 16 bits are written behind
// what is read.
void make_in_place(std::span<std::byte> bounce, std::int64_t count, ParameterKind parameters) {
  if (!has_16_bits(parameters)) return;
  const Float16Kind kind = float16_kind(parameters);
  constexpr std::int64_t kTile = 1024;
  std::array<float, kTile> values;
  std::array<std::uint16_t, kTile> narrowed;
  for (std::int64_t first = 0; first < count; first += kTile) {
    const std::int64_t tile = std::min(kTile, count - first);
    std::memcpy(values.data(), bounce.data() + first * 4, static_cast<std::size_t>(tile) * 4);
    optimizer::narrow(values.data(), kind, narrowed.data(), tile);
    std::memcpy(bounce.data() + first * 2, narrowed.data(), static_cast<std::size_t>(tile) * 2);
  }
}

}  // namespace

void StretchSums::add(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    csd::ParameterStretch& stretch = stretches_[at_];
    const auto left = static_cast<std::size_t>(stretch.size_bytes - summed_bytes_);
    const std::size_t count = std::min(left, bytes.size());
    checksummer_.add(bytes.first(count));
    summed_bytes_ += static_cast<std::int64_t>(count);
    bytes = bytes.subspan(count);
    if (count < left) return;
    stretch.checksum = checksummer_.digest();
    checksummer_ = {};
    summed_bytes_ = 0;
    at_ += 1;
  }
}

std::int64_t written_elements(std::int64_t bounce_bytes) {
  return round_down(bounce_bytes / 4, kPageBytes / 2);
}

runtime::Task<Status> write_parameters(ParameterWriting writing, std::int64_t offset_bytes,
                                       std::int64_t count, std::span<std::byte> bounce) {
  const std::int64_t size_bytes = count * bytes_of(writing.kind);
  runtime::OperationLabel label;
  label.stage = stages::Stage::parameters_in;
  label.subgroup = writing.subgroup;
  const runtime::Operation make = writing.kernels.stage(
      label, count, [bounce, count, kind = writing.kind, size_bytes, &sums = writing.sums] {
        make_in_place(bounce, count, kind);
        sums.add(bounce.first(static_cast<std::size_t>(size_bytes)));
        return ok_status();
      });
  Status made = co_await make;
  CO_RETURN_IF_ERROR(made);
  Status written = co_await writing.drive.host_write(
      {stages::Stage::parameter_write, writing.subgroup}, {offset_bytes, bounce, size_bytes});
  co_return written;
}

}  // namespace sluice::offload
