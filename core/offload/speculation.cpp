#include "core/offload/speculation.h"

#include "base/check.h"

namespace sluice::offload {

Speculation::Speculation(runtime::Runtime& runtime,
                         const IdVector<SubgroupId, std::int32_t>& chunk_counts)
    : chunk_counts_(chunk_counts), of_(chunk_counts.count()) {
  for (std::int32_t s = 0; s < chunk_counts.count(); ++s) is_final_.emplace_back(runtime);
}

void Speculation::begin(const std::optional<StepDecision>& expected) {
  expected_ = expected;
  is_certain_ = false;
  is_halted_ = false;
  ahead_count_ = 0;
  is_wrong_ = false;
  for (const SubgroupId subgroup : ids_of(of_)) {
    of_[subgroup] = {.chunks_to_come = chunk_counts_[subgroup]};
  }
  for (runtime::Event& event : is_final_) event.reset();
}

void Speculation::begin_certain() {
  begin(std::nullopt);
  is_certain_ = true;
}

void Speculation::halt() {
  CHECK(!is_certain_);
  is_halted_ = is_on();
}

runtime::Event::Awaiter Speculation::gradients_final(SubgroupId subgroup) {
  runtime::Waiting waiting;
  waiting.what = "its gradients";
  waiting.subgroup = subgroup;
  return is_final_[static_cast<std::size_t>(index_of(subgroup))].wait(waiting);
}

void Speculation::on_ahead(SubgroupId subgroup) {
  of_[subgroup].is_ahead = true;
  ahead_count_ += 1;
}

// A gradient that overflowed is not sent with density below 1, so some may still be waited for.
void Speculation::decide(const StepDecision& decision) {
  if (!is_on()) return;
  is_wrong_ = !is_certain_ && (is_halted_ || decision != *expected_);
  for (runtime::Event& event : is_final_) event.set();
}

}  // namespace sluice::offload
