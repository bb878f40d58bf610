#include "core/calibrate/processor_toll.h"

#include <atomic>
#include <thread>
#include <vector>

#include "core/calibrate/lock_step.h"

namespace sluice::calibrate {
namespace {

struct Beside {
  double seconds = 0;
  double bytes_per_s = 0;  // of all drives, both ways
};

Result<Beside> compute_beside(DriveLoad& load, std::span<const TestFile* const> files,
                              const TollOptions& options) {
  Beside beside;
  std::atomic<bool> is_computing = true;
  std::thread computing([&] {
    beside.seconds = lock_step_seconds(options.thread_count, options.seconds);
    is_computing = false;
  });
  LoadShape shape;
  shape.inflight_bytes = options.inflight_bytes;
  shape.writes = true;
  shape.window_count = 1;
  shape.goes_on = [&] { return is_computing.load(); };
  const Result<std::vector<FileRates>> rates = load.run(files, shape);
  computing.join();
  if (!rates.ok()) return rates.error();
  for (const FileRates& of_file : *rates) {
    beside.bytes_per_s += of_file.read.bytes_per_s + of_file.write.bytes_per_s;
  }
  return beside;
}

}  // namespace

Result<Toll> measure_toll(DriveLoad& load, std::span<const TestFile* const> files,
                          const TollOptions& options) {
  const auto alone = [&] { return lock_step_seconds(options.thread_count, options.seconds); };
  std::vector<TollSample> samples;
  double before = alone();
  for (int pair = 0; pair < options.pair_count; ++pair) {
    ASSIGN_OR_RETURN(const Beside beside, compute_beside(load, files, options));
    const double after = alone();
    samples.push_back({(before + after) / 2, beside.seconds, beside.bytes_per_s});
    before = after;
  }
  return fit_toll(samples);
}

}  // namespace sluice::calibrate
