#include "core/model/torch/compute_threads.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <thread>

namespace sluice::model {

ComputeThreads::ComputeThreads(int thread_count)
    : thread_count_(thread_count > 0
                        ? thread_count
                        : std::max(1, static_cast<int>(std::thread::hardware_concurrency()))) {}

void ComputeThreads::apply() const {
  if (at::get_num_threads() != thread_count_) at::set_num_threads(thread_count_);
}

}  // namespace sluice::model
