#include "core/calibrate/drive_load.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/clock.h"
#include "base/split_mix.h"
#include "base/units.h"

namespace sluice::calibrate {
namespace {

// After this the load counts as running, whatever the drives have done.
constexpr TimeNs kWarmUpMaxNs = 2'000'000'000;
// About what a drive idles between two phases of a step, and more than a throttle's slice.
constexpr std::chrono::milliseconds kIdleBeforeBurst{400};
// Smaller than a run's: what a drive takes at once is seen to within a request.
constexpr std::int64_t kBurstRequestBytes = 256 << 10;

// Drives may treat zeros better than data.
void fill_random(std::span<std::byte> bytes) {
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= bytes.size();
       at += sizeof(std::uint64_t)) {
    const std::uint64_t word = split_mix(1, at);
    std::memcpy(&bytes[at], &word, sizeof word);
  }
}

}  // namespace

void LaneRates::add(const LaneRates& other) {
  bytes_per_s += other.bytes_per_s;
  windows.resize(std::max(windows.size(), other.windows.size()));
  for (std::size_t i = 0; i < other.windows.size(); ++i) windows[i] += other.windows[i];
}

Figure LaneRates::figure() const {
  Figure figure = figure_of(windows);
  figure.value = bytes_per_s;
  return figure;
}

Result<TestFile> TestFile::create(const std::string& directory, std::int64_t size_bytes) {
  const std::string path =
      (std::filesystem::path(directory) / fmt::format(".sluice-calibrate-{}", getpid())).string();
  ASSIGN_OR_RETURN(io::File file,
                   io::File::open(path, {io::FileAccess::create_new, io::Caching::direct}));
  unlink(path.c_str());
  RETURN_IF_ERROR(file.allocate(size_bytes));
  return TestFile(std::move(file), size_bytes);
}

struct DriveLoad::Lane {
  const TestFile* file;
  io::IoDirection direction;
  std::int64_t request_bytes;
  std::int64_t next_offset_bytes = 0;
  std::int64_t done_bytes = 0;          // in this window
  std::vector<double> windows = {};     // bytes a second of those before
  double earlier_bytes = 0;             // in those before
  std::vector<Progress> progress = {};  // since the first began
};

// Cuts the time under load into windows: the first begins when each lane has moved once what it
// has in flight, since a queue that fills up and a drive that was idle are not what is measured.
// Slow drives get longer windows, since completions come in bunches of up to the whole queue.
class DriveLoad::Windows {
 public:
  Windows(std::vector<Lane>& lanes, const LoadShape& shape)
      : lanes_(lanes), shape_(shape), start_ns_(monotonic_now_ns()) {}

  bool is_over() const {
    return windows_done_ >= shape_.window_count && !(shape_.goes_on && shape_.goes_on());
  }

  void on_completions() {
    const TimeNs now_ns = monotonic_now_ns();
    if (!is_warm_) {
      is_warm_ = now_ns - start_ns_ > kWarmUpMaxNs || each_lane_moved_its_queue();
      if (is_warm_) {
        begin(first_ns_ = now_ns);
        for (Lane& lane : lanes_) lane.earlier_bytes = 0;
      }
      return;
    }
    if (is_over()) return;
    const double since_first = static_cast<double>(now_ns - first_ns_) / 1e9;
    for (Lane& lane : lanes_) {
      lane.progress.push_back(
          {since_first, lane.earlier_bytes + static_cast<double>(lane.done_bytes)});
    }
    const double seconds = static_cast<double>(now_ns - begin_ns_) / 1e9;
    if (seconds < shape_.window_seconds) return;
    if (!each_lane_moved_its_queue() && seconds < shape_.window_seconds_max) return;
    for (Lane& lane : lanes_) {
      lane.windows.push_back(static_cast<double>(lane.done_bytes) / seconds);
    }
    windows_done_ += 1;
    begin(now_ns);
  }

