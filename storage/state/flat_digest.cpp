// The layout of XXH3's state is known to who asks for it.
#define XXH_STATIC_LINKING_ONLY
#include "storage/state/flat_digest.h"

#include <xxhash.h>

#include <cstring>

#include "base/check.h"

namespace sluice::state {

struct FlatDigest::Hash {
  XXH3_state_t state;  // aligned as it asks for
};

FlatDigest::FlatDigest() : hash_(std::make_unique<Hash>()) { XXH3_128bits_reset(&hash_->state); }
FlatDigest::~FlatDigest() = default;

Status FlatDigest::add(StateReader& reader, std::int32_t variable, std::int64_t first,
                       std::int64_t count) {
  return reader.read(variable, first, count, [this](std::span<const float> values) {
    XXH3_128bits_update(&hash_->state, values.data(), values.size_bytes());
    return ok_status();
  });
}

std::vector<std::byte> FlatDigest::handed_on() const {
  std::vector<std::byte> bytes(sizeof hash_->state);
  std::memcpy(bytes.data(), &hash_->state, bytes.size());
  return bytes;
}

// All but the one address in it: that of the secret, which every process has where it likes.
void FlatDigest::take_over(std::span<const std::byte> hash) {
  CHECK_EQ(hash.size(), sizeof hash_->state);
  const unsigned char* const secret = hash_->state.extSecret;
  std::memcpy(&hash_->state, hash.data(), hash.size());
  hash_->state.extSecret = secret;
}

std::string FlatDigest::digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&hash_->state);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace sluice::state
