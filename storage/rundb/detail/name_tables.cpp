#include "storage/rundb/detail/name_tables.h"

#include <algorithm>

#include "base/check.h"
#include "storage/rundb/detail/schema.h"
#include "storage/rundb/sql_text.h"

namespace sluice::rundb::detail {
namespace {

std::string_view text_of(Direction direction) {
  return direction == Direction::read ? "read" : "write";
}

Result<std::map<std::int64_t, std::vector<TrackLink>>> links_by_track(Connection& connection) {
  std::map<std::int64_t, std::vector<TrackLink>> links;
  ASSIGN_OR_RETURN(Statement rows, connection.prepare(named_sql(kReadsSql, "track_links")));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.step());
    if (!has_row) break;
    links[rows.int64_at(0)].push_back(
        {rows.int64_at(1), rows.text_at(2) == "read" ? Direction::read : Direction::write});
  }
  for (auto& [track, crossed] : links) std::ranges::sort(crossed);
  return links;
}

}  // namespace

Result<NameTables> NameTables::load(Connection& connection) {
  NameTables tables;
  ASSIGN_OR_RETURN(Statement strings, connection.prepare(named_sql(kReadsSql, "strings")));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, strings.step());
    if (!has_row) break;
    const std::int64_t id = strings.int64_at(0);
    tables.strings_.emplace(strings.text_at(1), id);
    tables.next_string_id_ = std::max(tables.next_string_id_, id + 1);
  }
  ASSIGN_OR_RETURN(auto links, links_by_track(connection));
  ASSIGN_OR_RETURN(Statement tracks, connection.prepare(named_sql(kReadsSql, "tracks")));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, tracks.step());
    if (!has_row) break;
    const std::int64_t id = tracks.int64_at(0);
    std::optional<std::int64_t> parent_id;
    if (!tracks.is_null(1)) parent_id = tracks.int64_at(1);
    tables.tracks_.emplace(
        TrackKey(parent_id, tracks.text_at(2), tracks.text_at(3), std::move(links[id])), id);
    tables.next_track_id_ = std::max(tables.next_track_id_, id + 1);
  }
  return tables;
}

std::int64_t NameTables::string_id(std::string_view text) {
  const auto [entry, is_new] = strings_.try_emplace(std::string(text), next_string_id_);
  if (is_new) new_strings_.emplace_back(next_string_id_++, text);
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
  TrackKey key(parent_id, kind, name, std::move(in_file));
  const auto [entry, is_new] = tracks_.try_emplace(key, next_track_id_);
  if (is_new) new_tracks_.emplace_back(next_track_id_++, std::move(key));
  return entry->second;
}

void NameTables::set_link_id(std::int64_t link_id, std::int64_t id_in_file) {
  link_ids_[link_id] = id_in_file;
}

Status NameTables::write_new(Connection& connection) {
  if (!new_strings_.empty()) {
    ASSIGN_OR_RETURN(Statement insert, connection.prepare(named_sql(kWritesSql, "insert_string")));
    for (const auto& [id, value] : new_strings_)
      RETURN_IF_ERROR(insert.run(id, std::string_view(value)));
  }
  return new_tracks_.empty() ? ok_status() : write_new_tracks(connection);
}

Status NameTables::write_new_tracks(Connection& connection) {
  ASSIGN_OR_RETURN(Statement insert, connection.prepare(named_sql(kWritesSql, "insert_track")));
  ASSIGN_OR_RETURN(Statement insert_link,
                   connection.prepare(named_sql(kWritesSql, "insert_track_link")));
  for (const auto& [id, key] : new_tracks_) {
    const auto& [parent_id, kind, name, links] = key;
    RETURN_IF_ERROR(insert.run(id, parent_id, std::string_view(kind), std::string_view(name)));
    for (const TrackLink& link : links) {
      RETURN_IF_ERROR(insert_link.run(id, link.link_id, text_of(link.direction)));
    }
  }
  return ok_status();
}

void NameTables::forget_new() {
  new_strings_.clear();
  new_tracks_.clear();
}

}  // namespace sluice::rundb::detail
