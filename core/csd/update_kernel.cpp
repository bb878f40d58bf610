#include "core/csd/update_kernel.h"

#include <algorithm>

#include "core/compress/sparse_update.h"
#include "core/csd/update_damage.h"
#include "core/runtime/kernel_cost.h"
#include "storage/state/checksum.h"

namespace sluice::csd {
namespace {

// Elements handled at once: the fp32 streams of a tile, up to six (24 B an element), stay inside a
// 1 MiB L2.
constexpr std::int64_t kTileElements = 16 * 1024;
static_assert(kTileElements == compress::kTileElements);

std::span<const std::byte> bytes_of(const float* values, std::int64_t first, std::int64_t count) {
  return {reinterpret_cast<const std::byte*>(values + first), static_cast<std::size_t>(count) * 4};
}

optimizer::UpdateArrays arrays_of(const UpdateTask& task, const UpdateMemory& memory) {
  return {.element_count = task.element_count,
          .state = memory.state,
          .gradient = memory.gradient.data(),
          .gradient_kind = task.gradient_kind,
          .parameters = memory.parameters,
          .parameter_kind = task.parameter_kind};
}

Status check_gradient(const UpdateOrder& order, std::span<const std::byte> gradient) {
  for (const GradientChunkCheck& chunk : order.check.gradient) {
    const std::span<const std::byte> bytes = gradient.subspan(
        static_cast<std::size_t>(chunk.offset_bytes), static_cast<std::size_t>(chunk.size_bytes));
    RETURN_IF_ERROR(check_gradient_chunk(order, chunk, state::checksum(bytes)));
  }
  return ok_status();
}

// Looked through as a whole before anything is updated with it.
Result<compress::SparseGradientView> open_sparse(const UpdateOrder& order,
                                                 std::span<const std::byte> gradient) {
  auto view = compress::open_sparse_gradient(gradient, order.task.element_count);
  if (view.ok()) return view;
  return damaged_sparse_gradient(order, view.error());
}

using Checksummers = std::array<state::Checksummer, optimizer::kMaxStateArrays>;

void add_tile(Checksummers& sums, const UpdateMemory& memory, std::size_t variable_count,
              std::int64_t first, std::int64_t count) {
  for (std::size_t v = 0; v < variable_count; ++v) {
    sums[v].add(bytes_of(memory.state[v], first, count));
  }
}

// Calls `update_tile(first, count)` for each tile, with the checksums of the state before and
// after.
template <typename UpdateTile>
Status update_by_tiles(const UpdateOrder& order, const UpdateMemory& memory,
                       UpdatedChecksums& updated, const UpdateTile& update_tile) {
  const std::int64_t element_count = order.task.element_count;
  const auto variable_count =
      static_cast<std::size_t>(optimizer::rule_info(order.task.scalars).state_count());
  Checksummers before;
  Checksummers after;
  for (std::int64_t first = 0; first < element_count; first += kTileElements) {
    const std::int64_t count = std::min(kTileElements, element_count - first);
    add_tile(before, memory, variable_count, first, count);
    update_tile(first, count);
    add_tile(after, memory, variable_count, first, count);
  }
  std::array<std::uint64_t, optimizer::kMaxStateArrays> found{};
  for (std::size_t v = 0; v < variable_count; ++v) {
    found[v] = before[v].digest();
    updated[v] = after[v].digest();
  }
  return check_state(order, std::span(found).first(variable_count));
}

Status run_sparse_update(const UpdateOrder& order, const UpdateMemory& memory,
                         UpdatedChecksums& updated) {
  ASSIGN_OR_RETURN(const compress::SparseGradientView view, open_sparse(order, memory.gradient));
  const optimizer::UpdateArrays arrays = arrays_of(order.task, memory);
  compress::TileBuffer buffer;
  compress::SparseTile tile = view.tile_at(0);
  return update_by_tiles(order, memory, updated, [&](std::int64_t first, std::int64_t) {
    if (first > 0) tile = view.next(tile);
    compress::sparse_update_tile(order.task.scalars, arrays, view, tile, buffer);
  });
}

Status run_dense_update(const UpdateOrder& order, const UpdateMemory& memory,
                        UpdatedChecksums& updated) {
  const optimizer::UpdateArrays arrays = arrays_of(order.task, memory);
  return update_by_tiles(order, memory, updated, [&](std::int64_t first, std::int64_t count) {
    optimizer::update(order.task.scalars, optimizer::slice(arrays, first, count));
  });
}

// The bytes are the 16-bit copy, or the master weights where none is made.
void sum_parameters(const UpdateOrder& order, const UpdateMemory& memory) {
  const auto* const copy = memory.parameters != nullptr
                               ? reinterpret_cast<const std::byte*>(memory.parameters)
                               : reinterpret_cast<const std::byte*>(memory.state[0]);
  for (ParameterStretch& stretch : order.parameters) {
    stretch.checksum = state::checksum(
        {copy + stretch.offset_bytes, static_cast<std::size_t>(stretch.size_bytes)});
  }
}

}  // namespace

runtime::Cost update_cost(const UpdateTask& task, platform::EngineId id,
                          const platform::Engine& engine) {
  const auto elements = static_cast<double>(task.element_count);
  const runtime::Cost rule =
      runtime::kernel_cost(id, engine, optimizer::rule_info(task.scalars).name, elements);
  if (!task.is_sparse) return rule;
  const runtime::Cost decompress = runtime::kernel_cost(id, engine, "decompress", elements);
  return decompress.engine_dur_ns > rule.engine_dur_ns ? decompress : rule;
}

Status run_update(const UpdateOrder& order, const UpdateMemory& memory, UpdatedChecksums& updated) {
  RETURN_IF_ERROR(check_gradient(order, memory.gradient));
  RETURN_IF_ERROR(order.task.is_sparse ? run_sparse_update(order, memory, updated)
                                       : run_dense_update(order, memory, updated));
  sum_parameters(order, memory);
  return ok_status();
}

}  // namespace sluice::csd
