#include "base/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace sluice {
namespace {

// Levenshtein distance with one row of the table.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_word(std::string_view word, std::span<const std::string> candidates) {
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 2);
  std::string best;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance <= best_distance && (best.empty() || distance < best_distance)) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::string nearest = nearest_word(word, candidates);
  return nearest.empty() ? std::string() : fmt::format(" (did you mean '{}'?)", nearest);
}

}  // namespace sluice
