#include "core/calibrate/processor_toll.h"

#include <atomic>
#include <thread>
#include <vector>

namespace sluice::calibrate {
namespace {

struct Beside {
  double pass_seconds = 0;
  double bytes_per_s = 0;  // of all drives, both ways
};

Result<Beside> compute_beside(DriveLoad& load, std::span<const TestFile* const> files,
                              const std::function<Result<double>()>& pass_seconds,
                              std::int64_t inflight_bytes) {
  std::atomic<bool> is_computing = true;
  Result<double> seconds = 0.0;
  std::thread computing([&] {
    seconds = pass_seconds();
    is_computing = false;
  });
  LoadShape shape;
  shape.inflight_bytes = inflight_bytes;
  shape.writes = true;
  shape.window_count = 1;
  shape.goes_on = [&] { return is_computing.load(); };
  const Result<std::vector<FileRates>> rates = load.run(files, shape);
  computing.join();
  if (!rates.ok()) return rates.error();
  if (!seconds.ok()) return seconds.error();
  Beside beside{*seconds, 0};
  for (const FileRates& of_file : *rates) {
    beside.bytes_per_s += of_file.read.bytes_per_s + of_file.write.bytes_per_s;
  }
  return beside;
}

}  // namespace

Result<Toll> measure_toll(DriveLoad& load, std::span<const TestFile* const> files,
                          const std::function<Result<double>(double)>& pass_seconds,
                          const TollOptions& options) {
  const auto compute = [&] { return pass_seconds(options.seconds); };
  std::vector<TollSample> samples;
  ASSIGN_OR_RETURN(double before, compute());
  for (int pair = 0; pair < options.pair_count; ++pair) {
    ASSIGN_OR_RETURN(const Beside beside,
                     compute_beside(load, files, compute, options.inflight_bytes));
    ASSIGN_OR_RETURN(const double after, compute());
    samples.push_back({(before + after) / 2, beside.pass_seconds, beside.bytes_per_s});
    before = after;
  }
  return fit_toll(samples);
}

}  // namespace sluice::calibrate
