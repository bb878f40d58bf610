#pragma once
// The digest of a whole model's state (StateDigest) of which many ranks have parts: each adds its
// elements in flat order, and hands the hash on to whoever has the next ones.
//
// Thread contract: one thread.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "storage/state/state_reader.h"

namespace sluice::state {

class FlatDigest {
 public:
  FlatDigest();
  ~FlatDigest();

  // Elements [first, first + count) of the variable's array in the reader's store.
  Status add(StateReader& reader, std::int32_t variable, std::int64_t first, std::int64_t count);
  // The hash so far, for another process of the same program.
  std::vector<std::byte> handed_on() const;
  void take_over(std::span<const std::byte> hash);
  std::string digest() const;

 private:
  struct Hash;
  std::unique_ptr<Hash> hash_;
};

}  // namespace sluice::state
