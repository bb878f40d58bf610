#include "core/platform/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace sluice::platform {
namespace {

std::optional<std::int32_t> parse_count(std::string_view text) {
  std::int32_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || rest != end || count < 1 || count > kRanksMax) return std::nullopt;
  return count;
}

}  // namespace

std::string collective_name(Collective collective) {
  constexpr std::array<const char*, kCollectives.size()> kWords = {"all_gather", "reduce_scatter",
                                                                   "all_reduce", "broadcast"};
  return kWords[static_cast<std::size_t>(collective)];
}

std::string scope_text(const Scope& scope) {
  return fmt::format("{}x{}", scope.ranks, scope.nodes);
}

Result<Scope> parse_scope(std::string_view text) {
  const std::size_t cross = text.find('x');
  if (cross != std::string_view::npos) {
    const auto ranks = parse_count(text.substr(0, cross));
    const auto nodes = parse_count(text.substr(cross + 1));
    if (ranks && nodes) return Scope{*ranks, *nodes};
  }
  return make_error(ErrorCode::config,
                    "'{}' is no scope: write ranks in a node, x and nodes, such as 4x1, each 1 to "
                    "{}",
                    text, kRanksMax);
}

const CollectiveCurve* Cluster::find(Collective collective, const Scope& group) const {
  const auto found = std::ranges::find_if(collectives, [&](const CollectiveCurve& curve) {
    return curve.collective == collective && curve.group == group;
  });
  return found == collectives.end() ? nullptr : &*found;
}

}  // namespace sluice::platform
