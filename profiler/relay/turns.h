#pragma once
// What the frames of a followed run say: the cursor of the copy in the one direction, turns of rows
// in the other (docs/following.md).
//
// Thread contract: plain owners and free functions.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "profiler/relay/frame.h"
#include "storage/rundb/copied_rows.h"
#include "storage/rundb/record_tail.h"

namespace sluice::relay {

// A turn, and whether the run was being recorded when it was read.
struct SentTurn {
  rundb::CopyTurn turn = {};
  bool is_live = false;
};
// Rows that one turn may have together: what the copy keeps in memory.
inline constexpr std::size_t kTurnBytesMax = 256 << 20;

std::string cursor_payload(const rundb::CopyCursor& cursor);
// Errors: corrupt.
Result<rundb::CopyCursor> cursor_in(const Frame& frame);

// All frames of a turn, behind `out`. Errors (unsupported): a row or the turn is too long to send.
Status put_turn(const SentTurn& sent, FrameWriter& frames, std::string& out);
// Why nothing more comes, as the last frame.
void put_failure(const Error& error, FrameWriter& frames, std::string& out);

class TurnReader {
 public:
  // What a frame ends: a turn, or nothing yet. Errors: corrupt, where a frame is not what comes
  // next; the far end's own, with its words.
  Result<std::optional<SentTurn>> take(Frame frame);

 private:
  Status take_rows(Frame frame);
  Result<SentTurn> ended(const Frame& frame);

  std::optional<SentTurn> open_;
  std::size_t bytes_ = 0;
};

}  // namespace sluice::relay
