#pragma once
// The database's ids of the names and tracks that a recorder gave out: records carry the
// recorder's.
//
// Thread contract: one thread at a time.

#include <cstdint>
#include <vector>

#include "profiler/record/recorder.h"
#include "storage/rundb/writer.h"

namespace sluice::collect {

class DatabaseIds {
 public:
  // Both live longer.
  DatabaseIds(record::Recorder& recorder, rundb::Writer& writer)
      : recorder_(recorder), writer_(writer) {}

  // The names and tracks that the recorder gave out since the last call. Tracks only after the
  // facts have been written: the file knows a track by its links.
  void add_new_names();
  void add_new_names_and_tracks();

  // Aborts for one that the recorder never gave out, or only after the last call of the above.
  std::int64_t of(record::NameId name) const;
  std::int64_t of(record::TrackId track) const;
  std::int64_t last_track_id() const { return last_track_id_; }

 private:
  record::Recorder& recorder_;
  rundb::Writer& writer_;
  std::vector<std::int64_t> name_ids_;  // by the recorder's, as the next one
  std::vector<std::int64_t> track_ids_;
  std::int64_t last_track_id_ = 0;
};

}  // namespace sluice::collect
