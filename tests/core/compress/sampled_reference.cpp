#include "tests/core/compress/sampled_reference.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/split_mix.h"

namespace sluice::compress {
namespace {

// The sample's elements: one of each stretch, or all.
std::vector<float> sample_of(std::span<const float> values, std::uint64_t seed) {
  const std::uint64_t count = values.size();
  if (count <= kSampleElements) return {values.begin(), values.end()};
  std::vector<float> sample;
  for (std::uint64_t stretch = 0; stretch < kSampleElements; ++stretch) {
    const std::uint64_t first = stretch * count / kSampleElements;
    const std::uint64_t length = (stretch + 1) * count / kSampleElements - first;
    // A fraction of 32 bits, in [0, 1).
    const std::uint64_t fraction = split_mix(seed, stretch) >> 32;
    sample.push_back(values[first + fraction * length / (std::uint64_t{1} << 32)]);
  }
  return sample;
}

}  // namespace

SampledSelection sampled_top_k_reference(std::span<const float> values,
                                         const SampleOptions& options, const KeptRoom& room) {
  if (values.empty()) return {};
  std::vector<std::uint32_t> magnitudes;
  for (const float value : sample_of(values, options.seed))
    magnitudes.push_back(magnitude_of(value));
  std::sort(magnitudes.rbegin(), magnitudes.rend());
  const std::int64_t rank =
      kept_count(options.density, static_cast<std::int64_t>(magnitudes.size()));
  SampledSelection selection{.threshold = magnitudes[static_cast<std::size_t>(rank - 1)]};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (magnitude_of(values[i]) < selection.threshold) continue;
    if (selection.kept_count == room.capacity) break;
    room.indices[selection.kept_count] = static_cast<std::uint32_t>(i);
    room.values[selection.kept_count] = values[i];
    ++selection.kept_count;
  }
  return selection;
}

}  // namespace sluice::compress
