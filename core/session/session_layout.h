#pragma once
// The tensors of a session as layers: each begins on a page of whatever is written to the drives,
// so that its gradient can go down whenever it comes.
//
// Thread contract: free functions.

#include <span>

#include "base/units.h"
#include "core/model/flat_layout.h"
#include "core/offload/initial_state.h"
#include "core/session/session.h"

namespace sluice::session {

// A page of the narrowest elements that are written, 16 bits each. Layers and subgroups begin at
// multiples of it.
inline constexpr std::int64_t kPageElements = kPageBytes / 2;

// A layer for each tensor, in their order, and zeros behind it to the end of its last page. Errors
// (ErrorCode::config): no tensors, a name that comes twice, a shape without elements.
Result<model::FlatLayout> layout_of(std::span<const Tensor> tensors);

// The elements of a tensor, without the zeros behind it.
std::int64_t element_count(const Tensor& tensor);

// Initial values of the flat parameters, out of those of the tensors.
offload::FillInitial fill_of(const Session::Request& request, const model::FlatLayout& layout);

}  // namespace sluice::session
