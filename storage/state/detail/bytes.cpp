#include "storage/state/detail/bytes.h"

#include "base/check.h"

namespace sluice::state::detail {

void check_field(std::size_t offset, std::size_t size, std::size_t page_size) {
  CHECK_LE(offset + size, page_size);
}

}  // namespace sluice::state::detail