 private:
  bool each_lane_moved_its_queue() const {
    return std::ranges::all_of(
        lanes_, [this](const Lane& lane) { return lane.done_bytes >= shape_.inflight_bytes; });
  }
  void begin(TimeNs now_ns) {
    begin_ns_ = now_ns;
    for (Lane& lane : lanes_) {
      lane.earlier_bytes += static_cast<double>(lane.done_bytes);
      lane.done_bytes = 0;
    }
  }

  std::vector<Lane>& lanes_;
  const LoadShape& shape_;
  TimeNs start_ns_;
  TimeNs first_ns_ = 0;
  TimeNs begin_ns_ = 0;
  bool is_warm_ = false;
  int windows_done_ = 0;
};

Result<DriveLoad> DriveLoad::make() {
  DriveLoad load;
  ASSIGN_OR_RETURN(load.read_buffer_, io::PageAlignedBuffer::allocate(kRequestBytes));
  ASSIGN_OR_RETURN(load.write_buffer_, io::PageAlignedBuffer::allocate(kRequestBytes));
  fill_random(load.write_buffer_.bytes());
  return load;
}

io::IoRequest DriveLoad::next_request(Lane& lane, std::uint64_t user_data) {
  const std::int64_t offset_bytes = lane.next_offset_bytes;
  lane.next_offset_bytes += lane.request_bytes;
  if (lane.next_offset_bytes + lane.request_bytes > lane.file->size_bytes()) {
    lane.next_offset_bytes = 0;
  }
  const bool writes = lane.direction == io::IoDirection::write;
  return {&lane.file->file(), offset_bytes,
          (writes ? write_buffer_ : read_buffer_)
              .bytes()
              .first(static_cast<std::size_t>(lane.request_bytes)),
          lane.direction, user_data};
}

Result<std::vector<FileRates>> DriveLoad::run(std::span<const TestFile* const> files,
                                              const LoadShape& shape) {
  const std::int64_t request_bytes = std::min(shape.inflight_bytes, kRequestBytes);
  const std::int64_t depth = shape.inflight_bytes / request_bytes;
  std::vector<Lane> lanes;
  for (const TestFile* file : files) {
    if (shape.reads) lanes.push_back({file, io::IoDirection::read, request_bytes});
    if (shape.writes) lanes.push_back({file, io::IoDirection::write, request_bytes});
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<io::IoEngine> engine,
                   io::open_io_engine({.queue_depth = static_cast<std::size_t>(
                                           depth * static_cast<std::int64_t>(lanes.size()))}));
  std::vector<io::IoRequest> requests;
  for (std::int64_t i = 0; i < depth; ++i) {
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      requests.push_back(next_request(lanes[lane], lane));
    }
  }
  engine->submit(requests);
  Windows windows(lanes, shape);
  std::vector<io::IoCompletion> completions(64);
  while (engine->inflight_count() > 0) {
    const std::size_t count = engine->reap(completions, 1);
    requests.clear();
    const bool is_over = windows.is_over();
    for (io::IoCompletion& completion : std::span(completions).first(count)) {
      RETURN_IF_ERROR(std::move(completion.status));
      Lane& lane = lanes[completion.user_data];
      lane.done_bytes += request_bytes;
      if (!is_over) requests.push_back(next_request(lane, completion.user_data));
    }
    windows.on_completions();
    engine->submit(requests);
  }
  std::vector<FileRates> rates(files.size());
  const std::size_t lanes_a_file = lanes.size() / files.size();
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    FileRates& of_file = rates[i / lanes_a_file];
    const bool is_read = lanes[i].direction == io::IoDirection::read;
    LaneRates& of_lane = is_read ? of_file.read : of_file.write;
    of_lane = LaneRates{fit_rate(lanes[i].progress), lanes[i].windows};
  }
  return rates;
}

