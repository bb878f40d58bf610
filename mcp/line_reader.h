#pragma once
// Lines of a stream, one after the other, each within a bound: what is longer is thrown away as it
// comes, so that no peer fills the memory.
//
// Thread contract: one thread.

#include <cstddef>
#include <string>

#include "base/status.h"

namespace sluice::mcp {

struct Line {
  enum class Kind : std::uint8_t { whole, too_long, end };
  Kind kind = Kind::end;
  std::string text = {};  // of a whole one, without its newline
};

class LineReader {
 public:
  // `fd` stays open behind this.
  LineReader(int fd, std::size_t bytes_max) : fd_(fd), bytes_max_(bytes_max) {}

  // Waits for it. What stands behind the last newline is a line, too. ErrorCode::io: read(2).
  Result<Line> next();

 private:
  Result<bool> read_more();

  int fd_;
  std::size_t bytes_max_;
  std::string in_;            // read, and not handed out
  bool is_too_long_ = false;  // the line under way; its bytes are not kept
};

}  // namespace sluice::mcp
