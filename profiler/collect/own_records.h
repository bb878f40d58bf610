#pragma once
// The recorder's records of itself, on a track of its own: a span for each pass that wrote
// something, an instant where a recording level begins and for each of the recorder's notes, and as
// counters the processor time that it takes and the memory that the process has.
//
// Thread contract: one thread at a time.

#include <string>
#include <vector>

#include "base/units.h"
#include "profiler/collect/process_memory.h"
#include "profiler/record/recorder.h"

namespace sluice::collect {

class OwnRecords {
 public:
  // The recorder lives longer. `records_itself`: CollectorOptions.
  OwnRecords(record::Recorder& recorder, bool records_itself);

  void note_pass(TimeNs begin_ts);
  // Takes the changes of level and the notes from the recorder. At every level, `off` too: a file
  // says when what was recorded, and who stopped the run.
  void take_news();
  // A share of a processor. At most one waits to be written: while nothing else is recorded nothing
  // is written, so samples would pile up.
  void note_share(double share, TimeNs ts);

  // Not yet written.
  const std::vector<record::SpanRecord>& spans() const { return spans_; }
  const std::vector<record::CounterRecord>& counters() const { return counters_; }
  bool is_empty() const { return spans_.empty() && counters_.empty(); }
  bool has_news() const { return has_news_; }
  void clear();

 private:
  void add_instant(const std::string& text, TimeNs ts);

  record::Recorder& recorder_;
  const bool records_itself_;
  record::TrackId track_;
  record::TrackId share_track_;
  record::TrackId resident_track_;
  record::NameId collect_name_;
  ProcessMemory process_memory_;
  std::vector<record::SpanRecord> spans_;
  std::vector<record::CounterRecord> counters_;
  bool has_share_ = false;  // among counters_
  bool has_news_ = false;   // that are written at once
};

}  // namespace sluice::collect
