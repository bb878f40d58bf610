#include "core/offload/step_update.h"

#include <algorithm>

namespace sluice::offload {

StepUpdate::StepUpdate(runtime::Runtime& runtime, std::int32_t layer_count,
                       const IdVector<SubgroupId, std::int32_t>& check_counts)
    : layer_stats(layer_count),
      sends(runtime),
      decided(runtime),
      speculation(runtime, check_counts),
      starts(runtime),
      started(runtime),
      next_slot(check_counts.count()),
      next_checksums(check_counts.count()),
      all_read(runtime),
      tasks(runtime) {
  for (const std::int32_t count : check_counts) {
    gradient_checks.emplace_back(static_cast<std::size_t>(count));
  }
  all_read.set();  // no step has begun, so none is being read
}

void StepUpdate::begin(std::int32_t new_step, double new_loss_scale, bool is_to_commit) {
  step = new_step;
  commits = is_to_commit;
  loss_scale = new_loss_scale;
  std::ranges::fill(layer_stats, optimizer::GradientStats{});
  compressed_from = layer_stats.next_id();
  decided.reset();
  started.reset();
  unread_count = next_slot.count();
  all_read.reset();
}

void StepUpdate::decide(const StepDecision& made) {
  decision = made;
  speculation.decide(made);
  if (made.apply) unread_count += speculation.refuted_count();
  decided.set();
  if (unread_count == 0) all_read.set();
}

void StepUpdate::on_read() {
  unread_count -= 1;
  if (unread_count == 0 && decided.is_set()) all_read.set();
}

optimizer::GradientStats StepUpdate::gradient_stats() const {
  optimizer::GradientStats total;
  for (const optimizer::GradientStats& layer : layer_stats) {
    total.sum_of_squares += layer.sum_of_squares;
    total.finite = total.finite && layer.finite;
  }
  return total;
}

}  // namespace sluice::offload
