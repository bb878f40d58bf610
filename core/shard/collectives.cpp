#include "core/shard/collectives.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/units.h"

namespace sluice::shard {
namespace {

// Modules of one size are one entry.
void add(std::vector<CollectiveUse>& uses, const CollectiveUse& use) {
  if (use.group.scope.size() == 1 || use.count == 0 || use.size_bytes == 0) return;
  const auto alike = std::ranges::find_if(uses, [&](const CollectiveUse& known) {
    return known.purpose == use.purpose && known.size_bytes == use.size_bytes;
  });
  if (alike == uses.end()) {
    uses.push_back(use);
  } else {
    alike->count += use.count;
  }
}

void add_modules(std::vector<CollectiveUse>& uses, const StepShape& step, const Triple& triple) {
  const GroupShape group = parameter_group(triple);
  for (const std::int64_t elements : step.module_elements) {
    const std::int64_t size_bytes =
        bytes_of(step.precision) * round_up(elements, group.scope.size());
    add(uses, {Purpose::gather, Collective::all_gather, group, size_bytes,
               step.gathers * step.micro_batches});
    add(uses,
        {Purpose::scatter, Collective::reduce_scatter, group, size_bytes, step.micro_batches});
  }
}

// `times` the gradients that a rank holds, in buckets.
void add_buckets(std::vector<CollectiveUse>& uses, Purpose purpose, const GroupShape& group,
                 std::int64_t held_bytes, std::int64_t bucket_bytes, std::int64_t times) {
  add(uses,
      {purpose, Collective::all_reduce, group, bucket_bytes, held_bytes / bucket_bytes * times});
  add(uses, {purpose, Collective::all_reduce, group, held_bytes % bucket_bytes, times});
}

}  // namespace

std::int64_t StepShape::parameter_count() const {
  return std::accumulate(module_elements.begin(), module_elements.end(), std::int64_t{0});
}

std::vector<std::span<const std::int64_t>> StepShape::layers() const {
  std::vector<std::span<const std::int64_t>> layers;
  std::span<const std::int64_t> left = module_elements;
  while (!left.empty()) {
    const std::int32_t count = layer_modules.empty() ? 1 : layer_modules[layers.size()];
    layers.push_back(left.first(static_cast<std::size_t>(count)));
    left = left.subspan(static_cast<std::size_t>(count));
  }
  return layers;
}

std::int64_t held_elements(const StepShape& step, const Triple& triple) {
  std::int64_t held = 0;
  for (const std::int64_t elements : step.module_elements) {
    held += divide_up(elements, triple.parameters.size());
  }
  return held;
}

std::int64_t owned_elements(const StepShape& step, const Triple& triple) {
  return divide_up(held_elements(step, triple), state_group(triple).scope.size());
}

std::vector<CollectiveUse> step_collectives(const StepShape& step, const Triple& triple,
                                            const Scope& mesh) {
  CHECK_GT(step.bucket_bytes, 0);
  std::vector<CollectiveUse> uses;
  add_modules(uses, step, triple);
  const std::int64_t held_bytes = bytes_of(step.precision) * held_elements(step, triple);
  add_buckets(uses, Purpose::accumulate, gradient_group(triple), held_bytes, step.bucket_bytes,
              step.micro_batches - 1);
  add_buckets(uses, Purpose::reduce, data_group(triple, mesh), held_bytes, step.bucket_bytes, 1);
  const GroupShape owners = state_group(triple);
  add(uses, {Purpose::share, Collective::broadcast, owners,
             bytes_of(step.precision) * owned_elements(step, triple), owners.scope.size()});
  return uses;
}

std::int64_t ring_edge_bytes(Collective collective, std::int64_t size_bytes, std::int32_t ranks) {
  const std::int64_t part_bytes = divide_up(size_bytes, ranks);
  switch (collective) {
    case Collective::all_gather:
    case Collective::reduce_scatter:
      return part_bytes * (ranks - 1);
    case Collective::all_reduce:
      return 2 * part_bytes * (ranks - 1);
    case Collective::broadcast:
      return size_bytes;
  }
  return 0;
}

}  // namespace sluice::shard
