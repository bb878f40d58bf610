#include "core/collective/call.h"

#include <algorithm>
#include <limits>

namespace sluice::collective {
namespace {

constexpr std::array<std::string_view, kKindCount> kKindNames = {
    "all_gather", "reduce_scatter", "all_reduce", "broadcast", "minimum", "maximum", "barrier"};
constexpr std::array<std::string_view, 5> kTypeNames = {"bf16", "fp16", "fp32", "fp64", "bytes"};

struct Wanted {
  std::int64_t in_bytes = 0;
  std::int64_t out_bytes = 0;
};

std::size_t place_of(std::span<const int> ranks, int rank) {
  return static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

Wanted wanted_bytes(const Call& call, std::span<const int> ranks, int rank) {
  if (call.kind == Kind::barrier) return {};
  if (is_agreement(call.kind)) return {sizeof(std::int64_t), sizeof(std::int64_t)};
  const std::int64_t whole_bytes = element_count(call) * element_bytes(call.type);
  const std::int64_t own_bytes =
      shard_of(call, ranks.size(), place_of(ranks, rank)).count * element_bytes(call.type);
  switch (call.kind) {
    case Kind::all_gather:
      return {own_bytes, whole_bytes};
    case Kind::reduce_scatter:
      return {whole_bytes, own_bytes};
    case Kind::broadcast:
      return {call.root == rank ? whole_bytes : 0, whole_bytes};
    default:
      return {whole_bytes, whole_bytes};
  }
}

// Where the smaller span lies in the larger one, in place; -1: such a kind has no place for it.
std::int64_t in_place_offset_bytes(const Call& call, std::span<const int> ranks, int rank) {
  if (is_agreement(call.kind)) return -1;
  if (call.kind == Kind::all_reduce || call.kind == Kind::broadcast) return 0;
  return shard_of(call, ranks.size(), place_of(ranks, rank)).first * element_bytes(call.type);
}

bool overlaps_wrongly(const Call& call, std::span<const int> ranks, int rank) {
  const std::byte* in = call.in.data();
  const std::byte* out = call.out.data();
  if (call.in.empty() || call.out.empty()) return false;
  if (in + call.in.size() <= out || out + call.out.size() <= in) return false;
  const std::int64_t offset_bytes = in_place_offset_bytes(call, ranks, rank);
  if (offset_bytes < 0) return true;
  return call.in.size() < call.out.size() ? in != out + offset_bytes : out != in + offset_bytes;
}

}  // namespace

std::string_view kind_name(Kind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }
std::string_view type_name(ElementType type) { return kTypeNames[static_cast<std::size_t>(type)]; }

std::int64_t element_count(const Call& call) {
  if (is_agreement(call.kind)) return call.kind == Kind::barrier ? 0 : 1;
  const auto whole = call.kind == Kind::reduce_scatter ? call.in.size() : call.out.size();
  return static_cast<std::int64_t>(whole) / element_bytes(call.type);
}

Shard shard_of(const Call& call, std::size_t rank_count, std::size_t place) {
  return shard_of(element_count(call), static_cast<std::int64_t>(rank_count),
                  static_cast<std::int64_t>(place), call.unit);
}

Status check_call(const Call& call, std::span<const int> ranks, int rank) {
  if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) {
    return make_error(ErrorCode::internal, "rank {} asks for {} in a group that it is not in ({})",
                      rank, call_text(call), ranks_text(ranks));
  }
  if (is_reduction(call.kind) && call.type == ElementType::bytes) {
    return make_error(ErrorCode::internal, "{}: bytes cannot be summed; say what an element is",
                      call_text(call));
  }
  if (call.kind == Kind::broadcast &&
      std::find(ranks.begin(), ranks.end(), call.root) == ranks.end()) {
    return make_error(ErrorCode::internal, "{}: root {} is not in the group ({})", call_text(call),
                      call.root, ranks_text(ranks));
  }
  const bool has_shards = call.kind == Kind::all_gather || call.kind == Kind::reduce_scatter;
  if (call.unit < 1 || (call.unit > 1 && !has_shards)) {
    return make_error(ErrorCode::internal, "{}: units of {} elements; only shards have units",
                      call_text(call), call.unit);
  }
  const Wanted wanted = wanted_bytes(call, ranks, rank);
  if (std::ssize(call.in) != wanted.in_bytes || std::ssize(call.out) != wanted.out_bytes) {
    return make_error(
        ErrorCode::internal, "{}: rank {} gives {} bytes in and {} bytes out; {} and {} are wanted",
        call_text(call), rank, call.in.size(), call.out.size(), wanted.in_bytes, wanted.out_bytes);
  }
  // MPI counts elements, and says where a rank's begin, in an int.
  if (element_count(call) > std::numeric_limits<int>::max()) {
    return make_error(ErrorCode::internal, "{}: at most {} elements go in one call",
                      call_text(call), std::numeric_limits<int>::max());
  }
  if (overlaps_wrongly(call, ranks, rank)) {
    return make_error(ErrorCode::internal,
                      "{}: what goes in and what comes out overlap, and are not in place",
                      call_text(call));
  }
  return ok_status();
}

std::string call_text(const Call& call) {
  std::string text(kind_name(call.kind));
  if (!is_agreement(call.kind)) {
    const bool is_bytes = call.type == ElementType::bytes;
    text += fmt::format(" of {} {}{}", element_count(call), is_bytes ? "" : "elements ",
                        type_name(call.type));
    if (call.unit > 1) text += fmt::format(" in units of {}", call.unit);
  }
  if (call.kind == Kind::broadcast) text += fmt::format(" from rank {}", call.root);
  text += fmt::format(" ({}", *call.label.what != '\0' ? call.label.what : "no label");
  if (call.label.layer != kNoLayer) text += fmt::format(", layer {}", index_of(call.label.layer));
  if (call.label.step >= 0) text += fmt::format(", step {}", call.label.step);
  return text + ")";
}

std::string ranks_text(std::span<const int> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  }
  return text;
}

}  // namespace sluice::collective
