#include "core/csd/update_command.h"

#include <algorithm>

#include "core/compress/sparse_update.h"
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

Status check_gradient(const UpdateCommand& command) {
  const auto* gradient = command.is_sparse ? command.sparse_gradient.data()
                                           : static_cast<const std::byte*>(command.arrays.gradient);
  for (const GradientChunkCheck& chunk : command.gradient_checks) {
    const std::span<const std::byte> bytes(gradient + chunk.offset_bytes,
                                           static_cast<std::size_t>(chunk.size_bytes));
    if (state::checksum(bytes) == chunk.checksum) continue;
    return make_error(
        ErrorCode::corrupt,
        "{}: the gradient of subgroup {} at offset {} is not what was written there: the drive "
        "returned other bytes. The last committed step is intact; go on with --resume",
        command.source.gradient_file->path(), index_of(command.subgroup),
        command.source.gradient_offset_bytes + chunk.offset_bytes);
  }
  return ok_status();
}

// Looked through as a whole before anything is updated with it.
Result<compress::SparseGradientView> open_sparse(const UpdateCommand& command) {
  auto view = compress::open_sparse_gradient(command.sparse_gradient, command.arrays.element_count);
  if (view.ok()) return view;
  return make_error(view.error().code(), "{}: the sparse gradient of subgroup {} at offset {}: {}",
                    command.source.gradient_file->path(), index_of(command.subgroup),
                    command.source.gradient_offset_bytes, view.error().message());
}

Status damaged_state(const UpdateCommand& command, std::size_t variable) {
  return make_error(ErrorCode::corrupt,
                    "{}: {} of subgroup {} at offset {} is not what was committed: the bytes were "
                    "changed, or the "
                    "drive returns others. `sluice state DIR --verify` lists all damage",
                    command.source.state_file->path(),
                    optimizer::rule_info(command.scalars).state_names[variable],
                    index_of(command.subgroup), command.source.state_offset_bytes[variable]);
}

}  // namespace

namespace {

using Checksummers = std::array<state::Checksummer, optimizer::kMaxStateArrays>;

void add_tile(Checksummers& sums, const UpdateCommand& command, std::int64_t first,
              std::int64_t count) {
  const int variable_count = optimizer::rule_info(command.scalars).state_count();
  for (std::size_t v = 0; v < static_cast<std::size_t>(variable_count); ++v) {
    sums[v].add(bytes_of(command.arrays.state[v], first, count));
  }
}

// Calls `update_tile(first, count)` for each tile, with the checksums of the state before and
// after.
template <typename UpdateTile>
Status update_by_tiles(const UpdateCommand& command, UpdatedChecksums& updated,
                       const UpdateTile& update_tile) {
  Checksummers before;
  Checksummers after;
  for (std::int64_t first = 0; first < command.arrays.element_count; first += kTileElements) {
    const std::int64_t count = std::min(kTileElements, command.arrays.element_count - first);
    add_tile(before, command, first, count);
    update_tile(first, count);
    add_tile(after, command, first, count);
  }
  const int variable_count = optimizer::rule_info(command.scalars).state_count();
  for (std::size_t v = 0; v < static_cast<std::size_t>(variable_count); ++v) {
    if (before[v].digest() != command.expected[v]) return damaged_state(command, v);
    updated[v] = after[v].digest();
  }
  return ok_status();
}

Status run_sparse_update(const UpdateCommand& command, UpdatedChecksums& updated) {
  ASSIGN_OR_RETURN(const compress::SparseGradientView view, open_sparse(command));
  compress::TileBuffer buffer;
  compress::SparseTile tile = view.tile_at(0);
  return update_by_tiles(command, updated, [&](std::int64_t first, std::int64_t) {
    if (first > 0) tile = view.next(tile);
    compress::sparse_update_tile(command.scalars, command.arrays, view, tile, buffer);
  });
}

}  // namespace

runtime::Cost update_cost(const UpdateCommand& command, platform::EngineId id,
                          const platform::Engine& engine) {
  const auto elements = static_cast<double>(command.arrays.element_count);
  const runtime::Cost rule =
      runtime::kernel_cost(id, engine, optimizer::rule_info(command.scalars).name, elements);
  if (!command.is_sparse) return rule;
  const runtime::Cost decompress = runtime::kernel_cost(id, engine, "decompress", elements);
  return decompress.engine_dur_ns > rule.engine_dur_ns ? decompress : rule;
}

Status run_update(const UpdateCommand& command, UpdatedChecksums& updated) {
  RETURN_IF_ERROR(check_gradient(command));
  if (command.is_sparse) return run_sparse_update(command, updated);
  return update_by_tiles(command, updated, [&](std::int64_t first, std::int64_t count) {
    optimizer::update(command.scalars, optimizer::slice(command.arrays, first, count));
  });
}

}  // namespace sluice::csd
