#pragma once
// What the far end of a followed run sends, kept as bytes.
//
// Thread contract: starts a thread, which has ended when it returns.

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "profiler/relay/relay.h"
#include "profiler/relay/turns.h"

namespace sluice::relay {

// To a copy with that cursor, until it has all of the file or there is an error.
inline std::string sent_by_relay(const std::string& database, const rundb::CopyCursor& cursor) {
  int to[2];
  int from[2];
  REQUIRE(::pipe2(to, O_CLOEXEC) == 0);
  REQUIRE(::pipe2(from, O_CLOEXEC) == 0);
  Status status;
  std::thread relay([&] {
    status = serve_relay(database, to[0], from[1], {.pause = std::chrono::milliseconds(1)});
    ::close(from[1]);
  });
  std::string hello = stream_header();
  FrameWriter().put(FrameType::cursor, cursor_payload(cursor), hello);
  REQUIRE(::write(to[1], hello.data(), hello.size()) == static_cast<ssize_t>(hello.size()));
  FrameReader frames;
  TurnReader turns;
  std::string all;
  bool is_over = false;
  while (!is_over) {
    char bytes[4096];
    const ssize_t count = ::read(from[0], bytes, sizeof bytes);
    if (count <= 0) break;
    all.append(bytes, static_cast<std::size_t>(count));
    frames.add({bytes, static_cast<std::size_t>(count)});
    while (const auto frame = *frames.next()) {
      const auto turn = turns.take(*frame);
      is_over = !turn.ok() || (turn->has_value() && !(*turn)->turn.has_more);
    }
  }
  ::close(to[1]);
  while (true) {
    char bytes[4096];
    if (::read(from[0], bytes, sizeof bytes) <= 0) break;
  }
  relay.join();
  for (const int descriptor : {to[0], from[0]}) ::close(descriptor);
  return all;
}

}  // namespace sluice::relay
