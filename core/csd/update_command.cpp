#include "core/csd/update_command.h"

#include <algorithm>

#include "storage/state/checksum.h"

namespace sluice::csd {
namespace {

// Elements handled at once: the fp32 streams of a tile, up to six (24 B an element), stay inside a
// 1 MiB L2.
constexpr std::int64_t kTileElements = 16 * 1024;

std::span<const std::byte> bytes_of(const float* values, std::int64_t first, std::int64_t count) {
  return {reinterpret_cast<const std::byte*>(values + first), static_cast<std::size_t>(count) * 4};
}

Status check_gradient(const UpdateCommand& command) {
  const auto* gradient = static_cast<const std::byte*>(command.arrays.gradient);
  const std::int64_t element_bytes = optimizer::bytes_of(command.arrays.gradient_kind);
  for (const GradientChunkCheck& chunk : command.gradient_checks) {
    const std::span<const std::byte> bytes(gradient + chunk.first * element_bytes,
                                           static_cast<std::size_t>(chunk.count * element_bytes));
    if (state::checksum(bytes) == chunk.checksum) continue;
    return make_error(
        ErrorCode::corrupt,
        "{}: the gradient of subgroup {} at offset {} is not what was written there: the drive "
        "returned other bytes. The last committed step is intact; go on with --resume",
        command.source.gradient_file->path(), index_of(command.subgroup),
        command.source.gradient_offset_bytes + chunk.first * element_bytes);
  }
  return ok_status();
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

Status run_update(const UpdateCommand& command, UpdatedChecksums& updated) {
  RETURN_IF_ERROR(check_gradient(command));
  const auto variable_count =
      static_cast<std::size_t>(optimizer::rule_info(command.scalars).state_count());
  const auto& variables = command.arrays.state;
  std::array<state::Checksummer, optimizer::kMaxStateArrays> before;
  std::array<state::Checksummer, optimizer::kMaxStateArrays> after;
  for (std::int64_t first = 0; first < command.arrays.element_count; first += kTileElements) {
    const std::int64_t count = std::min(kTileElements, command.arrays.element_count - first);
    for (std::size_t v = 0; v < variable_count; ++v)
      before[v].add(bytes_of(variables[v], first, count));
    optimizer::update(command.scalars, optimizer::slice(command.arrays, first, count));
    for (std::size_t v = 0; v < variable_count; ++v)
      after[v].add(bytes_of(variables[v], first, count));
  }
  for (std::size_t v = 0; v < variable_count; ++v) {
    if (before[v].digest() != command.expected[v]) return damaged_state(command, v);
    updated[v] = after[v].digest();
  }
  return ok_status();
}

}  // namespace sluice::csd
