#include "storage/state/state_reader.h"

#include <algorithm>

namespace sluice::state {
namespace {

constexpr std::int64_t kBufferBytes = std::int64_t{8} << 20;
// Elements of a split state that are decoded at once.
constexpr std::int64_t kDecodedElements = 64 * kBlockElements;
// The widest array of as many, and the pages that its ends begin and end in.
constexpr std::int64_t kPartBytes = kDecodedElements * 4 + 2 * kPageBytes;

// Whether a split state's decoded variable is made of the array.
bool is_needed(const StoredArrays& arrays, std::int32_t variable, std::int32_t array) {
  if (variable > 0) return array == variable + 1;
  return array < 2 || arrays.codes[static_cast<std::size_t>(array)] == ArrayCode::fp32_with_ties;
}

}  // namespace

Result<StateReader> StateReader::make(StateStore& store) {
  const Geometry& geometry = store.layout().geometry();
  const std::int64_t size_bytes = geometry.stored().is_split()
                                      ? geometry.variable_count * kPartBytes
                                      : std::min(kBufferBytes, geometry.variable_bytes(0));
  ASSIGN_OR_RETURN(io::PageAlignedBuffer buffer, io::PageAlignedBuffer::allocate(size_bytes));
  StateReader reader(store, std::move(buffer));
  if (geometry.stored().is_split()) {
    reader.decoded_.resize(static_cast<std::size_t>(kDecodedElements));
  }
  return reader;
}

Status StateReader::read(std::int32_t variable, std::int64_t first, std::int64_t count,
                         const Take& take) {
  Layout& layout = store_->layout();
  const Geometry& geometry = layout.geometry();
  const std::int64_t end = first + count;
  for (std::int64_t low = first; low < end;) {
    const SubgroupId subgroup{static_cast<std::int32_t>(low / geometry.subgroup_elements)};
    const std::int64_t subgroup_first = geometry.first_element(subgroup);
    const std::int64_t high = std::min(end, subgroup_first + geometry.element_count(subgroup));
    if (geometry.stored().is_split()) {
      RETURN_IF_ERROR(
          read_decoded(subgroup, variable, low - subgroup_first, high - subgroup_first, take));
    } else {
      const SlotId slot = store_->committed().subgroups[index_of(subgroup)].slot;
      const Extent extent = layout.extent(slot, variable, geometry.element_count(subgroup));
      RETURN_IF_ERROR(read_from(store_->file(slot.device),
                                store_->file_offset(extent) + (low - subgroup_first) * 4,
                                high - low, take));
    }
    low = high;
  }
  return ok_status();
}

// Whole pages, as direct reads want them; an array is padded to whole pages.
Status StateReader::read_from(const io::File& file, std::int64_t offset_bytes, std::int64_t count,
                              const Take& take) {
  std::int64_t at = offset_bytes;
  const std::int64_t end = offset_bytes + count * 4;
  while (at < end) {
    const std::int64_t page = round_down(at, kPageBytes);
    const std::int64_t read_bytes =
        std::min(round_up(end - page, kPageBytes), buffer_.size_bytes());
    RETURN_IF_ERROR(
        file.read_exactly(page, buffer_.bytes().first(static_cast<std::size_t>(read_bytes))));
    const std::int64_t next = std::min(end, page + read_bytes);
    const auto* values = reinterpret_cast<const float*>(buffer_.bytes().data() + (at - page));
    RETURN_IF_ERROR(take({values, static_cast<std::size_t>((next - at) / 4)}));
    at = next;
  }
  return ok_status();
}

// By whole blocks, since an element is decoded with what its block has for its group.
Status StateReader::read_decoded(SubgroupId subgroup, std::int32_t variable, std::int64_t low,
                                 std::int64_t high, const Take& take) {
  while (low < high) {
    const std::int64_t begin = round_down(low, kBlockElements);
    const std::int64_t end = std::min(high, begin + kDecodedElements);
    ASSIGN_OR_RETURN(const StoredSpan stored, read_stored(subgroup, variable, begin, end));
    const std::span<float> values =
        std::span(decoded_).first(static_cast<std::size_t>(end - begin));
    decode(stored, variable, 0, values);
    RETURN_IF_ERROR(take(values.subspan(static_cast<std::size_t>(low - begin))));
    low = end;
  }
  return ok_status();
}

// The blocks from `low` on that have the elements up to `high`.
Result<StoredSpan> StateReader::read_stored(SubgroupId subgroup, std::int32_t variable,
                                            std::int64_t low, std::int64_t high) {
  Layout& layout = store_->layout();
  const Geometry& geometry = layout.geometry();
  const std::int64_t element_count = geometry.element_count(subgroup);
  const SlotId slot = store_->committed().subgroups[index_of(subgroup)].slot;
  StoredSpan stored;
  stored.arrays = geometry.stored();
  stored.element_count = std::min(round_up(high, kBlockElements), element_count) - low;
  for (std::int32_t v = 0; v < geometry.variable_count; ++v) {
    if (!is_needed(stored.arrays, variable, v)) continue;
    const std::int64_t array =
        store_->file_offset(layout.extent(slot, v, element_count)) + geometry.array_bytes(v, low);
    const std::int64_t page = round_down(array, kPageBytes);
    const std::int64_t end =
        round_up(array + geometry.array_bytes(v, stored.element_count), kPageBytes);
    const std::span<std::byte> part = buffer_.bytes().subspan(
        static_cast<std::size_t>(v * kPartBytes), static_cast<std::size_t>(end - page));
    RETURN_IF_ERROR(store_->file(slot.device).read_exactly(page, part));
    stored.data[static_cast<std::size_t>(v)] = part.data() + (array - page);
  }
  return stored;
}

}  // namespace sluice::state
