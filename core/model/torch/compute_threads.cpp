#include "core/model/torch/compute_threads.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <latch>
#include <thread>
#include <vector>

#include "base/process_limits.h"
#include "base/refusal.h"

namespace sluice::model {
namespace {

// libtorch shares work out from so many values a thread on (at::internal::GRAIN_SIZE).
constexpr std::int64_t kSharedOutValues = 32768;

}  // namespace

ComputeThreads::ComputeThreads(int thread_count)
    : thread_count_(thread_count > 0 ? thread_count : usable_processor_count()) {}

void ComputeThreads::apply() const {
  if (at::get_num_threads() != thread_count_) at::set_num_threads(thread_count_);
}

// The threads of a calling thread begin with its first work that is shared out, and stay.
Status ComputeThreads::start() const {
  thread_local int started = 1;
  if (started != thread_count_) {
    RETURN_IF_ERROR(check_startable());
    at::set_num_threads(thread_count_);
    const at::Tensor shared = at::zeros({thread_count_ * kSharedOutValues}, at::kFloat);
    static_cast<void>(shared.add(1));
    started = thread_count_;
  }
  apply();
  return ok_status();
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
