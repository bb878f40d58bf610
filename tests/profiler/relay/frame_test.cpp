// The stream's frames and turns, also as somebody else might send them.

#include "profiler/relay/frame.h"

#include <catch2/catch.hpp>
#include <random>

#include "profiler/relay/turns.h"

namespace sluice::relay {
namespace {

using Catch::Matchers::Contains;

// A stream of turns, and where its frames end.
struct Made {
  std::string bytes = stream_header();
  std::vector<std::size_t> ends = {};
};

SentTurn some_turn(std::int64_t number) {
  SentTurn sent{.turn = {.begins_anew = number == 0, .spans_left = number}, .is_live = true};
  sent.turn.cursor.run = 5;
  sent.turn.cursor.span_id = number;
  sent.turn.pieces = {{.table = 0, .replaces = true, .bytes = std::string("\1a\1b", 4)},
                      {.table = 15, .replaces = false, .bytes = std::string("\2\1x", 3)}};
  return sent;
}

Made made_stream(int turns) {
  Made made;
  FrameWriter frames;
  for (int i = 0; i < turns; ++i) {
    REQUIRE(put_turn(some_turn(i), frames, made.bytes).ok());
    made.ends.push_back(made.bytes.size());
  }
  return made;
}

// How many turns come out of it; the error, if one ends it.
struct Read {
  int turns = 0;
  std::string error = {};
  ErrorCode code = ErrorCode::internal;
};
Read read_all(std::string_view bytes, std::size_t at_once) {
  FrameReader frames;
  TurnReader turns;
  Read read;
  const auto note = [&read](const Error& error) {
    read.error = error.message();
    read.code = error.code();
    return read;
  };
  while (true) {
    Result<std::optional<Frame>> frame = frames.next();
    if (!frame.ok()) return note(frame.error());
    if (*frame) {
      const Result<std::optional<SentTurn>> turn = turns.take(*std::move(*frame));
      if (!turn.ok()) return note(turn.error());
      read.turns += turn->has_value() ? 1 : 0;
      continue;
    }
    if (bytes.empty()) return read;
    frames.add(bytes.substr(0, at_once));
    bytes.remove_prefix(std::min(at_once, bytes.size()));
  }
}

TEST_CASE("turns come out as they were put in, however the bytes arrive") {
  const Made made = made_stream(3);
  for (const std::size_t at_once : {1, 7, 100'000}) {
    CAPTURE(at_once);
    const Read read = read_all(made.bytes, at_once);
    CHECK(read.turns == 3);
    CHECK(read.error.empty());
  }
  FrameReader frames;
  TurnReader turns;
  frames.add(made.bytes);
  std::vector<SentTurn> all;
  while (const auto frame = *frames.next()) {
    if (const auto turn = *turns.take(*frame)) all.push_back(*turn);
  }
  REQUIRE(all.size() == 3);
  for (int i = 0; i < 3; ++i) {
    const SentTurn wanted = some_turn(i);
    CHECK(all[i].turn.cursor == wanted.turn.cursor);
    CHECK(all[i].turn.begins_anew == wanted.turn.begins_anew);
    CHECK(all[i].turn.spans_left == i);
    CHECK(all[i].is_live);
    REQUIRE(all[i].turn.pieces.size() == 2);
    CHECK(all[i].turn.pieces[1].bytes == wanted.turn.pieces[1].bytes);
    CHECK(all[i].turn.pieces[0].replaces);
  }
}

TEST_CASE("a stream that is cut has the turns that came whole, and no other") {
  const Made made = made_stream(3);
  for (std::size_t size = 0; size < made.bytes.size(); ++size) {
    const Read read = read_all(std::string_view(made.bytes).substr(0, size), 1 << 20);
    CAPTURE(size);
    REQUIRE(read.error.empty());
    REQUIRE(read.turns ==
            std::ranges::count_if(made.ends, [size](std::size_t end) { return end <= size; }));
  }
}

TEST_CASE("each bit that is turned is noticed, with its place") {
  const Made made = made_stream(2);
  int with_place = 0;
  for (std::size_t at = 0; at < made.bytes.size(); ++at) {
    std::string bytes = made.bytes;
    bytes[at] = static_cast<char>(bytes[at] ^ 1 << at % 8);
    const Read read = read_all(bytes, 1 << 20);
    CAPTURE(at);
    // A length that became longer waits for bytes that never come.
    REQUIRE((!read.error.empty() || read.turns < 2));
    with_place += read.error.starts_with("at byte ") ? 1 : 0;
  }
  CHECK(with_place > static_cast<int>(made.bytes.size() / 2));
}

TEST_CASE("what another program prints is shown, and another version is named") {
  Read read = read_all("Welcome to trainer!\nLast login: today\n", 3);
  CHECK(read.code == ErrorCode::corrupt);
  CHECK_THAT(read.error, Contains("not send a run, but 'W"));
  read = read_all("Welcome to trainer!\nLast login: today\n", 100);
  CHECK_THAT(read.error, Contains("'Welcome to trainer!'"));
  std::string other = stream_header();
  other[8] = 9;
  read = read_all(other, 100);
  CHECK(read.code == ErrorCode::unsupported);
  CHECK_THAT(read.error, Contains("version 9 of the stream"));
}

TEST_CASE("frames out of order, too long or of no type are refused") {
  std::string bytes = stream_header();
  FrameWriter frames;
  SECTION("rows without a turn") {
    frames.put(FrameType::rows, "\0\0", bytes);
    CHECK_THAT(read_all(bytes, 100).error, Contains("not what comes next"));
  }
  SECTION("a turn within a turn") {
    frames.put(FrameType::turn, std::string(1, '\0'), bytes);
    frames.put(FrameType::turn, std::string(1, '\0'), bytes);
    CHECK_THAT(read_all(bytes, 100).error, Contains("not what comes next"));
  }
  SECTION("an end without a turn, or with half a cursor") {
    frames.put(FrameType::turn_end, std::string(20, '\0'), bytes);
    CHECK_THAT(read_all(bytes, 100).error, Contains("not what comes next"));
  }
  SECTION("a cursor in the wrong direction") {
    frames.put(FrameType::cursor, cursor_payload({}), bytes);
    CHECK_THAT(read_all(bytes, 100).error, Contains("not what comes next"));
  }
  SECTION("a flag that there is not") {
    frames.put(FrameType::turn, "\2", bytes);
    CHECK_THAT(read_all(bytes, 100).error, Contains("not what comes next"));
  }
  SECTION("a frame twice") {
    frames.put(FrameType::turn, std::string(1, '\0'), bytes);
    bytes += bytes.substr(16);
    CHECK_THAT(read_all(bytes, 100).error, Contains("frame 0 where 1 is next"));
  }
  SECTION("four gigabytes in one frame") {
    bytes += std::string(4, '\xff') + std::string(5, '\0');
    CHECK_THAT(read_all(bytes, 100).error, Contains("at byte 16") && Contains("too long"));
  }
  SECTION("a failure is the far end's own") {
    put_failure(make_error(ErrorCode::not_found, "no run"), frames, bytes);
    const Read read = read_all(bytes, 100);
    CHECK(read.code == ErrorCode::not_found);
    CHECK_THAT(read.error, Contains("at the other end: no run"));
  }
}

TEST_CASE("streams with right checksums and any content never do harm") {
  std::mt19937 random(2);
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = stream_header();
    FrameWriter frames;
    for (std::uint32_t i = 0; i < 1 + random() % 5; ++i) {
      std::string payload(random() % 12, '\0');
      if (random() % 8 == 0) payload.resize(rundb::kCursorNumbers * 8 + 9);
      for (char& byte : payload) byte = random() % 2 == 0 ? '\0' : static_cast<char>(random());
      frames.put(static_cast<FrameType>(1 + random() % kFrameTypes), payload, bytes);
    }
    refused += read_all(bytes, 1 + random() % 300).error.empty() ? 0 : 1;
  }
  CHECK(refused > 2000);
  CHECK(refused < 4000);
}

}  // namespace
}  // namespace sluice::relay
