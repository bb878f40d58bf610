#pragma once
// The rates of drives under a load like that of a run: for each file and direction a lane with so
// many bytes in flight, in requests of at most 1 MiB, each completion replaced at once
// (core/runtime/io_lanes.h).
//
// Thread contract: one thread.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/calibrate/figure.h"
#include "core/calibrate/fit.h"
#include "storage/io/io_engine.h"
#include "storage/io/page_aligned_buffer.h"

namespace sluice::calibrate {

// The default settings of a run, whose product keys the chunk curve (core/csd/drive.h).
inline constexpr std::int64_t kRequestBytes = 1 << 20;
inline constexpr std::int64_t kQueueDepth = 64;
inline constexpr std::int64_t kRunInflightBytes = kRequestBytes * kQueueDepth;

// A file whose blocks are all written. It has no name from the beginning, so nothing is left behind
// however the program ends.
class TestFile {
 public:
  static Result<TestFile> create(const std::string& directory, std::int64_t size_bytes);

  const io::File& file() const { return file_; }
  std::int64_t size_bytes() const { return size_bytes_; }

 private:
  TestFile(io::File file, std::int64_t size_bytes)
      : file_(std::move(file)), size_bytes_(size_bytes) {}
  io::File file_;
  std::int64_t size_bytes_;
};

struct LoadShape {
  std::int64_t inflight_bytes = kRunInflightBytes;  // a lane
  bool reads = true;
  bool writes = false;
  int window_count = 5;                // repeats, one after another under one load
  double window_seconds = 0.3;         // each, at least
  double window_seconds_max = 1.0;     // however little was moved
  std::function<bool()> goes_on = {};  // if given, windows follow one another while this is true
};

// The load of one file and direction, or the sum of several.
struct LaneRates {
  double bytes_per_s = 0;       // over all windows (core/calibrate/fit.h, fit_rate)
  std::vector<double> windows;  // of each alone

  void add(const LaneRates& other);
  Figure figure() const;
};

struct FileRates {
  LaneRates read;
  LaneRates write;
};

class DriveLoad {
 public:
  static Result<DriveLoad> make();

  // All files at once; the rates of each.
  Result<std::vector<FileRates>> run(std::span<const TestFile* const> files,
                                     const LoadShape& shape);
  // The bytes that came, and when, after idling: for the drive's burst. `shape` names one
  // direction; its windows are not used. Goes on for `seconds`.
  Result<std::vector<Progress>> progress_after_idling(const TestFile& file, const LoadShape& shape,
                                                      double seconds);
  // Writes every block of every file once, all files at once.
  Status fill(std::span<const TestFile* const> files);
  // Seconds that a read of one page takes when nothing else goes on.
  Result<std::vector<double>> page_latencies(const TestFile& file, int count);

 private:
  struct Lane;
  class Windows;
  DriveLoad() = default;
  io::IoRequest next_request(Lane& lane, std::uint64_t user_data);

  // Contents do not matter, so all lanes have one buffer a direction in common.
  io::PageAlignedBuffer read_buffer_;
  io::PageAlignedBuffer write_buffer_;
};

}  // namespace sluice::calibrate
