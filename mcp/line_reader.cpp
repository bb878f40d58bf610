#include "mcp/line_reader.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <array>

namespace sluice::mcp {

Result<Line> LineReader::next() {
  std::size_t looked_at = 0;
  for (;;) {
    const std::size_t end = in_.find('\n', looked_at);
    if (end != std::string::npos) {
      Line line{Line::Kind::whole, in_.substr(0, end)};
      in_.erase(0, end + 1);
      if (is_too_long_ || line.text.size() > bytes_max_) line = {Line::Kind::too_long};
      is_too_long_ = false;
      return line;
    }
    if (in_.size() > bytes_max_) {
      is_too_long_ = true;
      in_.clear();
    }
    looked_at = in_.size();
    ASSIGN_OR_RETURN(const bool has_more, read_more());
    if (has_more) continue;
    if (is_too_long_) {
      is_too_long_ = false;
      in_.clear();
      return Line{Line::Kind::too_long};
    }
    if (in_.empty()) return Line{};
    return Line{Line::Kind::whole, std::exchange(in_, {})};
  }
}

Result<bool> LineReader::read_more() {
  std::array<char, 64 << 10> bytes;
  for (;;) {
    const ssize_t count = read(fd_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return make_error(ErrorCode::io, "stdin: {}", strerror(errno));
    in_.append(bytes.data(), static_cast<std::size_t>(count));
    return count > 0;
  }
}

}  // namespace sluice::mcp
