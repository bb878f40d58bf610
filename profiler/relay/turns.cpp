#include "profiler/relay/turns.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace sluice::relay {
namespace {

constexpr std::size_t kNumberBytes = 8;
constexpr std::size_t kRowsHeaderBytes = 2;  // table, flags
constexpr std::size_t kWordsMax = 4096;      // of a failure

enum Flag : std::uint8_t { begins_anew = 1, replaces = 1, has_more = 1, is_live = 2 };

// The errors that a far end may have; what it calls otherwise is `internal`.
constexpr std::array kCodes = {ErrorCode::config,      ErrorCode::not_found, ErrorCode::busy,
                               ErrorCode::unsupported, ErrorCode::io,        ErrorCode::corrupt};

void put_number(std::int64_t number, std::string& out) {
  for (int shift = 0; shift < 64; shift += 8)
    out += static_cast<char>(static_cast<std::uint64_t>(number) >> shift);
}

std::int64_t number_at(std::string_view bytes, std::size_t at) {
  std::uint64_t number = 0;
  for (int shift = 0; shift < 64; shift += 8)
    number |= std::uint64_t{static_cast<unsigned char>(bytes[at++])} << shift;
  return static_cast<std::int64_t>(number);
}

Error unexpected(const Frame& frame) {
  return make_error(ErrorCode::corrupt,
                    "a frame of type {} with {} bytes, which is not what comes "
                    "next",
                    static_cast<int>(frame.type), frame.payload.size());
}

rundb::CopyCursor cursor_at(std::string_view bytes) {
  std::array<std::int64_t, rundb::kCursorNumbers> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = number_at(bytes, i * kNumberBytes);
  return *rundb::cursor_of(numbers);
}
constexpr std::size_t kCursorBytes = rundb::kCursorNumbers * kNumberBytes;

// 0: no flag beyond `known`.
bool has_flags(std::string_view bytes, std::size_t at, unsigned known) {
  return (static_cast<unsigned char>(bytes[at]) & ~known) == 0;
}

Error far_failure(const Frame& frame) {
  const std::string_view payload = frame.payload;
  if (payload.empty() || payload.size() > kWordsMax) return unexpected(frame);
  const std::size_t code = static_cast<unsigned char>(payload.front());
  return Error(code < kCodes.size() ? kCodes[code] : ErrorCode::internal,
               fmt::format("at the other end: {}", payload.substr(1)));
}

}  // namespace

std::string cursor_payload(const rundb::CopyCursor& cursor) {
  std::string payload;
  for (const std::int64_t number : rundb::numbers_of(cursor)) put_number(number, payload);
  return payload;
}

Result<rundb::CopyCursor> cursor_in(const Frame& frame) {
  if (frame.type != FrameType::cursor || frame.payload.size() != kCursorBytes)
    return unexpected(frame);
  return cursor_at(frame.payload);
}

Status put_turn(const SentTurn& sent, FrameWriter& frames, std::string& out) {
  const rundb::CopyTurn& turn = sent.turn;
  std::size_t bytes = 0;
  for (const rundb::CopiedPiece& piece : turn.pieces) {
    bytes += piece.bytes.size();
    if (piece.bytes.size() + kRowsHeaderBytes <= kPayloadMax && bytes <= kTurnBytesMax) continue;
    return make_error(ErrorCode::unsupported,
                      "table {} has rows of {} bytes, more than can be followed",
                      rundb::copied_table_name(piece.table), bytes);
  }
  frames.put(FrameType::turn, std::string(1, turn.begins_anew ? Flag::begins_anew : 0), out);
  for (const rundb::CopiedPiece& piece : turn.pieces) {
    std::string payload;
    payload += static_cast<char>(piece.table);
    payload += piece.replaces ? static_cast<char>(Flag::replaces) : '\0';
    frames.put(FrameType::rows, payload + piece.bytes, out);
  }
  std::string end = cursor_payload(turn.cursor);
  put_number(turn.spans_left, end);
  end +=
      static_cast<char>((turn.has_more ? Flag::has_more : 0) | (sent.is_live ? Flag::is_live : 0));
  frames.put(FrameType::turn_end, end, out);
  return ok_status();
}

void put_failure(const Error& error, FrameWriter& frames, std::string& out) {
  const auto code = std::ranges::find(kCodes, error.code());
  std::string payload(1, static_cast<char>(code - kCodes.begin()));
  payload += error.message().substr(0, kWordsMax - 1);
  frames.put(FrameType::failure, payload, out);
}

Result<std::optional<SentTurn>> TurnReader::take(Frame frame) {
  switch (frame.type) {
    case FrameType::turn:
      if (open_ || frame.payload.size() != 1 || !has_flags(frame.payload, 0, Flag::begins_anew))
        return unexpected(frame);
      open_ = SentTurn{.turn = {.begins_anew = frame.payload[0] != 0}};
      bytes_ = 0;
      return std::nullopt;
    case FrameType::rows: {
      RETURN_IF_ERROR(take_rows(std::move(frame)));
      return std::nullopt;
    }
    case FrameType::turn_end: {
      ASSIGN_OR_RETURN(SentTurn turn, ended(frame));
      return turn;
    }
    case FrameType::failure:
      return far_failure(frame);
    case FrameType::cursor:
      break;
  }
  return unexpected(frame);
}

Status TurnReader::take_rows(Frame frame) {
  const std::size_t size = frame.payload.size();
  if (!open_ || size < kRowsHeaderBytes || !has_flags(frame.payload, 1, Flag::replaces))
    return unexpected(frame);
  bytes_ += size;
  if (bytes_ > kTurnBytesMax) {
    return make_error(ErrorCode::corrupt, "a turn of more than {} bytes, which is too long",
                      kTurnBytesMax);
  }
  rundb::CopiedPiece piece{.table = static_cast<unsigned char>(frame.payload[0]),
                           .replaces = frame.payload[1] != 0,
                           .bytes = std::move(frame.payload)};
  piece.bytes.erase(0, kRowsHeaderBytes);
  open_->turn.pieces.push_back(std::move(piece));
  return ok_status();
}

Result<SentTurn> TurnReader::ended(const Frame& frame) {
  constexpr std::size_t kSize = kCursorBytes + kNumberBytes + 1;
  if (!open_ || frame.payload.size() != kSize ||
      !has_flags(frame.payload, kSize - 1, Flag::has_more | Flag::is_live))
    return unexpected(frame);
  SentTurn sent = *std::exchange(open_, std::nullopt);
  const auto flags = static_cast<unsigned char>(frame.payload[kSize - 1]);
  sent.turn.cursor = cursor_at(frame.payload);
  sent.turn.spans_left = std::max<std::int64_t>(0, number_at(frame.payload, kCursorBytes));
  sent.turn.has_more = (flags & Flag::has_more) != 0;
  sent.is_live = (flags & Flag::is_live) != 0;
  return sent;
}

}  // namespace sluice::relay
