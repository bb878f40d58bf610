#include "core/csd/update_damage.h"

#include "core/optimizer/split_update.h"

namespace sluice::csd {

Status check_gradient_chunk(const UpdateOrder& order, const GradientChunkCheck& chunk,
                            std::uint64_t found) {
  if (found == chunk.checksum) return ok_status();
  return make_error(
      ErrorCode::corrupt,
      "{}: the gradient of subgroup {} at offset {} is not what was written there: the drive "
      "returned other bytes. The last committed step is intact; go on with --resume",
      order.source.gradient_file->path(), index_of(order.task.subgroup),
      order.source.gradient_offset_bytes + chunk.offset_bytes);
}

Status check_state(const UpdateOrder& order, std::span<const std::uint64_t> found) {
  for (std::size_t v = 0; v < found.size(); ++v) {
    if (found[v] == order.check.expected[v]) continue;
    // The order of UpdateScalars is that of RuleKind.
    const std::vector<std::string> names = optimizer::stored_names(
        static_cast<optimizer::RuleKind>(order.task.scalars.index()), format_of(order.task.stored));
    return make_error(
        ErrorCode::corrupt,
        "{}: {} of subgroup {} at offset {} is not what was written there: the bytes were changed, "
        "or the drive, or the memory that keeps them, returns others. A resume goes "
        "on from the last commit; `sluice state DIR --verify` lists all damage to that",
        order.source.state_file->path(), names[v], index_of(order.task.subgroup),
        order.source.state_offset_bytes[v]);
  }
  return ok_status();
}

Error damaged_sparse_gradient(const UpdateOrder& order, const Error& why) {
  return make_error(why.code(), "{}: the sparse gradient of subgroup {} at offset {}: {}",
                    order.source.gradient_file->path(), index_of(order.task.subgroup),
                    order.source.gradient_offset_bytes, why.message());
}

}  // namespace sluice::csd
