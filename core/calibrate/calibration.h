#pragma once
// Measures the machine: drives, the link they share, kernels of the host, forward and backward.
// platform_text.h makes a platform file of it; docs/calibration.md says what each figure means.
//
// Thread contract: one call at a time. Test files have no names: however the program ends, nothing
// is left in the folders.

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/calibrate/accelerator.h"
#include "core/calibrate/directories.h"
#include "core/calibrate/figure.h"
#include "core/calibrate/fit.h"

namespace sluice::calibrate {

enum class Effort { quick, thorough };

struct ComputeTimes {
  std::vector<ComputeSample> samples;
  std::vector<WakeSample> wake_samples;
};
// Times forward and backward of models; handed in, since the model's library is not known here.
struct ComputeTimer {
  double estimated_seconds = 0;
  std::function<Result<ComputeTimes>()> time;
};

struct CalibrationOptions {
  std::vector<std::string> directories;
  std::int64_t size_bytes = std::int64_t{1} << 30;  // of each test file
  Effort effort = Effort::thorough;
  int thread_count = 1;          // of a run's workers
  ComputeTimer compute;          // where no accelerator is timed
  AcceleratorTimer accelerator;  // may be empty
  // The next measurement, the share that is done and about how long the rest takes.
  std::function<void(std::string_view what, double share, double left_seconds)> on_progress;
};

struct CurvePoint {
  std::int64_t inflight_bytes = 0;
  Figure read;
  Figure write;
};

struct DriveFigures {
  Directory directory;
  std::vector<CurvePoint> curve;  // ascending; the last is what a run keeps in flight
  Figure page_latency_seconds;
  Figure mixed_read;  // both ways at once
  Figure mixed_write;
  platform::Duplex duplex = platform::Duplex::full;
  platform::Burst read_burst;  // after idling; 0 bytes: none was seen
  platform::Burst write_burst;

  // The best point of the curve, in one direction.
  Figure best(Figure CurvePoint::* direction) const {
    const auto median = [&](const CurvePoint& point) { return (point.*direction).value; };
    return *std::ranges::max_element(curve, {}, median).*direction;
  }
  BothWays alone() const { return {curve.back().read.value, curve.back().write.value}; }
  BothWays mixed() const { return {mixed_read.value, mixed_write.value}; }
};

// All drives at once.
struct TogetherFigures {
  Figure read;
  Figure write;
  Figure mixed_read;
  Figure mixed_write;
  SharedLimit read_limit;
  SharedLimit write_limit;
  platform::Duplex duplex = platform::Duplex::full;
};

struct MachineFacts {
  std::string processor;
  int processor_count = 0;
  std::int64_t memory_bytes = 0;
  std::string kernel;
  std::string date;  // UTC
};

// A rule's updates of state in a format, by the name of a platform file: "adamw", "adamw_compact".
struct UpdateFigure {
  std::string name;
  Figure elements_per_s;
};

struct Calibration {
  MachineFacts machine;
  int thread_count = 1;
  std::vector<DriveFigures> drives;
  std::optional<TogetherFigures> together;  // of two drives or more
  std::vector<UpdateFigure> update;
  Figure stage;
  Figure checksum;  // bytes a second
  Figure compress;
  Figure decompress;
  Figure memory_copy;
  std::vector<ComputeSample> compute_samples;  // empty where an accelerator computes
  ComputeRates compute;
  Wake wake;
  std::optional<AcceleratorFigures> accelerator;
  Toll toll;                       // of all drives at once
  std::vector<std::string> notes;  // what was not measured or not as asked, what was pooled
};

// The folders are checked first: see check_directories().
Result<Calibration> measure(const CalibrationOptions& options);

}  // namespace sluice::calibrate
