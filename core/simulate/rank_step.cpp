#include "core/simulate/rank_step.h"

#include <utility>

#include "base/check.h"
#include "base/id_vector.h"
#include "base/units.h"

namespace sluice::simulate {

using shard::Overlap;
using shard::Overlaps;
using shard::Purpose;
using shard::StepShape;
using shard::Triple;

namespace {

constexpr LayerId layer_at(std::int64_t index) { return LayerId{static_cast<std::int32_t>(index)}; }

runtime::Waiting waiting_for(const char* what, LayerId layer) {
  runtime::Waiting waiting;
  waiting.what = what;
  waiting.layer = layer;
  return waiting;
}

// Parts of the layers that a rank holds, one after the other: where each ends.
std::vector<std::int64_t> held_ends(const StepShape& step, const Triple& triple) {
  std::vector<std::int64_t> ends;
  std::int64_t end = 0;
  for (const auto modules : step.layers()) {
    for (const std::int64_t elements : modules)
      end += divide_up(elements, triple.parameters.size());
    ends.push_back(end);
  }
  return ends;
}

// Backward fills buckets from the last layer's gradients down.
std::vector<LayerId> plan_buckets(const StepShape& step, const std::vector<std::int64_t>& ends) {
  std::vector<LayerId> filled_by;
  const std::int64_t element_bytes = bytes_of(step.precision);
  const std::int64_t held_bytes = element_bytes * ends.back();
  std::int64_t layer = std::ssize(ends) - 1;
  for (std::int64_t end_bytes = held_bytes; end_bytes > 0; end_bytes -= step.bucket_bytes) {
    const std::int64_t begin_bytes = std::max<std::int64_t>(end_bytes - step.bucket_bytes, 0);
    while (layer > 0 && element_bytes * ends[static_cast<std::size_t>(layer - 1)] > begin_bytes)
      --layer;
    filled_by.push_back(layer_at(layer));
  }
  return filled_by;
}

std::vector<RankPlan::Owners> plan_owners(const std::vector<std::int64_t>& ends,
                                          std::int64_t owned) {
  std::vector<RankPlan::Owners> owners;
  std::int64_t begin = 0;
  for (const std::int64_t end : ends) {
    owners.push_back(
        {static_cast<std::int32_t>(begin / owned), static_cast<std::int32_t>((end - 1) / owned)});
    begin = end;
  }
  return owners;
}

}  // namespace

std::int64_t gathers_of(bool recomputes, const Overlaps& overlaps) {
  return recomputes && !overlaps.has(Overlap::keep_gathered) ? 3 : 2;
}

RankPlan plan_rank(const StepShape& step, const Triple& triple, const platform::Scope& mesh) {
  RankPlan plan;
  plan.layer_count = static_cast<std::int32_t>(step.layers().size());
  plan.micro_step_count = step.micro_batches;
  plan.is_gathered = triple.parameters.size() > 1;
  plan.is_accumulated = shard::gradient_group(triple).scope.size() > 1;
  plan.is_reduced = shard::data_group(triple, mesh).scope.size() > 1;
  plan.backward_gathers = static_cast<std::int32_t>(step.gathers) - 1;
  const std::vector<std::int64_t> ends = held_ends(step, triple);
  if (plan.is_reduced) plan.filled_by = plan_buckets(step, ends);
  const std::int32_t owners = shard::state_group(triple).scope.size();
  if (owners == 1) return plan;
  plan.owner_count = owners;
  plan.owners = plan_owners(ends, shard::owned_elements(step, triple));
  return plan;
}

RankStep::RankStep(runtime::Runtime& runtime, SimulatedRank& operations, RankPlan plan,
                   const Overlaps& overlaps)
    : runtime_(runtime),
      operations_(operations),
      plan_(std::move(plan)),
      overlaps_(overlaps),
      parameters_turn_(runtime, 1),
      reduce_turn_(runtime, 1),
      gathers_(runtime),
      gradients_(runtime),
      shares_(runtime),
      is_begun_(static_cast<std::size_t>(plan_.layer_count)),
      gathered_(make_events(plan_.layer_count)),
      scattered_(make_events(plan_.layer_count)),
      shared_(make_events(plan_.owner_count)) {
  for (const auto& shared : shared_) shared->set();  // before the first update nothing is old
}

RankStep::Events RankStep::make_events(std::int32_t count) {
  Events events;
  for (std::int32_t i = 0; i < count; ++i) {
    events.push_back(std::make_unique<runtime::Event>(runtime_));
  }
  return events;
}

bool RankStep::is_reduced_in(std::int64_t micro_step) const {
  return micro_step + 1 < plan_.micro_step_count ? plan_.is_accumulated : plan_.is_reduced;
}

Purpose RankStep::purpose_in(std::int64_t micro_step) const {
  return micro_step + 1 < plan_.micro_step_count ? Purpose::accumulate : Purpose::reduce;
}

runtime::Task<Status> RankStep::step() {
  Status taken = co_await take();
  if (taken.ok()) co_return taken;
  Status settled = co_await settle();
  static_cast<void>(settled);  // the first failure is the one to tell
  co_return taken;
}

runtime::Task<Status> RankStep::take() {
  for (std::int64_t m = 0; m < plan_.micro_step_count; ++m) {
    Status forward = co_await forward_pass();
    CO_RETURN_IF_ERROR(forward);
    Status backward = co_await backward_pass(m);
    CO_RETURN_IF_ERROR(backward);
  }
  Status reduced = co_await gradients_.join();
  CO_RETURN_IF_ERROR(reduced);
  Status shared = co_await shares_.join();
  CO_RETURN_IF_ERROR(shared);
  Status updated = co_await operations_.update();
  CO_RETURN_IF_ERROR(updated);
  for (const auto& event : shared_) event->reset();
  shares_.spawn(share_all());
  if (overlaps_.has(Overlap::share_forward)) co_return ok_status();
  Status sent = co_await shares_.join();
  co_return sent;
}

runtime::Task<Status> RankStep::settle() {
  Status gathered = co_await gathers_.join();
  Status reduced = co_await gradients_.join();
  Status shared = co_await shares_.join();
  CO_RETURN_IF_ERROR(gathered);
  CO_RETURN_IF_ERROR(reduced);
  co_return shared;
}

runtime::Task<Status> RankStep::forward_pass() {
  for (std::int32_t l = 0; l < plan_.layer_count; ++l) {
    Status there = co_await wait_for_parameters(layer_at(l), 1);
    CO_RETURN_IF_ERROR(there);
    if (overlaps_.has(Overlap::gather_forward)) begin_gather(layer_at(l + 1), 1);
    Status computed = co_await operations_.forward(layer_at(l));
    CO_RETURN_IF_ERROR(computed);
  }
  co_return ok_status();
}

runtime::Task<Status> RankStep::backward_pass(std::int64_t micro_step) {
  // The gradients that the micro-batch before scatters and reduces are those that this one adds to.
  Status before = co_await gradients_.join();
  CO_RETURN_IF_ERROR(before);
  for (const auto& event : scattered_) event->reset();
  const bool is_reduced = is_reduced_in(micro_step);
  const bool is_reduced_early = is_reduced && overlaps_.has(Overlap::reduce_backward);
  for (std::int32_t l = plan_.layer_count - 1; l >= 0; --l) {
    Status there = co_await wait_for_parameters(layer_at(l), plan_.backward_gathers);
    CO_RETURN_IF_ERROR(there);
    const bool is_overlapped = overlaps_.has(Overlap::gather_backward);
    if (is_overlapped) begin_gather(layer_at(l - 1), plan_.backward_gathers);
    Status computed = co_await operations_.backward(layer_at(l));
    CO_RETURN_IF_ERROR(computed);
    gradients_.spawn(scatter(layer_at(l)));
    if (!is_overlapped) {
      const runtime::Waiting waiting = waiting_for("its gradients to be scattered", layer_at(l));
      Status scattered = co_await of(scattered_, l).wait(waiting);
      CO_RETURN_IF_ERROR(scattered);
    }
    if (is_reduced_early) begin_reducing(layer_at(l), purpose_in(micro_step));
  }
  if (!is_reduced || is_reduced_early) co_return ok_status();
  for (std::int32_t l = plan_.layer_count - 1; l >= 0; --l) {
    begin_reducing(layer_at(l), purpose_in(micro_step));
  }
  Status reduced = co_await gradients_.join();
  co_return reduced;
}

void RankStep::begin_gather(LayerId layer, std::int32_t times) {
  const std::int32_t l = index_of(layer);
  if (!plan_.is_gathered || l < 0 || l >= plan_.layer_count) return;
  if (is_begun_[static_cast<std::size_t>(l)]) return;
  is_begun_[static_cast<std::size_t>(l)] = true;
  gathers_.spawn(gather(layer, times));
}

// With parameters in parts the gather waits for the owners.
runtime::Task<Status> RankStep::wait_for_parameters(LayerId layer, std::int32_t gathers) {
  if (!plan_.is_gathered) {
    Status current = co_await wait_for_owners(layer);
    co_return current;
  }
  begin_gather(layer, gathers);
  runtime::Event& gathered = of(gathered_, index_of(layer));
  const runtime::Waiting waiting = waiting_for("its parameters from the other ranks", layer);
  Status there = co_await gathered.wait(waiting);
  CO_RETURN_IF_ERROR(there);
  gathered.reset();
  is_begun_[static_cast<std::size_t>(index_of(layer))] = false;
  co_return ok_status();
}

runtime::Task<Status> RankStep::wait_for_owners(LayerId layer) {
  if (plan_.owner_count == 0) co_return ok_status();
  const RankPlan::Owners owners = plan_.owners[static_cast<std::size_t>(index_of(layer))];
  for (std::int32_t owner = owners.first; owner <= owners.last; ++owner) {
    const runtime::Waiting waiting = waiting_for("its parameters from their owner", layer);
    Status shared = co_await of(shared_, owner).wait(waiting);
    CO_RETURN_IF_ERROR(shared);
  }
  co_return ok_status();
}

runtime::Task<Status> RankStep::gather(LayerId layer, std::int32_t times) {
  Status current = co_await wait_for_owners(layer);
  CO_RETURN_IF_ERROR(current);
  for (std::int32_t i = 0; i < times; ++i) {
    const runtime::Waiting waiting = waiting_for("a turn to gather", layer);
    auto turn = co_await parameters_turn_.acquire(waiting);
    CO_RETURN_IF_ERROR(turn);
    Status gathered = co_await operations_.gather(layer);
    CO_RETURN_IF_ERROR(gathered);
  }
  of(gathered_, index_of(layer)).set();
  co_return ok_status();
}

runtime::Task<Status> RankStep::scatter(LayerId layer) {
  if (plan_.is_gathered) {
    const runtime::Waiting waiting = waiting_for("a turn to scatter", layer);
    auto turn = co_await parameters_turn_.acquire(waiting);
    CO_RETURN_IF_ERROR(turn);
    Status scattered = co_await operations_.reduce_scatter(layer);
    CO_RETURN_IF_ERROR(scattered);
  }
  of(scattered_, index_of(layer)).set();
  co_return ok_status();
}

void RankStep::begin_reducing(LayerId layer, Purpose purpose) {
  for (std::size_t bucket = 0; bucket < plan_.filled_by.size(); ++bucket) {
    if (plan_.filled_by[bucket] != layer) continue;
    gradients_.spawn(reduce(static_cast<std::int32_t>(bucket), purpose));
  }
}

// Layers are scattered in turn, so those above the one that fills the bucket are, too.
runtime::Task<Status> RankStep::reduce(std::int32_t bucket, Purpose purpose) {
  const LayerId layer = plan_.filled_by[static_cast<std::size_t>(bucket)];
  const runtime::Waiting scattering = waiting_for("the gradients of a bucket", layer);
  Status filled = co_await of(scattered_, index_of(layer)).wait(scattering);
  CO_RETURN_IF_ERROR(filled);
  const runtime::Waiting waiting = waiting_for("a turn to reduce", layer);
  auto turn = co_await reduce_turn_.acquire(waiting);
  CO_RETURN_IF_ERROR(turn);
  Status reduced = co_await operations_.all_reduce(bucket, purpose);
  co_return reduced;
}

runtime::Task<Status> RankStep::share_all() {
  for (std::int32_t owner = 0; owner < plan_.owner_count; ++owner) {
    Status shared = co_await operations_.broadcast();
    CO_RETURN_IF_ERROR(shared);
    of(shared_, owner).set();
  }
  co_return ok_status();
}

}  // namespace sluice::simulate
