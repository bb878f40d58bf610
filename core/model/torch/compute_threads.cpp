#include "core/model/torch/compute_threads.h"

#include <ATen/Parallel.h>

#include <latch>
#include <thread>
#include <vector>

#include "base/process_limits.h"
#include "base/refusal.h"

namespace sluice::model {

ComputeThreads::ComputeThreads(int thread_count)
    : thread_count_(thread_count > 0 ? thread_count : usable_processor_count()) {}

void ComputeThreads::apply() const {
  if (at::get_num_threads() != thread_count_) at::set_num_threads(thread_count_);
}

// All of them at once, beside the caller.
Status ComputeThreads::check_startable() const {
  return at_refusal_border([this] {
    std::latch end(1);
    std::vector<std::jthread> threads;
    try {
      for (int t = 1; t < thread_count_; ++t) threads.emplace_back([&end] { end.wait(); });
    } catch (const std::exception&) {
      end.count_down();
      throw;
    }
    end.count_down();
    return ok_status();
  });
}

}  // namespace sluice::model