Result<std::vector<Progress>> DriveLoad::progress_after_idling(const TestFile& file,
                                                               const LoadShape& shape,
                                                               double seconds) {
  const std::int64_t request_bytes = std::min(shape.inflight_bytes, kBurstRequestBytes);
  const std::int64_t depth = shape.inflight_bytes / request_bytes;
  Lane lane{&file, shape.writes ? io::IoDirection::write : io::IoDirection::read, request_bytes};
  ASSIGN_OR_RETURN(const std::unique_ptr<io::IoEngine> engine,
                   io::open_io_engine({.queue_depth = static_cast<std::size_t>(depth)}));
  std::vector<io::IoRequest> requests;
  for (std::int64_t i = 0; i < depth; ++i) requests.push_back(next_request(lane, 0));
  std::this_thread::sleep_for(kIdleBeforeBurst);
  const TimeNs start_ns = monotonic_now_ns();
  engine->submit(requests);
  std::vector<Progress> progress;
  std::vector<io::IoCompletion> completions(64);
  while (engine->inflight_count() > 0) {
    const std::size_t count = engine->reap(completions, 1);
    requests.clear();
    const double now = static_cast<double>(monotonic_now_ns() - start_ns) / 1e9;
    for (io::IoCompletion& completion : std::span(completions).first(count)) {
      RETURN_IF_ERROR(std::move(completion.status));
      lane.done_bytes += request_bytes;
      if (now < seconds) requests.push_back(next_request(lane, 0));
    }
    if (now < seconds) progress.push_back({now, static_cast<double>(lane.done_bytes)});
    engine->submit(requests);
  }
  return progress;
}

Status DriveLoad::fill(std::span<const TestFile* const> files) {
  constexpr std::size_t kDepth = 8;
  ASSIGN_OR_RETURN(const std::unique_ptr<io::IoEngine> engine,
                   io::open_io_engine({.queue_depth = kDepth * files.size()}));
  std::vector<Lane> lanes;
  for (const TestFile* file : files) lanes.push_back({file, io::IoDirection::write, kRequestBytes});
  std::vector<io::IoRequest> requests;
  const auto push_next = [&](std::size_t lane) {
    if (lanes[lane].done_bytes >= lanes[lane].file->size_bytes()) return;
    lanes[lane].done_bytes += kRequestBytes;
    requests.push_back(next_request(lanes[lane], lane));
  };
  for (std::size_t i = 0; i < kDepth * files.size(); ++i) push_next(i % files.size());
  engine->submit(requests);
  std::vector<io::IoCompletion> completions(kDepth);
  while (engine->inflight_count() > 0) {
    const std::size_t count = engine->reap(completions, 1);
    requests.clear();
    for (io::IoCompletion& completion : std::span(completions).first(count)) {
      RETURN_IF_ERROR(std::move(completion.status));
      push_next(completion.user_data);
    }
    engine->submit(requests);
  }
  for (const TestFile* file : files) RETURN_IF_ERROR(file->file().sync_data());
  return ok_status();
}

Result<std::vector<double>> DriveLoad::page_latencies(const TestFile& file, int count) {
  ASSIGN_OR_RETURN(const std::unique_ptr<io::IoEngine> engine,
                   io::open_io_engine({.queue_depth = 1}));
  std::vector<double> seconds;
  for (int i = 0; i < count; ++i) {
    const auto page =
        static_cast<std::int64_t>(split_mix(2, static_cast<std::uint64_t>(i)) %
                                  static_cast<std::uint64_t>(file.size_bytes() / kPageBytes));
    const io::IoRequest request{&file.file(), page * kPageBytes,
                                read_buffer_.bytes().first(kPageBytes), io::IoDirection::read, 0};
    io::IoCompletion completion;
    const TimeNs start_ns = monotonic_now_ns();
    engine->submit(std::span(&request, 1));
    engine->reap(std::span(&completion, 1), 1);
    RETURN_IF_ERROR(std::move(completion.status));
    seconds.push_back(static_cast<double>(monotonic_now_ns() - start_ns) / 1e9);
  }
  return seconds;
}

}  // namespace sluice::calibrate
