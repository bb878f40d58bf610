#include "profiler/collect/database_ids.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/check.h"

namespace sluice::collect {
namespace {

template <typename Id>
std::int64_t database_id(const std::vector<std::int64_t>& ids, Id id) {
  const auto index = static_cast<std::size_t>(id);
  CHECK_LT(index, ids.size());  // a record with a name or track that its recorder never gave out
  return ids[index];
}

std::vector<rundb::TrackLink> links_of(const record::Track& track) {
  std::vector<rundb::TrackLink> links;
  for (const record::TrackLink& link : track.links) {
    links.push_back({link.link_id, link.direction == record::LinkDirection::read
                                       ? rundb::Direction::read
                                       : rundb::Direction::write});
  }
  return links;
}

}  // namespace

void DatabaseIds::add_new_names() {
  for (const std::string& name : recorder_.names_since(name_ids_.size()))
    name_ids_.push_back(writer_.string_id(name));
}

void DatabaseIds::add_new_names_and_tracks() {
  add_new_names();
  for (const record::Track& track : recorder_.tracks_since(track_ids_.size())) {
    std::optional<std::int64_t> parent_id;
    if (track.parent != record::kNoTrack) parent_id = of(track.parent);
    track_ids_.push_back(writer_.track_id(parent_id, track.kind, track.name, links_of(track)));
    last_track_id_ = std::max(last_track_id_, track_ids_.back());
  }
}

std::int64_t DatabaseIds::of(record::NameId name) const { return database_id(name_ids_, name); }
std::int64_t DatabaseIds::of(record::TrackId track) const { return database_id(track_ids_, track); }

}  // namespace sluice::collect
