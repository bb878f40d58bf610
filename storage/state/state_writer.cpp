#include "storage/state/state_writer.h"

#include <algorithm>

#include "base/state_codec.h"
#include "storage/io/page_aligned_buffer.h"

namespace sluice::state {

StateWriter::StateWriter(StateStore& store)
    : store_(store),
      values_(static_cast<std::size_t>(store.layout().geometry().stored().decoded_count())) {}

std::span<float> StateWriter::values(SubgroupId subgroup, std::int32_t variable) {
  std::vector<float>& values = values_[static_cast<std::size_t>(variable)];
  values.resize(static_cast<std::size_t>(store_.layout().geometry().element_count(subgroup)));
  return values;
}

Result<SubgroupVersion> StateWriter::write(SubgroupId subgroup) {
  Layout& layout = store_.layout();
  const Geometry& geometry = layout.geometry();
  const std::int64_t count = geometry.element_count(subgroup);
  SubgroupVersion version;
  version.slot = layout.current(subgroup);
  std::array<io::PageAlignedBuffer, kMaxStoredArrays> arrays;
  StoredSpan stored{geometry.stored(), {}, count};
  for (std::int32_t v = 0; v < geometry.variable_count; ++v) {
    const auto at = static_cast<std::size_t>(v);
    ASSIGN_OR_RETURN(arrays[at], io::PageAlignedBuffer::allocate(
                                     layout.extent(version.slot, v, count).size_bytes));
    std::ranges::fill(arrays[at].bytes(), std::byte{});
    stored.data[at] = arrays[at].bytes().data();
  }
  encode(std::vector<std::span<const float>>(values_.begin(), values_.end()),
         CodeRounding::nearest(), geometry.first_element(subgroup), stored);
  const io::File& file = store_.file(version.slot.device);
  for (std::int32_t v = 0; v < geometry.variable_count; ++v) {
    const auto at = static_cast<std::size_t>(v);
    const auto size_bytes = static_cast<std::size_t>(geometry.array_bytes(v, count));
    version.checksums[at] = checksum(arrays[at].bytes().first(size_bytes));
    RETURN_IF_ERROR(file.write_exactly(store_.file_offset(layout.extent(version.slot, v, count)),
                                       arrays[at].bytes()));
  }
  return version;
}

}  // namespace sluice::state
