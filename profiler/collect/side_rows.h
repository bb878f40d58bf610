#pragma once
// The reports of recorders beside the rings, as rows: their counts, of which table stat gets what
// was added since it was last written, and their readings of the clocks.
//
// Thread contract: attach from any thread, the rest from the collector's.

#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "profiler/record/side_recorder.h"
#include "storage/rundb/rows.h"

namespace sluice::collect {

class SideRows {
 public:
  void attach(const record::SideRecorder& recorder);

  // Asks all of them; true: there is something to write.
  bool ask();
  // The file stays behind by these until written() is called.
  void add_to(std::vector<rundb::StatRow>& stats, std::vector<rundb::ClockRow>& clocks) const;
  void written();

 private:
  struct Side {
    const record::SideRecorder* recorder;
    std::vector<record::SideCount> counts = {};
    std::vector<record::SideCount> written = {};      // as it stands in the file
    std::vector<record::ClockReading> readings = {};  // not yet written
    std::size_t readings_asked = 0;
  };

  mutable Mutex mutex_;
  std::vector<Side> sides_ GUARDED_BY(mutex_);
};

}  // namespace sluice::collect
