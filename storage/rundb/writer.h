#pragma once
// The one connection that writes a run database (and checkpoints it). Rows come in batches; a batch
// is a transaction, so a reader, or whoever opens the file after a crash, sees whole batches only.
//
// The first error (disk full, I/O error) stops the recording: the batch is undone, the file stays
// readable with all earlier batches, and every later append returns the same error.
//
// Thread contract: one thread at a time. One writer a file: a second one, in any process, is
// refused (ErrorCode::busy).

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "storage/rundb/rows.h"

namespace sluice::rundb {

enum class IfExists : std::uint8_t {
  refuse,
  replace,  // a run database only: any other file is never deleted
};

// Whose clock the rows are by.
enum class ClockOf : std::uint8_t {
  this_machine,  // a stretch of a recording begins now: table clock_snapshot gets a row
  the_batches,   // rows of other files: their clock_snapshot comes with them
};

// The part of an endless run that is kept in full. Rows of `step` stay, as do the coarser levels of
// detail (bins of kKeptLodLevel and wider).
struct Retention {
  std::int64_t full_steps = 0;  // spans, flows and counters of N steps; 0: of all
  std::int64_t size_bytes = 0;  // that the file may have; fewer steps are kept in full where it
                                // would be passed. 0: any
};
inline constexpr int kKeptLodLevel = 4;

class Writer {
 public:
  // Refuses a path where something lies that is not a run database (ErrorCode::config). For saying
  // so early: create() and open_append() look again.
  static Status check_path(const std::string& path);

  // A new file with the schema in it. The folder must exist.
  static Result<std::unique_ptr<Writer>> create(const std::string& path, IfExists if_exists,
                                                ClockOf clock_of = ClockOf::this_machine);

  // Goes on with the file of an earlier run. `first_step` is the first step that will run now.
  // Rows of it and of later steps are from an attempt that was never committed: those step rows go,
  // and what was changed or said of those steps, their spans stay without a step, and stat
  // `steps_redone` counts them. Steps before it that have no row, because a kill came before their
  // batch, are counted in stat `steps_not_recorded`.
  static Result<std::unique_ptr<Writer>> open_append(const std::string& path,
                                                     std::int64_t first_step);

  ~Writer();  // closes; an error is lost, so call close()

  // The id of this text, or of this track, in the file. New ones are written by the next append.
  // The same parent, kind, name and links are the same track. Links are named by the ids that
  // write_facts() was given; the file may have others for them.
  std::int64_t string_id(std::string_view text);
  std::int64_t track_id(std::optional<std::int64_t> parent_id, std::string_view kind,
                        std::string_view name, std::span<const TrackLink> links = {});

  // From now on. Stat `steps_thinned` counts the steps that are no longer in full.
  void set_retention(const Retention& retention);

  // Id of the next batch's first span; its other spans get consecutive ids. Lets flows refer to
  // spans of the same batch. Spans with id 0 are numbered by the writer. Spans of one track that
  // are adjacent in a batch are found fastest.
  std::int64_t next_span_id() const;

  // Each is one transaction.
  Status write_facts(const Facts& facts);
  Status append(const Batch& batch);

  // Adds `last_stats`, says in stat `recording_stopped` why, if an error stopped the recording, and
  // leaves one self-contained file where no reader is holding the write-ahead log. Returns the
  // first error of the recording.
  Status close(std::span<const StatRow> last_stats = {});

  const std::string& path() const;

 private:
  struct Impl;  // keeps SQLite out of this header
  explicit Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::rundb
