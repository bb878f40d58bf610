#include "profiler/c_api/stage_meaning.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/colour.h"

namespace sluice::c_api {
namespace {

// Words of docs/rundb_schema.md, by the header's values.
constexpr std::array<const char*, 2> kKinds = {"kernel", "transfer"};
constexpr std::array<const char*, 6> kPlaces = {"host",        "compute", "device",
                                                "accelerator", "peer",    "ranks"};
constexpr std::array<const char*, 4> kPhases = {"", "forward", "backward", "parameters"};
constexpr std::array<const char*, 5> kCauses = {"", "compression", "commit", "ranks", "program"};

template <std::size_t kCount>
bool has(const std::array<const char*, kCount>& words, int32_t value) {
  return value >= 0 && static_cast<std::size_t>(value) < words.size();
}
bool is_meaning(const sluice_stage& stage) {
  return has(kKinds, stage.kind) && has(kPlaces, stage.place) && has(kPhases, stage.phase) &&
         has(kCauses, stage.cause);
}

// -1: none of them.
template <std::size_t kCount>
int32_t value_of(const std::array<const char*, kCount>& words, std::string_view word) {
  const auto found = std::ranges::find(words, word);
  return found == words.end() ? -1 : static_cast<int32_t>(found - words.begin());
}

template <std::size_t kCount>
std::vector<std::string> list_of(const std::array<const char*, kCount>& words) {
  return {words.begin(), words.end()};
}

std::uint32_t colour_of(const sluice_stage& stage) {
  constexpr std::array<std::uint32_t, 5> kOfCauses = {0, palette::kCompress, palette::kCommit,
                                                      palette::kRanks, palette::kProgram};
  constexpr std::array<std::uint32_t, 6> kOfPlaces = {palette::kHostKernel, palette::kForward,
                                                      palette::kUpdate,     palette::kHostLink,
                                                      palette::kHostLink,   palette::kRanks};
  if (stage.cause != SLUICE_BY_PLACE) return kOfCauses[static_cast<std::size_t>(stage.cause)];
  if (stage.phase == SLUICE_BACKWARD) return palette::kBackward;
  if (stage.kind == SLUICE_TRANSFER && stage.place == SLUICE_ON_DEVICE) return palette::kRead;
  return kOfPlaces[static_cast<std::size_t>(stage.place)];
}

}  // namespace

std::optional<rundb::StageRow> stage_row(const sluice_stage& stage) {
  if (!is_meaning(stage)) return std::nullopt;
  rundb::StageRow row;
  row.kind = kKinds[static_cast<std::size_t>(stage.kind)];
  row.place = kPlaces[static_cast<std::size_t>(stage.place)];
  row.phase = kPhases[static_cast<std::size_t>(stage.phase)];
  row.cause = kCauses[static_cast<std::size_t>(stage.cause)];
  row.colour = colour_text(colour_of(stage));
  return row;
}

std::optional<sluice_stage> stage_of(const StageWords& words) {
  const sluice_stage stage = {value_of(kKinds, words.kind), value_of(kPlaces, words.place),
                              value_of(kPhases, words.phase), value_of(kCauses, words.cause)};
  return is_meaning(stage) ? std::optional(stage) : std::nullopt;
}

StageWordLists stage_words() {
  return {list_of(kKinds), list_of(kPlaces), list_of(kPhases), list_of(kCauses)};
}

}  // namespace sluice::c_api
