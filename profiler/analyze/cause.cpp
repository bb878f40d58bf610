#include "profiler/analyze/cause.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace sluice::analyze {
namespace {

// Forward and backward as one: the colour between theirs.
constexpr std::uint32_t kCompute =
    ((palette::kForward & 0xfefefe) >> 1) + ((palette::kBackward & 0xfefefe) >> 1);

struct CauseInfo {
  std::string_view name;
  std::string_view label;
  std::string_view phrase;
  ThemedColour colour;
};
constexpr std::array<CauseInfo, kCauseCount> kCauses = {{
    {"compute", "forward, backward", "forward and backward", in_both_themes(kCompute)},
    {"host link", "host link", "transfers over the link that devices share",
     in_both_themes(palette::kHostLink)},
    {"read", "read", "reading state and gradients from drives", in_both_themes(palette::kRead)},
    {"write", "write", "writing state to drives", in_both_themes(palette::kWrite)},
    {"update engine", "update engine", "the devices' update kernels",
     in_both_themes(palette::kUpdate)},
    {"compression", "compression", "selecting the largest gradients",
     in_both_themes(palette::kCompress)},
    {"processor", "host kernels", "the host's kernels", in_both_themes(palette::kHostKernel)},
    {"activations out", "activations out", "forward waiting for activations to leave",
     in_both_themes(palette::kActivationsOut)},
    {"activations back", "activations back", "backward waiting for activations to come back",
     in_both_themes(palette::kActivationsBack)},
    {"ranks", "other ranks", "exchanging gradients and parameters with the other ranks",
     in_both_themes(palette::kRanks)},
    {"buffers", "buffers", "waiting for a free buffer", palette::kWaiting},
    {"commit", "commit", "waiting for the commit", in_both_themes(palette::kCommit)},
    {"program", "data and host work", "loading data and the program's other own work",
     in_both_themes(palette::kProgram)},
    {"recorder", "recorder", "the recording itself", in_both_themes(palette::kRecorder)},
    {"other", "other", "nothing that was recorded", in_both_themes(palette::kUnknown)},
}};

}  // namespace

std::string_view cause_name(Cause cause) { return kCauses[index_of(cause)].name; }
std::optional<Cause> cause_named(std::string_view name) {
  const auto info = std::ranges::find(kCauses, name, &CauseInfo::name);
  if (info == kCauses.end()) return std::nullopt;
  return static_cast<Cause>(info - kCauses.begin());
}
std::string_view cause_label(Cause cause) { return kCauses[index_of(cause)].label; }
std::string_view cause_phrase(Cause cause) { return kCauses[index_of(cause)].phrase; }
ThemedColour cause_colour(Cause cause) { return kCauses[index_of(cause)].colour; }

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
