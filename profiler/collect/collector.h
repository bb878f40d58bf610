#pragma once
// From rings to the run database: one thread that drains all rings each flush interval and writes
// what it found in batches, a transaction each.
//
// Recording never disturbs the run. If the database cannot be written (disk full, I/O error), the
// recording stops: its level goes to `off`, status() says why, what the rings still hold is
// discarded and counted, and the run goes on. What was lost, for which cause, is in table `stat`.
//
// Memory: one batch, whatever the rings hold.
//
// Thread contract: every function from any thread. Producers have stopped pushing before stop(), or
// what they push during it may stay in their rings, uncounted.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/status.h"
#include "profiler/record/recorder.h"
#include "profiler/record/side_recorder.h"
#include "storage/rundb/rows.h"
#include "storage/rundb/writer.h"

namespace sluice::collect {

// A stage of the run: what table `stage` says of the spans that have its name.
struct StageFacts {
  record::NameId name{};
  rundb::StageRow row = {};  // its name_id follows from `name`
};

// The facts of the run that are known before its first step. Ids are those that records carry
// (device, subgroup) and that the links of tracks name (link).
struct RunFacts {
  std::vector<rundb::MetaRow> meta = {};
  std::vector<rundb::DeviceRow> devices = {};
  std::vector<rundb::LinkRow> links = {};
  std::vector<StageFacts> stages = {};
  std::vector<rundb::SubgroupRow> subgroups = {};
  std::vector<rundb::KnobRow> knobs = {};
};

struct CollectorOptions {
  // How far the file is behind the run, at first. The rings must hold what is recorded meanwhile.
  std::chrono::milliseconds flush_interval{100};
  // Most records in a transaction: 16 Ki are 1 MiB as records and some 3 MiB as rows.
  std::size_t batch_record_count = 16 * 1024;
  // A share of one processor; above it, thrice in a row, the recording level is lowered by one.
  double cost_share_max = 0.1;
  // Looked at so often: longer than several passes, so that one that writes much does not count
  // alone.
  std::chrono::milliseconds cost_watch{2000};
  // False where the records' clock is not CLOCK_MONOTONIC (simulated runs): no spans, counters and
  // instants of the recorder itself, and its level stays.
  bool records_itself = true;
  // Called first on the collector's thread; null: nothing is.
  void (*thread_begins)() = nullptr;
};

class Collector {
 public:
  // Writes the facts and starts the thread. The recorder outlives the collector.
  static Result<std::unique_ptr<Collector>> start(record::Recorder& recorder,
                                                  std::unique_ptr<rundb::Writer> writer,
                                                  const RunFacts& facts,
                                                  const CollectorOptions& options = {});
  ~Collector();  // stops; an error is lost, so call stop()

  // Rows that come a few at a time and with their texts, so through no ring: written with the next
  // batch, at whatever level. A knob has a row in the facts.
  void add(std::span<const rundb::KnobChangeRow> changes);
  void add(std::span<const rundb::VerdictRow> verdicts);
  void add(const rundb::ModeRow& mode);
  void add(const rundb::ClockOffsetRow& offset);
  // Their stages are among the facts.
  void add(std::span<const rundb::LatenessRow> lateness);
  void add(const rundb::ValidationRow& validation);
  void add(rundb::SampleRows&& samples);

  // Devices, links and stages that come to be known in the run's course: in the file when it
  // returns. Before the first track that crosses such a link. Errors: that of the recording, or
  // ErrorCode::cancelled after stop().
  Status declare(const RunFacts& facts);

  // Writes down, from now on and at the end, what this recorder counts (table stat) and how it
  // reads the clocks (clock_snapshot). It is stopped before this one is, and destroyed after.
  void attach(const record::SideRecorder& side);

  // From now on, and with a pass at once: what somebody waits for comes soon, what nobody looks at
  // comes in fewer and larger batches, since each has its own price (a commit, the bins it
  // touches).
  void set_flush_interval(std::chrono::milliseconds interval);

  // Returns when all that was pushed before the call is committed (or the recording has stopped:
  // then with the reason).
  Status flush();

  // Between the two no pass is under way and no lock of the collector's is held by its thread, so
  // that a fork copies it whole. The child can do nothing with it: the thread stays behind.
  void hold_for_fork();
  void release_after_fork();

  // Drains everything, writes the final counts, closes the file. Once; returns the reason if the
  // recording stopped before.
  Status stop();

  // Records that were taken from the rings and could not be written.
  std::uint64_t unwritten_count() const;

  // The reason why the recording has stopped; ok while it runs.
  Status status() const;

 private:
  class Drain;  // what the thread works with

  Collector(std::unique_ptr<Drain> drain, const CollectorOptions& options);
  void run();
  void hand_over();  // with mutex_ held
  Status flushed(std::unique_lock<std::mutex>& lock);

  const std::unique_ptr<Drain> drain_;  // the thread's own until it is joined
  const CollectorOptions options_;

  std::mutex pass_mutex_;  // held during a pass; taken before mutex_
  mutable std::mutex mutex_;
  std::chrono::milliseconds flush_interval_;
  std::condition_variable wake_;
  std::condition_variable flushed_;
  std::uint64_t flush_asked_ = 0;  // guarded by mutex_, as are the next four
  std::uint64_t flush_done_ = 0;
  bool stop_asked_ = false;
  Status status_;
  rundb::Batch added_;              // by add(), for the next batch
  std::vector<RunFacts> declared_;  // the same by declare()

  std::thread thread_;
};

}  // namespace sluice::collect
