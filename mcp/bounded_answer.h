#pragma once
// An answer as a program gets it: what was found, on which evidence, within a number of bytes.
// Text that stands in a run database is a stranger's: it is cleaned here, in one place.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/analyze/answer.h"
#include "profiler/answers/record_json.h"

namespace sluice::mcp {

using answers::Json;

inline constexpr std::size_t kAnswerBytesDefault = 4 << 10;
inline constexpr std::size_t kAnswerBytesLeast = 1 << 10;  // the frame of an answer has its room
inline constexpr std::size_t kAnswerBytesMost = 256 << 10;

// What was not put into an answer in the first place.
struct LeftOut {
  std::string at;  // "/path": as a JSON pointer
  std::int64_t count = 0;
  std::string how;  // to get it
};

struct Answered {
  analyze::Outcome outcome = analyze::Outcome::answer;
  std::string why = {};
  Json data = Json::object();
  std::vector<std::int64_t> spans = {};  // ids of table span
  std::vector<std::int64_t> steps = {};  // ids of table step
  std::vector<LeftOut> left_out = {};
  std::vector<std::string> heart = {};  // members of `data` that are cut last
};

// {outcome: "found" | "nothing" | "could not look", why, evidence: {spans, steps}, ...data,
// left_off: [{at, count, how}]}, whose text has at most `bytes_max` bytes, which is at least
// kAnswerBytesLeast. The longest lists and texts are cut first, at their ends, and `left_off`
// counts what went. Control characters become \xNN, bytes that are no UTF-8 too, numbers that JSON
// has no word for null.
Json bounded_answer(Answered answered, std::size_t bytes_max);

// As bounded_answer() writes JSON.
std::string text_of(const Json& json);

}  // namespace sluice::mcp
