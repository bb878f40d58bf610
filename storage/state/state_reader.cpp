#include "storage/state/state_reader.h"

#include <algorithm>

namespace sluice::state {
namespace {

constexpr std::int64_t kBufferBytes = std::int64_t{8} << 20;

}  // namespace

Result<StateReader> StateReader::make(StateStore& store) {
  const std::int64_t variable_bytes = store.layout().geometry().variable_bytes();
  ASSIGN_OR_RETURN(io::PageAlignedBuffer buffer,
                   io::PageAlignedBuffer::allocate(std::min(kBufferBytes, variable_bytes)));
  return StateReader(store, std::move(buffer));
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
    const SlotId slot = store_->committed().subgroups[index_of(subgroup)].slot;
    const Extent extent = layout.extent(slot, variable, geometry.element_count(subgroup));
    RETURN_IF_ERROR(read_from(store_->file(slot.device),
                              store_->file_offset(extent) + (low - subgroup_first) * 4, high - low,
                              take));
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

}  // namespace sluice::state
