#pragma once
// What the critical paths of the steps looked at went over, summed while one step after the other
// is in memory.
//
// Thread contract: one thread at a time.

#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "profiler/analyze/critical_path.h"

namespace sluice::analyze {

inline constexpr std::size_t kEvidenceMax = 16;

// Time on the path, and the operations and steps that took most of it.
class PathTime {
 public:
  void add(TimeNs ns, std::int64_t span, std::int64_t step);
  void add(const PathTime& other);
  TimeNs ns() const { return ns_; }
  std::vector<std::int64_t> spans() const;
  std::vector<std::int64_t> steps() const;

 private:
  struct Piece {
    TimeNs ns = 0;
    std::int64_t span = -1;
  };
  void keep_worst();
  TimeNs ns_ = 0;
  std::vector<Piece> worst_;
  std::map<std::int64_t, TimeNs> by_step_;
};

// Operations of one track, name and device.
struct PathUse {
  const TrackInfo* track = nullptr;
  const std::string* name = nullptr;
  const rundb::StageRow* stage = nullptr;  // null: the producer did not say
  std::int64_t device = -1;
  std::int64_t count = 0;
  std::int64_t bytes = 0;
  std::int64_t alone = 0;  // of them: nothing else was asked for or under way on that track
  PathTime path;
};

struct CausePath {
  PathTime path;
  std::map<std::string, TimeNs> by_name;
};

class PathSurvey {
 public:
  void add(const StepData& step, const StepVerdict& verdict);

  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  std::map<Key, PathUse> uses;
  std::array<CausePath, kCauseCount> causes;
  std::size_t step_count = 0;
  TimeNs dur_ns = 0;
  PathTime before_forward;       // the program's own reads and work, with forward right behind
  std::int64_t turns = 0;        // on paths: from a drive's transfer to computing, and back
  std::int64_t read_writes = 0;  // the same from a drive's reads to its writes, and back
  TimeNs drive_read_ns = 0;      // of drives that can do both at once
  TimeNs drive_write_ns = 0;
  TimeNs drive_both_ns = 0;
  TimeNs host_kernel_ns = 0;       // summed
  TimeNs host_kernel_busy_ns = 0;  // when at least one ran
  std::int64_t compress_in_bytes = 0;
  std::int64_t compress_out_bytes = 0;
  TimeNs compress_out_ns = 0;  // while at least one of them was sent

  double share(TimeNs ns) const {
    return dur_ns > 0 ? static_cast<double>(ns) / static_cast<double>(dur_ns) : 0;
  }

 private:
  void add_operations(const StepData& step);
  void add_path(const StepData& step, const StepVerdict& verdict);
  void add_compression(const StepData& step);
  PathUse& use_of(const Span& span);
};

// A transfer that crosses the own link of a drive.
bool crosses_drive(const Span& span, const RunInfo& info);

}  // namespace sluice::analyze
