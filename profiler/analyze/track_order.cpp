#include "profiler/analyze/track_order.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <tuple>

namespace sluice::analyze {
namespace {

// Other ranks' steps, compute, GPUs, host, links, devices, the recorder.
std::int64_t kind_rank(std::string_view kind) {
  constexpr std::array<std::string_view, 7> kKinds = {kRankSteps, "compute", "cuda",    "host",
                                                      "link",     "device",  "recorder"};
  return std::ranges::find(kKinds, kind) - kKinds.begin();
}

// By name. Whoever records writes the stages in their order, so the ids of their names ascend.
std::map<std::string, std::int64_t, std::less<>> stage_ranks(const RunInfo& info) {
  std::vector<std::int64_t> name_ids;
  for (const auto& [name_id, stage] : info.stages) name_ids.push_back(name_id);
  std::ranges::sort(name_ids);
  std::map<std::string, std::int64_t, std::less<>> ranks;
  for (const std::int64_t name_id : name_ids) {
    const auto name = info.strings.find(name_id);
    if (name != info.strings.end())
      ranks.emplace(name->second, static_cast<std::int64_t>(ranks.size()));
  }
  return ranks;
}

// The text behind the name of the track above: of "csd0 update on unit 1" the rest behind "csd0".
std::string_view own_name(const RunInfo& info, const TrackInfo& track) {
  std::string_view name = track.name;
  const auto parent = info.tracks.find(track.parent_id);
  if (parent == info.tracks.end()) return name;
  const std::string& above = parent->second.name;
  if (name.starts_with(above) && name.substr(above.size()).starts_with(' '))
    name.remove_prefix(above.size() + 1);
  return name;
}

// As core/runtime/recording.cpp names tracks; -1: the device has but one.
std::int64_t unit_of(std::string_view name) {
  constexpr std::string_view kOnUnit = " on unit ";
  std::int64_t unit = -1;
  const std::size_t at = name.find(kOnUnit);
  if (at != name.npos) {
    const std::string_view digits = name.substr(at + kOnUnit.size());
    std::from_chars(digits.data(), digits.data() + digits.size(), unit);
  }
  return unit;
}

}  // namespace

const TrackInfo& root_of(const RunInfo& info, const TrackInfo& track) {
  const TrackInfo* at = &track;
  // A damaged file could name itself as its parent: no more rounds than there are tracks.
  for (std::size_t round = 0; round < info.tracks.size(); ++round) {
    const auto parent = info.tracks.find(at->parent_id);
    if (parent == info.tracks.end()) break;
    at = &parent->second;
  }
  return *at;
}

std::vector<std::int64_t> drawing_order(const RunInfo& info) {
  const auto ranks = stage_ranks(info);
  // Counter, kind, group, stage, unit, id.
  std::vector<
      std::tuple<bool, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>>
      places;
  for (const auto& [id, track] : info.tracks) {
    const TrackInfo& root = root_of(info, track);
    const std::string_view name = own_name(info, track);
    const auto rank = ranks.find(name.substr(0, name.find(' ')));
    const std::int64_t stage = root.id == id         ? -1
                               : rank == ranks.end() ? static_cast<std::int64_t>(ranks.size())
                                                     : rank->second;
    places.emplace_back(track.kind == "counter", kind_rank(root.kind), root.id, stage,
                        unit_of(name), id);
  }
  std::ranges::sort(places);
  std::vector<std::int64_t> order;
  for (const auto& place : places) order.push_back(std::get<5>(place));
  return order;
}

}  // namespace sluice::analyze
