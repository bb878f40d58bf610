#include "core/calibrate/calibration.h"

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "core/calibrate/alike_drives.h"
#include "core/calibrate/drive_load.h"
#include "core/calibrate/host_kernels.h"
#include "core/calibrate/machine_facts.h"
#include "core/calibrate/processor_toll.h"
#include "core/csd/update_kernel.h"

namespace sluice::calibrate {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;
// A burst that lasts longer is taken for the drive's rate: it is what the other figures saw, too.
constexpr double kBurstSeconds = 0.6;

// Over files.
Figure sum(const std::vector<FileRates>& rates, LaneRates FileRates::* direction) {
  LaneRates sum;
  for (const FileRates& of_file : rates) sum.add(of_file.*direction);
  return sum.figure();
}

class Measurement {
 public:
  explicit Measurement(const CalibrationOptions& options)
      : options_(options), is_quick_(options.effort == Effort::quick) {}

  Result<Calibration> run() {
    ASSIGN_OR_RETURN(const std::vector<Directory> directories,
                     check_directories(options_.directories, options_.size_bytes));
    result_.notes = shared_volumes(directories);
    result_.machine = machine_facts();
    result_.thread_count = options_.thread_count;
    ASSIGN_OR_RETURN(DriveLoad load, DriveLoad::make());
    load_ = &load;
    for (const Directory& directory : directories) {
      ASSIGN_OR_RETURN(TestFile file, TestFile::create(directory.path, options_.size_bytes));
      files_.push_back(std::move(file));
      result_.drives.emplace_back().directory = directory;
    }
    plan();
    for (const Step& step : steps_) total_seconds_ += step.estimated_seconds;
    start_ns_ = monotonic_now_ns();
    for (const Step& step : steps_) RETURN_IF_ERROR(take(step));
    return std::move(result_);
  }

 private:
  struct Step {
    std::string what;
    double estimated_seconds;
    std::function<Status()> run;
  };

  // The time left is guessed from how the steps so far kept to their estimates.
  Status take(const Step& step) {
    if (options_.on_progress) {
      const double taken = static_cast<double>(monotonic_now_ns() - start_ns_) / 1e9;
      const double pace = done_seconds_ > 0 ? taken / done_seconds_ : 1;
      options_.on_progress(step.what, done_seconds_ / total_seconds_,
                           (total_seconds_ - done_seconds_) * pace);
    }
    RETURN_IF_ERROR(step.run());
    done_seconds_ += step.estimated_seconds;
    return ok_status();
  }

  void plan();
  void plan_drive(std::size_t drive);
  void plan_kernels();
  void plan_compute();

  std::vector<const TestFile*> all_files() const {
    std::vector<const TestFile*> files;
    for (const TestFile& file : files_) files.push_back(&file);
    return files;
  }
  LoadShape shape(std::int64_t inflight_bytes) const {
    LoadShape shape;
    shape.inflight_bytes = std::min(inflight_bytes, options_.size_bytes / 2);
    const bool is_main = inflight_bytes == kRunInflightBytes;
    shape.window_count = is_quick_ ? 3 : is_main ? 5 : 3;
    shape.window_seconds = is_quick_ || !is_main ? 0.2 : 0.4;
    return shape;
  }
  static double seconds_of(const LoadShape& shape) {
    return shape.window_count * shape.window_seconds + 0.4;
  }

  Status measure_point(std::size_t drive, std::int64_t inflight_bytes);
  Status measure_mixed(std::size_t drive);
  Status measure_latency(std::size_t drive);
  Status measure_bursts(std::size_t drive);
  Result<platform::Burst> measure_burst(std::size_t drive, bool writes, double bytes_per_s);
  Status measure_together();
  Status measure_processor_toll();

