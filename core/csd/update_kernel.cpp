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
static_assert(kTileElements % kBlockElements == 0);

float* floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }

optimizer::UpdateArrays fp32_arrays(const UpdateTask& task, const UpdateMemory& memory) {
  optimizer::UpdateArrays arrays{.element_count = task.element_count,
                                 .gradient = memory.gradient.data(),
                                 .gradient_kind = task.gradient_kind,
                                 .parameters = memory.parameters,
                                 .parameter_kind = task.parameter_kind};
  for (std::size_t v = 0; v < arrays.state.size(); ++v) arrays.state[v] = floats(memory.state[v]);
  return arrays;
}

optimizer::SplitArrays split_arrays(const UpdateTask& task, const UpdateMemory& memory) {
  optimizer::SplitArrays arrays{.state = {task.stored, memory.state, task.element_count},
                                .gradient = memory.gradient.data(),
                                .gradient_kind = task.gradient_kind,
                                .rounding = task.rounding,
                                .first_flat_index = task.first_flat_index};
  if (memory.parameters != nullptr) {
    arrays.state.data[0] = reinterpret_cast<std::byte*>(memory.parameters);
  }
  return arrays;
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

// The stored arrays of a subgroup, tile by tile.
class StoredTiles {
 public:
  StoredTiles(const UpdateOrder& order, const UpdateMemory& memory)
      : order_(order), memory_(memory), arrays_(memory.state) {
    const bool has_own_place = order.task.stored.is_split() && memory.parameters != nullptr;
    if (has_own_place) arrays_[0] = reinterpret_cast<std::byte*>(memory.parameters);
  }

  // Around the update of a tile.
  void before(std::int64_t first, std::int64_t count) {
    if (order_.copy.comes_from_state) pass(first, count, memory_.state[0], arrays_[0]);
    add(before_, first, count);
  }
  void after(std::int64_t first, std::int64_t count) {
    add(after_, first, count);
    if (order_.copy.goes_to_state) pass(first, count, arrays_[0], memory_.state[0]);
  }
  // After the last.
  Status check(UpdatedChecksums& updated) const {
    std::array<std::uint64_t, kMaxStoredArrays> found{};
    for (std::size_t v = 0; v < array_count(); ++v) {
      found[v] = before_[v].digest();
      updated[v] = after_[v].digest();
    }
    return check_state(order_, std::span(found).first(array_count()));
  }

 private:
  using Checksummers = std::array<state::Checksummer, kMaxStoredArrays>;

  std::size_t array_count() const { return static_cast<std::size_t>(order_.task.stored.count); }
  static std::span<std::byte> bytes_of(std::byte* array, ArrayCode code, std::int64_t first,
                                       std::int64_t count) {
    const std::int64_t begin = array_bytes(code, first);
    return {array + begin, static_cast<std::size_t>(array_bytes(code, first + count) - begin)};
  }
  void add(Checksummers& sums, std::int64_t first, std::int64_t count) {
    for (std::size_t v = 0; v < array_count(); ++v) {
      sums[v].add(bytes_of(arrays_[v], order_.task.stored.codes[v], first, count));
    }
  }
  void pass(std::int64_t first, std::int64_t count, std::byte* from, std::byte* to) const {
    std::ranges::copy(bytes_of(from, ArrayCode::high, first, count),
                      bytes_of(to, ArrayCode::high, first, count).begin());
  }

  const UpdateOrder& order_;
  const UpdateMemory& memory_;
  std::array<std::byte*, kMaxStoredArrays> arrays_;
  Checksummers before_;
  Checksummers after_;
};

// Calls `update_tile(first, count)` for each tile, with the checksums of the state before and
// after.
template <typename UpdateTile>
Status update_by_tiles(const UpdateOrder& order, const UpdateMemory& memory,
                       UpdatedChecksums& updated, const UpdateTile& update_tile) {
  const std::int64_t element_count = order.task.element_count;
  StoredTiles tiles(order, memory);
  for (std::int64_t first = 0; first < element_count; first += kTileElements) {
    const std::int64_t count = std::min(kTileElements, element_count - first);
    tiles.before(first, count);
    update_tile(first, count);
    tiles.after(first, count);
  }
  return tiles.check(updated);
}

template <typename Arrays>
Status run_sparse_update(const UpdateOrder& order, const UpdateMemory& memory, const Arrays& arrays,
                         UpdatedChecksums& updated) {
  ASSIGN_OR_RETURN(const compress::SparseGradientView view, open_sparse(order, memory.gradient));
  compress::TileBuffer buffer;
  compress::SparseTile tile = view.tile_at(0);
  return update_by_tiles(order, memory, updated, [&](std::int64_t first, std::int64_t) {
    if (first > 0) tile = view.next(tile);
    compress::sparse_update_tile(order.task.scalars, arrays, view, tile, buffer);
  });
}

template <typename Arrays>
Status run_dense_update(const UpdateOrder& order, const UpdateMemory& memory, const Arrays& arrays,
                        UpdatedChecksums& updated) {
  return update_by_tiles(order, memory, updated, [&](std::int64_t first, std::int64_t count) {
    optimizer::update(order.task.scalars, optimizer::slice(arrays, first, count));
  });
}

template <typename Arrays>
Status run_on(const UpdateOrder& order, const UpdateMemory& memory, const Arrays& arrays,
              UpdatedChecksums& updated) {
  return order.task.is_sparse ? run_sparse_update(order, memory, arrays, updated)
                              : run_dense_update(order, memory, arrays, updated);
}

// The bytes are the 16-bit copy, or the master weights where none is made.
void sum_parameters(const UpdateOrder& order, const UpdateMemory& memory) {
  const auto* const copy = memory.parameters != nullptr
                               ? reinterpret_cast<const std::byte*>(memory.parameters)
                               : memory.state[0];
  for (ParameterStretch& stretch : order.parameters) {
    stretch.checksum = state::checksum(
        {copy + stretch.offset_bytes, static_cast<std::size_t>(stretch.size_bytes)});
  }
}

}  // namespace

std::string update_name(const optimizer::RuleInfo& rule, StateFormatKind format) {
  if (format == StateFormatKind::fp32) return rule.name;
  return std::string(rule.name) + (format == StateFormatKind::exact ? "_exact" : "_compact");
}

std::string update_rate(const platform::Engine& engine, const optimizer::RuleInfo& rule,
                        StateFormatKind format) {
  const std::string own = update_name(rule, format);
  return engine.rate.contains(own) ? own : rule.name;
}

runtime::Cost update_cost(const UpdateTask& task, platform::EngineId id,
                          const platform::Engine& engine) {
  const auto elements = static_cast<double>(task.element_count);
  const std::string rate =
      update_rate(engine, optimizer::rule_info(task.scalars), format_of(task.stored).kind);
  const runtime::Cost rule = runtime::kernel_cost(id, engine, rate, elements);
  if (!task.is_sparse) return rule;
  const runtime::Cost decompress = runtime::kernel_cost(id, engine, "decompress", elements);
  return decompress.engine_dur_ns > rule.engine_dur_ns ? decompress : rule;
}

Status run_update(const UpdateOrder& order, const UpdateMemory& memory, UpdatedChecksums& updated) {
  RETURN_IF_ERROR(check_gradient(order, memory.gradient));
  const UpdateTask& task = order.task;
  RETURN_IF_ERROR(task.stored.is_split()
                      ? run_on(order, memory, split_arrays(task, memory), updated)
                      : run_on(order, memory, fp32_arrays(task, memory), updated));
  sum_parameters(order, memory);
  return ok_status();
}

}  // namespace sluice::csd
