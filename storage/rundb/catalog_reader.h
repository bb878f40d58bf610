#pragma once
// The meaning of the ids in rows: names, tracks and the links that they cross, devices, stages.
//
// Thread contract: that of its reader (storage/rundb/reader.h), which lives longer.

#include <vector>

#include "base/status.h"
#include "storage/rundb/reader.h"
#include "storage/rundb/rows.h"

namespace sluice::rundb {

class CatalogReader {
 public:
  explicit CatalogReader(Reader& reader) : file_(reader.file_.get()) {}

  Result<std::vector<StringRow>> strings();
  Result<std::vector<TrackRow>> tracks();
  Result<std::vector<LinkRow>> links();
  Result<std::vector<DeviceRow>> devices();
  Result<std::vector<TrackLinkRow>> track_links();
  Result<std::vector<StageRow>> stages();

 private:
  detail::ReadConnection* file_;
};

}  // namespace sluice::rundb
