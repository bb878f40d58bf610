#pragma once
// The stream between a run database and the copy that follows it, as frames of bytes
// (docs/following.md). Both directions have the same form. What comes in may be anybody's: a frame
// is believed when its length, number, type and checksum are right, and an error names the offset.
//
// Thread contract: plain owners and free functions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::relay {

inline constexpr std::uint32_t kProtocol = 2;

enum class FrameType : std::uint8_t {
  cursor = 1,    // to the far end: what the copy has
  turn = 2,      // the others from there: a turn begins
  rows = 3,      // a piece of it
  turn_end = 4,  // the copy may be committed
  failure = 5,   // why nothing more comes
};
inline constexpr std::uint8_t kFrameTypes = 5;

struct Frame {
  FrameType type = FrameType::cursor;
  std::string payload = {};
};
// A piece is 256 KiB and one row more, which may have a text of 16 MiB.
inline constexpr std::size_t kPayloadMax = 17 << 20;

// What a direction begins with.
std::string stream_header();

class FrameWriter {
 public:
  // The frame's bytes, behind `out`.
  void put(FrameType type, std::string_view payload, std::string& out);

 private:
  std::uint32_t number_ = 0;
};

class FrameReader {
 public:
  void add(std::string_view bytes);

  // None: more bytes are needed. Errors: corrupt (the bytes are no such stream, or damaged),
  // unsupported (the other end is of another version). After an error there is no next frame.
  Result<std::optional<Frame>> next();

  // The other end is one that makes such streams.
  bool has_begun() const { return has_header_; }
  std::uint64_t bytes_taken() const { return offset_; }
  // Where the stream has ended now: between two frames.
  bool is_between_frames() const { return has_header_ && waiting_.size() == at_; }

 private:
  Status take_header();
  Error damaged(std::string_view what) const;
  std::string_view rest() const { return std::string_view(waiting_).substr(at_); }
  void skip(std::size_t count);

  std::string waiting_;
  std::size_t at_ = 0;        // of what waits: taken already
  std::uint64_t offset_ = 0;  // in the stream, of what is next
  std::uint32_t number_ = 0;
  bool has_header_ = false;
};

}  // namespace sluice::relay
