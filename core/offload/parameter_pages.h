#pragma once
// The flat array of parameters where only a part of it is in memory: one range of addresses,
// so that models and kernels keep their pointers, and pages that are there from when a layer comes
// until it is given back.
//
// Thread contract: the schedule's thread. A page that a worker writes into is given back by nobody:
// a layer that comes is one that is there.

#include <cstdint>

#include "base/ids.h"
#include "base/parameter_span.h"
#include "core/model/flat_layout.h"
#include "storage/io/page_aligned_buffer.h"

namespace sluice::offload {

// Addresses for `size_bytes`, in whole pages; memory is taken as they are used. Not in huge pages,
// of which a layer's border would keep more than it needs.
Result<io::PageAlignedBuffer> map_parameters(std::int64_t size_bytes);

class ParameterPages {
 public:
  // `parameters` have no memory where there is no payload: then nothing is given back.
  ParameterPages(const model::FlatLayout& layout, ParameterSpan parameters);

  // From now on the layer's pages are needed.
  void take(LayerId layer) { is_there_[static_cast<std::size_t>(index_of(layer))] = 1; }
  // Not any more: those that no layer needs which is there go back to the kernel.
  void give_back(LayerId layer);

 private:
  bool is_needed(std::int64_t page, std::size_t layer) const;
  void give_back_pages(std::int64_t first, std::int64_t end) const;

  const model::FlatLayout& layout_;
  ParameterSpan parameters_;
  std::vector<char> is_there_;
};

}  // namespace sluice::offload
