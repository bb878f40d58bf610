#pragma once
// How the tokens of a batch lie: windows one after the other, and documents within them.
//
// Thread contract: plain data.

#include <cstdint>

namespace sluice::model {

struct WindowShape {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::int64_t tokens() const { return batch * sequence; }
};

// Whether a token sees the tokens of other documents in its window.
enum class Documents : std::uint8_t { together, apart };

// The part of a document that lies in one window, as tokens of the batch.
struct DocumentPiece {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

}  // namespace sluice::model
