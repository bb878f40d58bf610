#include "storage/rundb/detail/name_tables.h"

#include <algorithm>

#include "base/check.h"
#include "storage/rundb/detail/row_io.h"

namespace sluice::rundb::detail {
namespace {

constexpr std::int64_t kNoParent = -1;  // as in TrackRow

Result<std::map<std::int64_t, std::vector<TrackLink>>> links_by_track(Connection& connection) {
  std::map<std::int64_t, std::vector<TrackLink>> links;
  ASSIGN_OR_RETURN(const auto rows, read_rows<TrackLinkRow>(connection, "track_links"));
  for (const TrackLinkRow& row : rows) links[row.track_id].push_back({row.link_id, row.direction});
  for (auto& [track, crossed] : links) std::ranges::sort(crossed);
  return links;
}

}  // namespace

Result<NameTables> NameTables::load(Connection& connection) {
  NameTables tables;
  ASSIGN_OR_RETURN(const auto strings, read_rows<StringRow>(connection, "strings"));
  for (const StringRow& row : strings) {
    tables.strings_.emplace(row.value, row.id);
    tables.next_string_id_ = std::max(tables.next_string_id_, row.id + 1);
  }
  ASSIGN_OR_RETURN(auto links, links_by_track(connection));
  ASSIGN_OR_RETURN(const auto tracks, read_rows<TrackRow>(connection, "tracks"));
  for (const TrackRow& row : tracks) {
    tables.tracks_.emplace(TrackKey(row.parent_id, row.kind, row.name, std::move(links[row.id])),
                           row.id);
    tables.next_track_id_ = std::max(tables.next_track_id_, row.id + 1);
  }
  return tables;
}

std::int64_t NameTables::string_id(std::string_view text) {
  const auto [entry, is_new] = strings_.try_emplace(std::string(text), next_string_id_);
  if (is_new) new_strings_.push_back({next_string_id_++, std::string(text)});
  return entry->second;
}

std::int64_t NameTables::track_id(std::optional<std::int64_t> parent_id, std::string_view kind,
                                  std::string_view name, std::span<const TrackLink> links) {
  Links in_file(links.begin(), links.end());
  for (TrackLink& link : in_file) {
    const auto known = link_ids_.find(link.link_id);
    CHECK(known != link_ids_.end());  // a route over a link that the facts do not have
    link.link_id = known->second;
  }
  std::ranges::sort(in_file);
  TrackKey key(parent_id.value_or(kNoParent), kind, name, std::move(in_file));
  const auto [entry, is_new] = tracks_.try_emplace(key, next_track_id_);
  if (is_new) new_tracks_.emplace_back(next_track_id_++, std::move(key));
  return entry->second;
}

void NameTables::set_link_id(std::int64_t link_id, std::int64_t id_in_file) {
  link_ids_[link_id] = id_in_file;
}

Status NameTables::write_new(Connection& connection) {
  if (!new_strings_.empty())
    RETURN_IF_ERROR(write_rows<StringRow>(connection, "insert_string", new_strings_));
  return new_tracks_.empty() ? ok_status() : write_new_tracks(connection);
}

Status NameTables::write_new_tracks(Connection& connection) {
  ASSIGN_OR_RETURN(Statement insert, prepare_write(connection, "insert_track"));
  ASSIGN_OR_RETURN(Statement insert_link, prepare_write(connection, "insert_track_link"));
  for (const auto& [id, key] : new_tracks_) {
    const auto& [parent_id, kind, name, links] = key;
    RETURN_IF_ERROR(write_row(insert, TrackRow{id, parent_id, kind, name}));
    for (const TrackLink& link : links)
      RETURN_IF_ERROR(write_row(insert_link, TrackLinkRow{id, link.link_id, link.direction}));
  }
  return ok_status();
}

void NameTables::forget_new() {
  new_strings_.clear();
  new_tracks_.clear();
}

}  // namespace sluice::rundb::detail
