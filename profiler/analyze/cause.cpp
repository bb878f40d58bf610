#include "profiler/analyze/cause.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace sluice::analyze {
namespace {

struct Words {
  std::string_view name;
  std::string_view phrase;
};
constexpr std::array<Words, kCauseCount> kWords = {{
    {"compute", "forward and backward"},
    {"host link", "transfers over the link that devices share"},
    {"read", "reading state and gradients from drives"},
    {"write", "writing state to drives"},
    {"update engine", "the devices' update kernels"},
    {"compression", "selecting the largest gradients"},
    {"processor", "the host's kernels"},
    {"buffers", "waiting for a free buffer"},
    {"commit", "waiting for the commit"},
    {"recorder", "the recording itself"},
    {"other", "nothing that was recorded"},
}};

}  // namespace

std::string_view cause_name(Cause cause) { return kWords[index_of(cause)].name; }
std::optional<Cause> cause_named(std::string_view name) {
  const auto words = std::ranges::find(kWords, name, &Words::name);
  if (words == kWords.end()) return std::nullopt;
  return static_cast<Cause>(words - kWords.begin());
}
std::string_view cause_phrase(Cause cause) { return kWords[index_of(cause)].phrase; }

std::vector<int> rounded_shares(std::span<const double> shares, int parts) {
  std::vector<int> whole;
  for (const double share : shares) whole.push_back(static_cast<int>(share * parts));
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::size_t i) { return shares[i] * parts - whole[i]; });
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  int left =
      static_cast<int>(std::lround(sum * parts)) - std::accumulate(whole.begin(), whole.end(), 0);
  for (const std::size_t i : order) {
    if (left-- <= 0) break;
    whole[i] += 1;
  }
  return whole;
}

}  // namespace sluice::analyze
