#pragma once
// From CUPTI's buffers to our records.
//
// A batch of buffers is gone through twice: first for what joins (which call, layer and step a
// correlation id belongs to), then for what is recorded, since CUPTI promises no order, and a
// kernel's id may be explained in a later buffer than the kernel. What still lacks its layer or
// step then is held until the next batch and pushed with what is known by then.
//
// A record that is damaged, or that CUPTI could not time, is counted and left out; a buffer that
// stops being records is left there, and where is remembered. A kind that is not asked for is
// stepped over and counted.
//
// Thread contract: one thread at a time, which is the ring's producer meanwhile.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "profiler/cupti/activity_buffers.h"
#include "profiler/cupti/activity_structs.h"
#include "profiler/cupti/clock_snapshots.h"
#include "profiler/cupti/correlations.h"
#include "profiler/cupti/gpu_names.h"
#include "profiler/cupti/record_walk.h"
#include "profiler/record/recorder.h"

namespace sluice::cupti {

struct DecoderOptions {
  std::size_t held_count_max = std::size_t{1} << 16;
  CorrelationOptions correlations = {};
};

struct DecoderCounts {
  std::int64_t decoded = 0;      // records that became a span or a counter
  std::int64_t other_kind = 0;   // of a kind that is not decoded
  std::int64_t untimed = 0;      // CUPTI had no memory for their time stamps
  std::int64_t implausible = 0;  // ends before it begins, is of another day, has no such GPU
  std::int64_t unreadable_name = 0;
  std::int64_t without_step = 0;  // pushed, but nobody said which step it was for
  std::int64_t given_up = 0;      // pushed before their step could come, because too many waited
  std::int64_t foreign_id = 0;    // external ids that somebody else pushed
  std::int64_t truncated_buffer = 0;
  std::int64_t damaged_buffer = 0;
  std::int64_t refused_bytes = 0;  // of those buffers, from the damage on
};

class ActivityDecoder {
 public:
  // Recorder and ring outlive the decoder.
  static Result<std::unique_ptr<ActivityDecoder>> create(NextRecord next_record,
                                                         record::Recorder& recorder,
                                                         record::Ring& ring,
                                                         const DecoderOptions& options = {});

  // One batch; the buffers are the caller's again afterwards. `buffer_bytes` is what each of them
  // has room for. There is at least one snapshot.
  void decode(std::span<const CompletedBuffer> buffers, std::size_t buffer_bytes,
              const ClockSnapshots& clock);
  // Pushes what is held.
  void finish();

  const DecoderCounts& counts() const { return counts_; }
  std::int64_t lost_correlation_count() const { return correlations_.lost_count(); }
  std::size_t held_count() const { return held_.size(); }
  // "buffer 3: no record at byte 640 of 4096"; empty if none was damaged.
  const std::string& last_damage() const { return last_damage_; }

 private:
  struct Held {
    record::SpanRecord span;
    std::uint32_t correlation;
  };
  struct MemoryChange {
    TimeNs ts;
    std::uint32_t gpu;
    bool is_pinned;
    std::int64_t bytes;  // negative: released
  };
  struct Times {
    bool good;
    TimeNs ts;
    TimeNs dur;
  };

  ActivityDecoder(const RecordWalk& walk, record::Recorder& recorder, record::Ring& ring,
                  const DecoderOptions& options);

  void index(std::uint32_t kind, const std::uint8_t* record);
  void index_call(const ApiActivity& call);
  void index_external(const ExternalCorrelationActivity& external);

  void decode_record(std::uint32_t kind, const std::uint8_t* record);
  void decode(const KernelActivity& kernel);
  void decode(const MemcpyActivity& copy);
  void decode(const PeerMemcpyActivity& copy);
  void decode(const MemsetActivity& set);
  void decode(const AllocationActivity& allocation);
  void decode(const MemoryActivity& memory);
  void decode(const OverheadActivity& overhead);
  void decode(const SynchronizationActivity& synchronization);

  // Counts what is not good.
  Times times_of(std::uint64_t start, std::uint64_t end);
  bool is_plausible(std::uint32_t gpu, std::uint64_t bytes);
  void push_or_hold(const record::SpanRecord& span, std::uint32_t correlation);
  // With what is known of the correlation; false where layer or step is not.
  bool join(record::SpanRecord& span, std::uint32_t correlation) const;
  void push(const record::SpanRecord& span);
  void change_memory(std::uint64_t ts, std::uint32_t memory_kind, std::uint32_t gpu,
                     std::uint64_t bytes, int sign);
  void push_memory();
  void note_end(const WalkResult& result, std::size_t valid_bytes);
  void refuse(std::size_t offset, std::size_t valid_bytes, const char* why);

  const RecordWalk walk_;
  record::Ring& ring_;
  const DecoderOptions options_;
  GpuNames names_;
  Correlations correlations_;
  const ClockSnapshots* clock_ = nullptr;  // of the batch

  std::vector<Held> held_;
  std::vector<MemoryChange> memory_changes_;
  std::vector<std::int64_t> memory_bytes_;  // by GPU
  std::int64_t pinned_bytes_ = 0;

  DecoderCounts counts_;
  std::int64_t buffer_number_ = 0;
  std::string last_damage_;
};

}  // namespace sluice::cupti
