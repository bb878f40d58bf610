#include "core/data/hidden_tokens.h"

#include "base/split_mix.h"

namespace sluice::data {
namespace {

constexpr double kMaskShare = 0.8;
constexpr double kMaskOrChanceShare = 0.9;

// Three numbers a column: whether it is chosen, what becomes of it, and a token by chance.
enum class Draw : std::uint64_t { chosen, shown_as, token };
constexpr std::uint64_t kDraws = 3;

std::uint64_t draw(std::uint64_t stream, std::int64_t column, Draw which) {
  return split_mix(stream,
                   static_cast<std::uint64_t>(column) * kDraws + static_cast<std::uint64_t>(which));
}

}  // namespace

bool HiddenTokens::chooses(std::uint64_t stream, std::int64_t column) const {
  return unit_interval(draw(stream, column, Draw::chosen)) <= share;
}

std::int32_t HiddenTokens::shown(std::uint64_t stream, std::int64_t column,
                                 std::int32_t token) const {
  const double way = unit_interval(draw(stream, column, Draw::shown_as));
  if (way <= kMaskShare) return mask;
  if (way > kMaskOrChanceShare) return token;
  const std::uint64_t chance = draw(stream, column, Draw::token);
  return static_cast<std::int32_t>(chance % static_cast<std::uint64_t>(vocabulary));
}

}  // namespace sluice::data
