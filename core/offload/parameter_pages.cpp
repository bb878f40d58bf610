#include "core/offload/parameter_pages.h"

#include <sys/mman.h>

#include "base/check.h"
#include "base/units.h"

namespace sluice::offload {
namespace {

struct PageRange {
  std::int64_t first = 0;
  std::int64_t end = 0;
};

PageRange pages_of(const model::LayerRange& layer, ParameterKind kind) {
  return {layer.first * bytes_of(kind) / kPageBytes,
          divide_up((layer.first + layer.count) * bytes_of(kind), kPageBytes)};
}

}  // namespace

Result<io::PageAlignedBuffer> map_parameters(std::int64_t size_bytes) {
  const auto mapped_bytes = static_cast<std::size_t>(round_up(size_bytes, kPageBytes));
  // More may be asked for than the machine has: MAP_NORESERVE.
  void* const data = mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    return make_error(ErrorCode::memory,
                      "no addresses for parameters of {}; raise the limit of the address "
                      "space (ulimit -v)",
                      format_bytes(size_bytes));
  }
  // Advice: a kernel without huge pages refuses it, and has none to spare us.
  static_cast<void>(madvise(data, mapped_bytes, MADV_NOHUGEPAGE));
  return io::PageAlignedBuffer::adopt(
      {static_cast<std::byte*>(data), mapped_bytes},
      [data, mapped_bytes] { CHECK_EQ(munmap(data, mapped_bytes), 0); });
}

ParameterPages::ParameterPages(const model::FlatLayout& layout, ParameterSpan parameters)
    : layout_(layout), parameters_(parameters), is_there_(layout.layers.size(), 0) {
  // Whoever had them before may have left some.
  give_back_pages(0, divide_up(parameters.size_bytes(), kPageBytes));
}

void ParameterPages::give_back(LayerId layer) {
  const auto at = static_cast<std::size_t>(index_of(layer));
  is_there_[at] = 0;
  PageRange pages = pages_of(layout_.layer(layer), parameters_.kind());
  while (pages.first < pages.end && is_needed(pages.first, at)) pages.first += 1;
  while (pages.first < pages.end && is_needed(pages.end - 1, at)) pages.end -= 1;
  give_back_pages(pages.first, pages.end);
}

// Layers are consecutive, so those that share a page are neighbours.
bool ParameterPages::is_needed(std::int64_t page, std::size_t layer) const {
  for (std::size_t l = layer;
       l-- > 0 && pages_of(layout_.layers[l], parameters_.kind()).end > page;) {
    if (is_there_[l] != 0) return true;
  }
  for (std::size_t l = layer + 1;
       l < is_there_.size() && pages_of(layout_.layers[l], parameters_.kind()).first <= page; ++l) {
    if (is_there_[l] != 0) return true;
  }
  return false;
}

void ParameterPages::give_back_pages(std::int64_t first, std::int64_t end) const {
  if (!parameters_.has_memory() || first >= end) return;
  CHECK_EQ(madvise(parameters_.data() + first * kPageBytes,
                   static_cast<std::size_t>((end - first) * kPageBytes), MADV_DONTNEED),
           0);
}

}  // namespace sluice::offload
