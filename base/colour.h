#pragma once
// The colours of what a step's time is spent on, one a meaning. The tables that declare a meaning
// take its colour from here: stages (core/stages/stage.h), causes and phases
// (profiler/analyze/cause.h, phase.h). From those tables it comes into run databases, into the
// window and onto the page.
//
// Thread contract: constants and free functions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

// 0xRRGGBB, on a dark and on a light page.
struct ThemedColour {
  std::uint32_t dark = 0;
  std::uint32_t light = 0;
};
constexpr ThemedColour in_both_themes(std::uint32_t colour) { return {colour, colour}; }

namespace palette {
inline constexpr std::uint32_t kForward = 0x4e79a7;
inline constexpr std::uint32_t kBackward = 0x7a5ea8;
inline constexpr std::uint32_t kHostKernel = 0xc47fb0;
inline constexpr std::uint32_t kCompress = 0xb07aa1;
inline constexpr std::uint32_t kHostLink = 0x59a5d8;
inline constexpr std::uint32_t kRead = 0x4fb286;
inline constexpr std::uint32_t kUpdate = 0xf2a65a;
inline constexpr std::uint32_t kWrite = 0xe07a5f;
inline constexpr std::uint32_t kParameters = 0x76b7b2;
inline constexpr std::uint32_t kCommit = 0x9aa5b1;
inline constexpr std::uint32_t kRecorder = 0xb9a77c;
inline constexpr std::uint32_t kActivationsOut = 0xc9544d;
inline constexpr std::uint32_t kActivationsBack = 0x2f8f6b;
inline constexpr std::uint32_t kRanks = 0xd4b13f;
inline constexpr std::uint32_t kProgram = 0x8c7b6b;
inline constexpr std::uint32_t kUnknown = 0x7d8590;  // no stage, no known cause
// Nothing but waiting lies near the page in both themes.
inline constexpr ThemedColour kWaiting = {.dark = 0x59616f, .light = 0x8b93a1};
}  // namespace palette

// "#4e79a7".
std::string colour_text(std::uint32_t colour);
// None: it is not written that way, and so must not get onto a page.
std::optional<std::uint32_t> parse_colour(std::string_view text);

}  // namespace sluice
