#include "core/model/gpt2/compute_threads.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace sluice::model {

ComputeThreads::ComputeThreads(int thread_count)
    : thread_count_(thread_count > 0
                        ? thread_count
                        : std::max(1, static_cast<int>(std::thread::hardware_concurrency()))) {}

void ComputeThreads::apply() {
  const std::thread::id here = std::this_thread::get_id();
  if (applied_on_ == here) return;
  at::set_num_threads(thread_count_);
  applied_on_ = here;
}

}  // namespace sluice::model