  const CalibrationOptions& options_;
  bool is_quick_;
  Calibration result_;
  DriveLoad* load_ = nullptr;
  std::vector<TestFile> files_;
  std::vector<Step> steps_;
  double total_seconds_ = 0;
  double done_seconds_ = 0;
  TimeNs start_ns_ = 0;
};

void Measurement::plan() {
  // First, since it may not be there.
  if (options_.accelerator.time) {
    steps_.push_back(
        {"the accelerator", options_.accelerator.estimated_seconds, [this]() -> Status {
           ASSIGN_OR_RETURN(const model::DeviceTimes times, options_.accelerator.time());
           result_.accelerator = figures_of(times);
           return ok_status();
         }});
  }
  steps_.push_back(
      {"writing the test files",
       static_cast<double>(options_.size_bytes) / 500e6 * static_cast<double>(files_.size()),
       [this] { return load_->fill(all_files()); }});
  for (std::size_t drive = 0; drive < files_.size(); ++drive) plan_drive(drive);
  if (files_.size() > 1) {
    steps_.push_back({"all folders at once", 3 * seconds_of(shape(kRunInflightBytes)),
                      [this] { return measure_together(); }});
  }
  plan_kernels();
  if (!options_.accelerator.time) plan_compute();
  steps_.push_back({"computing beside transfers", is_quick_ ? 13.0 : 30.0,
                    [this] { return measure_processor_toll(); }});
}

void Measurement::plan_compute() {
  steps_.push_back({"forward and backward", options_.compute.estimated_seconds, [this]() -> Status {
                      ASSIGN_OR_RETURN(ComputeTimes times, options_.compute.time());
                      result_.compute_samples = std::move(times.samples);
                      result_.compute = fit_compute(result_.compute_samples);
                      result_.wake = fit_wake(times.wake_samples);
                      return ok_status();
                    }});
}

void Measurement::plan_drive(std::size_t drive) {
  const std::string path = options_.directories[drive];
  steps_.push_back({path + ": latency", 0.1, [this, drive] { return measure_latency(drive); }});
  std::vector<std::int64_t> points = {4 * kKiB, 64 * kKiB, kMiB,
                                      4 * kMiB, 16 * kMiB, kRunInflightBytes};
  if (is_quick_) points = {4 * kKiB, kMiB, kRunInflightBytes};
  for (const std::int64_t point : points) {
    steps_.push_back({fmt::format("{}: {} KiB in flight", path, point / kKiB),
                      2 * seconds_of(shape(point)),
                      [this, drive, point] { return measure_point(drive, point); }});
  }
  steps_.push_back({path + ": both ways at once", seconds_of(shape(kRunInflightBytes)),
                    [this, drive] { return measure_mixed(drive); }});
  steps_.push_back({path + ": bursts after idling", 6 * (kBurstSeconds + 0.6),
                    [this, drive] { return measure_bursts(drive); }});
}

void Measurement::plan_kernels() {
  const KernelOptions kernels{options_.thread_count, is_quick_ ? 3 : 5};
  const auto add = [this](std::string what, std::function<void()> run) {
    steps_.push_back({std::move(what), 0.5, [run = std::move(run)] {
                        run();
                        return ok_status();
                      }});
  };
  for (const auto rule :
       {optimizer::RuleKind::adamw, optimizer::RuleKind::sgd, optimizer::RuleKind::adagrad}) {
    for (const auto format :
         {StateFormatKind::fp32, StateFormatKind::exact, StateFormatKind::compact}) {
      const std::string name = csd::update_name(optimizer::rule_info(rule), format);
      add("updates by " + name, [this, kernels, rule, format, name] {
        result_.update.push_back({name, measure_update(rule, format, kernels)});
      });
    }
  }
  add("staging of gradients", [this, kernels] { result_.stage = measure_stage(kernels); });
  add("checksums", [this, kernels] { result_.checksum = measure_checksum(kernels); });
  add("compression", [this, kernels] { result_.compress = measure_compress(kernels); });
  add("decompression", [this, kernels] { result_.decompress = measure_decompress(kernels); });
  add("copying of memory", [this, kernels] { result_.memory_copy = measure_memory_copy(kernels); });
}

Status Measurement::measure_latency(std::size_t drive) {
  ASSIGN_OR_RETURN(std::vector<double> seconds, load_->page_latencies(files_[drive], 65));
  // The slowest of single reads is an accident; the spread is that of the middle nine tenths.
  std::sort(seconds.begin(), seconds.end());
  result_.drives[drive].page_latency_seconds =
      figure_of(std::vector<double>(seconds.begin() + 3, seconds.end() - 3));
  return ok_status();
}

Status Measurement::measure_point(std::size_t drive, std::int64_t inflight_bytes) {
  const TestFile* file = &files_[drive];
  LoadShape load = shape(inflight_bytes);
  ASSIGN_OR_RETURN(const std::vector<FileRates> read, load_->run(std::span(&file, 1), load));
  load.reads = false;
  load.writes = true;
  ASSIGN_OR_RETURN(const std::vector<FileRates> write, load_->run(std::span(&file, 1), load));
  result_.drives[drive].curve.push_back(
      {inflight_bytes, read[0].read.figure(), write[0].write.figure()});
  return ok_status();
}

Status Measurement::measure_mixed(std::size_t drive) {
  const TestFile* file = &files_[drive];
  LoadShape load = shape(kRunInflightBytes);
  load.writes = true;
  ASSIGN_OR_RETURN(const std::vector<FileRates> rates, load_->run(std::span(&file, 1), load));
  DriveFigures& figures = result_.drives[drive];
  figures.mixed_read = rates[0].read.figure();
  figures.mixed_write = rates[0].write.figure();
  figures.duplex = fit_duplex(figures.alone(), figures.mixed());
  return ok_status();
}

// The middle of three, by size: one alone may be chance.
Result<platform::Burst> Measurement::measure_burst(std::size_t drive, bool writes,
                                                   double bytes_per_s) {
  LoadShape load = shape(kRunInflightBytes);
  load.reads = !writes;
  load.writes = writes;
  std::array<platform::Burst, 3> bursts;
  for (platform::Burst& burst : bursts) {
    ASSIGN_OR_RETURN(const std::vector<Progress> progress,
                     load_->progress_after_idling(files_[drive], load, kBurstSeconds));
    burst = fit_burst(progress, bytes_per_s);
  }
  std::ranges::sort(bursts, {}, &platform::Burst::size_bytes);
  return bursts[1];
}

Status Measurement::measure_bursts(std::size_t drive) {
  DriveFigures& figures = result_.drives[drive];
  ASSIGN_OR_RETURN(figures.read_burst,
                   measure_burst(drive, false, figures.best(&CurvePoint::read).value));
  ASSIGN_OR_RETURN(figures.write_burst,
                   measure_burst(drive, true, figures.best(&CurvePoint::write).value));
  return ok_status();
}

Status Measurement::measure_together() {
  for (std::string& sentence : pool_alike(result_.drives)) {
    result_.notes.push_back(std::move(sentence));
  }
  const std::vector<const TestFile*> files = all_files();
  TogetherFigures together;
  LoadShape load = shape(kRunInflightBytes);
  ASSIGN_OR_RETURN(const std::vector<FileRates> read, load_->run(files, load));
  together.read = sum(read, &FileRates::read);
  load.writes = true;
  ASSIGN_OR_RETURN(const std::vector<FileRates> mixed, load_->run(files, load));
  together.mixed_read = sum(mixed, &FileRates::read);
  together.mixed_write = sum(mixed, &FileRates::write);
  load.reads = false;
  ASSIGN_OR_RETURN(const std::vector<FileRates> write, load_->run(files, load));
  together.write = sum(write, &FileRates::write);
  std::vector<double> alone_read, alone_write;
  for (const DriveFigures& drive : result_.drives) {
    alone_read.push_back(drive.alone().read);
    alone_write.push_back(drive.alone().write);
  }
  together.read_limit = fit_shared_limit(alone_read, together.read.value);
  together.write_limit = fit_shared_limit(alone_write, together.write.value);
  if (together.read_limit.is_found || together.write_limit.is_found) {
    together.duplex =
        fit_duplex({together.read_limit.bytes_per_s, together.write_limit.bytes_per_s},
                   {together.mixed_read.value, together.mixed_write.value});
  }
  result_.together = together;
  return ok_status();
}

// In flight is what the slowest drive moves in a fifth of a second, so that the load is soon over
// when computing is.
Status Measurement::measure_processor_toll() {
  double slowest = std::numeric_limits<double>::max();
  for (const DriveFigures& drive : result_.drives) {
    slowest = std::min({slowest, drive.alone().read, drive.alone().write});
  }
  TollOptions toll;
  toll.thread_count = options_.thread_count;
  const auto requests = static_cast<std::int64_t>(slowest * 0.2 / kRequestBytes);
  toll.inflight_bytes = std::clamp<std::int64_t>(requests, 1, 16) * kRequestBytes;
  if (is_quick_) {
    toll.pair_count = 11;
    toll.seconds = 0.4;
  }
  ASSIGN_OR_RETURN(result_.toll, measure_toll(*load_, all_files(), toll));
  return ok_status();
}

}  // namespace

Result<Calibration> measure(const CalibrationOptions& options) {
  return Measurement(options).run();
}

}  // namespace sluice::calibrate
