#pragma once
// The times of an accelerator (core/model/device_times.h) as the figures of a platform's [compute].
//
// Thread contract: free functions.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/calibrate/figure.h"
#include "core/model/device_times.h"
#include "core/platform/platform.h"

namespace sluice::calibrate {

struct AcceleratorCopies {
  std::int64_t size_bytes = 0;
  bool is_pinned = true;
  Figure in;  // bytes a second, host to device
  Figure out;
};

struct AcceleratorProducts {
  std::int64_t side = 0;
  Figure flop_per_s;
};

struct AcceleratorFigures {
  std::string description;
  std::int64_t memory_bytes = 0;
  bool computes_on_processor = false;
  std::vector<AcceleratorCopies> copies;  // rising sizes, pinned and pageable
  Figure latency_seconds;
  Figure mixed;  // bytes a second, both ways together
  platform::Duplex duplex = platform::Duplex::full;
  std::vector<AcceleratorProducts> products;  // rising sides

  // The copies of a run: pinned, and of the largest size.
  const AcceleratorCopies& of_a_run() const;
  // The best of the products.
  Figure matmul() const;
};

AcceleratorFigures figures_of(const model::DeviceTimes& times);

// Times an accelerator; handed in, since its library is not known here.
struct AcceleratorTimer {
  double estimated_seconds = 0;
  std::function<Result<model::DeviceTimes>()> time;  // empty: there is none
};

// Its [compute], with every figure's spread in a comment.
std::string accelerator_table(const AcceleratorFigures& figures);

}  // namespace sluice::calibrate
