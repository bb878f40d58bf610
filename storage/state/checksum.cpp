#include "storage/state/checksum.h"

#define XXH_STATIC_LINKING_ONLY  // the state's definition, to keep it in place
#include <xxhash.h>

#include <new>

#include "base/check.h"

namespace sluice::state {

static_assert(sizeof(XXH3_state_t) <= 576, "make Checksummer's storage as large as the library's");
static_assert(alignof(XXH3_state_t) <= 64);

std::uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Checksummer::Checksummer() { XXH3_64bits_reset(new (state_) XXH3_state_t); }

void Checksummer::add(std::span<const std::byte> bytes) {
  auto* state = reinterpret_cast<XXH3_state_t*>(state_);
  CHECK_EQ(XXH3_64bits_update(state, bytes.data(), bytes.size()), XXH_OK);
}

std::uint64_t Checksummer::digest() const {
  return XXH3_64bits_digest(reinterpret_cast<const XXH3_state_t*>(state_));
}

}  // namespace sluice::state
