#pragma once
// Tables `string`, `track` and `track_link` as the writer knows them: text to id, and what is not
// written yet.
// Bounded by the number of different names, which a run fixes in its first steps.
//
// Thread contract: the writer's thread.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "storage/rundb/detail/connection.h"
#include "storage/rundb/rows.h"

namespace sluice::rundb::detail {

class NameTables {
 public:
  // With what stands in the file.
  static Result<NameTables> load(Connection& connection);

  std::int64_t string_id(std::string_view text);
  std::int64_t track_id(std::optional<std::int64_t> parent_id, std::string_view kind,
                        std::string_view name, std::span<const TrackLink> links);
  // The file's id of what the facts call link `link_id`.
  void set_link_id(std::int64_t link_id, std::int64_t id_in_file);

  Status write_new(Connection& connection);
  void forget_new();  // they are committed

 private:
  using Links = std::vector<TrackLink>;  // by the file's ids, sorted
  // Parent, kind, name, links; no parent is that of TrackRow.
  using TrackKey = std::tuple<std::int64_t, std::string, std::string, Links>;

  Status write_new_tracks(Connection& connection);

  std::unordered_map<std::string, std::int64_t> strings_;
  std::map<TrackKey, std::int64_t> tracks_;
  std::vector<StringRow> new_strings_;
  std::vector<std::pair<std::int64_t, TrackKey>> new_tracks_;
  std::unordered_map<std::int64_t, std::int64_t> link_ids_;
  std::int64_t next_string_id_ = 1;
  std::int64_t next_track_id_ = 1;
};

}  // namespace sluice::rundb::detail
