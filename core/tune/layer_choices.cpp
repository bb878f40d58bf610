// The lower bound that prunes: layers are computed one after another on one engine, and every link
// or engine that moves activations is busy for its other work and for their bytes. Both are sums
// over the layers, so a plan of which only the first layers are known has one too: the others
// compute no longer than kept ones do and move nothing.

#include "core/tune/layer_choices.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "base/check.h"
#include "base/ids.h"

namespace sluice::tune {
namespace {

using model::Activations;

// Plans of more layers than this are too many to search in full.
constexpr double kFullSearchMax = 1 << 16;
// A bound that is a step's time but for the order of its sums excludes.
constexpr double kRounding = 1e-9;
// Below this many layers every layer is changed by itself.
constexpr std::size_t kSingleLayersMax = 12;
constexpr std::array<const char*, kChoiceCount> kWords = {"keep", "recompute", "offload",
                                                          "offload_inputs"};

const char* word_of(Activations choice) { return kWords[static_cast<std::size_t>(choice)]; }

struct Run {  // of layers with the same choice
  std::size_t first = 0;
  std::size_t end = 0;
};

std::vector<Run> runs_of(const LayerChoices& choices) {
  std::vector<Run> runs;
  for (std::size_t l = 0; l < choices.size(); ++l) {
    if (l == 0 || choices[l] != choices[l - 1]) runs.push_back({l, l});
    runs.back().end = l + 1;
  }
  return runs;
}

bool is_allowed(const LayerWorth& layer, Activations choice) {
  return std::ranges::find(layer.allowed, choice) != layer.allowed.end();
}

class Search {
 public:
  Search(const LayerProblem& problem, int simulations_max)
      : problem_(problem), simulations_max_(simulations_max) {}

  Result<LayerSearch> run(const LayerChoices& start) {
    RETURN_IF_ERROR(try_seeds(start));
    RETURN_IF_ERROR(improve());
    RETURN_IF_ERROR(search_in_full());
    found_.simulated_count = static_cast<int>(seconds_.size());
    choose_simplest();
    return found_;
  }

 private:
  std::int64_t moved_bytes(const LayerChoices& choices) const {
    std::int64_t bytes = 0;
    for (std::size_t l = 0; l < count(); ++l) bytes += problem_.layers[l].moved_with(choices[l]);
    return bytes;
  }

  void choose_simplest() {
    found_.simplest = found_.best;
    found_.simplest_seconds = found_.seconds;
    if (found_.seconds == kForEver) return;
    const auto effort = [this](const LayerChoices& choices) {
      return std::pair(runs_of(choices).size(), moved_bytes(choices));
    };
    for (const auto& [choices, seconds] : seconds_) {
      if (seconds > found_.seconds * (1 + kWorthwhile)) continue;
      if (effort(choices) >= effort(found_.simplest)) continue;
      found_.simplest = choices;
      found_.simplest_seconds = seconds;
    }
  }

  bool is_over() const {
    return std::ssize(seconds_) >= simulations_max_ || (problem_.stops && problem_.stops());
  }

  bool cannot_win(const LayerChoices& first_layers) const {
    return least_seconds(problem_, first_layers) >= found_.seconds * (1 - kRounding);
  }

  // Whether it is the best so far.
  Result<bool> take_if_better(const LayerChoices& choices) {
    if (is_over() || seconds_.contains(choices)) return false;
    if (cannot_win(choices)) return false;
    if (!problem_.fits(choices)) return false;
    ASSIGN_OR_RETURN(const double seconds, problem_.seconds(choices));
    seconds_.emplace(choices, seconds);
    if (seconds >= found_.seconds) return false;
    found_.best = choices;
    found_.seconds = seconds;
    return true;
  }

  Status try_all(const std::vector<LayerChoices>& all) {
    for (const LayerChoices& choices : all) {
      ASSIGN_OR_RETURN(const bool better, take_if_better(choices));
      static_cast<void>(better);
    }
    return ok_status();
  }

  // A choice that a layer cannot have is the nearest that it can.
  LayerChoices possible(LayerChoices choices) const {
    for (std::size_t l = 0; l < choices.size(); ++l) {
      const LayerWorth& layer = problem_.layers[l];
      if (is_allowed(layer, choices[l])) continue;
      const bool frees = choices[l] != Activations::keep;
      const bool recomputes = frees && is_allowed(layer, Activations::recompute);
      choices[l] = recomputes ? Activations::recompute : Activations::keep;
    }
    return choices;
  }

  LayerChoices with(LayerChoices choices, std::size_t first, std::size_t end,
                    Activations choice) const {
    for (std::size_t l = first; l < end; ++l) {
      if (is_allowed(problem_.layers[l], choice)) choices[l] = choice;
    }
    return choices;
  }

  std::size_t count() const { return problem_.layers.size(); }

  // The first layers leave or are computed again, in one of three orders; the last ones stay.
  LayerChoices shared(std::size_t kept_count, double leaving_share, int order,
                      Activations leaving) const {
    LayerChoices choices(count(), Activations::keep);
    const std::size_t moved = count() - kept_count;
    const auto leaving_count =
        static_cast<std::size_t>(leaving_share * static_cast<double>(moved) + 0.5);
    for (std::size_t l = 0; l < moved; ++l) {
      const bool is_first = l < leaving_count;
      const bool is_last = l + leaving_count >= moved;
      const bool is_spread = (l + 1) * leaving_count / moved > l * leaving_count / moved;
      const bool leaves = order == 0 ? is_first : order == 1 ? is_last : is_spread;
      choices[l] = leaves ? leaving : Activations::recompute;
    }
    return possible(std::move(choices));
  }

  // As many kept as fit; the more, the less is moved and computed.
  Status try_shared(double leaving_share, int order, Activations leaving) {
    std::size_t least = 0;
    std::size_t beyond = count() + 1;  // kept counts from here on do not fit
    while (least + 1 < beyond) {
      const std::size_t middle = (least + beyond) / 2;
      (problem_.fits(shared(middle, leaving_share, order, leaving)) ? least : beyond) = middle;
    }
    return try_all({shared(least, leaving_share, order, leaving)});
  }

  Status try_seeds(const LayerChoices& start) {
    found_.seconds = kForEver;
    found_.best = start;
    std::vector<LayerChoices> seeds = {LayerChoices(count(), Activations::keep), start};
    for (const Activations choice :
         {Activations::recompute, Activations::offload, Activations::offload_inputs}) {
      seeds.push_back(possible(LayerChoices(count(), choice)));
    }
    RETURN_IF_ERROR(try_all(seeds));
    // In halves first, then in quarters and eighths.
    constexpr int kShares = 8;
    for (const int part : {0, 8, 4, 2, 6, 1, 3, 5, 7}) {
      for (const Activations leaving : {Activations::offload, Activations::offload_inputs}) {
        for (int order = 0; order < 3; ++order) {
          if (std::ssize(seconds_) >= simulations_max_ / 2) return ok_status();  // left to improve
          RETURN_IF_ERROR(try_shared(static_cast<double>(part) / kShares, order, leaving));
        }
      }
    }
    return ok_status();
  }

  void add_run_neighbours(const LayerChoices& now, std::vector<LayerChoices>& all) const {
    const std::vector<Run> runs = runs_of(now);
    for (std::size_t stride = count() / 2; stride >= 1; stride /= 2) {
      for (std::size_t r = 0; r < runs.size(); ++r) {
        const auto [first, end] = runs[r];
        const std::size_t length = std::min(stride, end - first);
        for (std::size_t c = 0; c < kChoiceCount; ++c) {
          const auto choice = static_cast<Activations>(c);
          all.push_back(with(now, first, first + length, choice));
          all.push_back(with(now, end - length, end, choice));
        }
      }
    }
  }

  void add_exchanges(const LayerChoices& now, std::vector<LayerChoices>& all) const {
    for (std::size_t a = 0; a < count(); ++a) {
      for (std::size_t b = a + 1; b < count(); ++b) {
        if (now[a] == now[b]) continue;
        LayerChoices exchanged = now;
        std::swap(exchanged[a], exchanged[b]);
        if (possible(exchanged) == exchanged) all.push_back(std::move(exchanged));
      }
    }
  }

  std::vector<LayerChoices> neighbours(const LayerChoices& now) const {
    std::vector<LayerChoices> all;
    add_run_neighbours(now, all);
    if (count() > kSingleLayersMax) return all;
    for (std::size_t l = 0; l < count(); ++l) {
      for (const Activations choice : problem_.layers[l].allowed) {
        all.push_back(with(now, l, l + 1, choice));
      }
    }
    add_exchanges(now, all);
    return all;
  }

  Status improve() {
    bool better = found_.seconds < kForEver;
    while (better && !is_over()) {
      better = false;
      for (const LayerChoices& tried : neighbours(LayerChoices(found_.best))) {
        ASSIGN_OR_RETURN(better, take_if_better(tried));
        if (better) break;
      }
    }
    return ok_status();
  }

  Status search_in_full() {
    double combinations = 1;
    for (const LayerWorth& layer : problem_.layers) {
      combinations *= static_cast<double>(layer.allowed.size());
    }
    if (combinations > kFullSearchMax) return ok_status();
    LayerChoices choices;
    RETURN_IF_ERROR(search_from(choices));
    found_.is_exhaustive = !is_over();
    return ok_status();
  }

  Status search_from(LayerChoices& first_layers) {
    if (is_over() || cannot_win(first_layers)) return ok_status();
    if (first_layers.size() == count()) return try_all({first_layers});
    for (const Activations choice : problem_.layers[first_layers.size()].allowed) {
      first_layers.push_back(choice);
      RETURN_IF_ERROR(search_from(first_layers));
      first_layers.pop_back();
    }
    return ok_status();
  }

  const LayerProblem& problem_;
  const int simulations_max_;
  LayerSearch found_;
  std::map<LayerChoices, double> seconds_;
};

}  // namespace

std::string layers_text(const LayerChoices& choices) {
  // The word without layers is that of most runs, so that the fewest are named.
  std::array<int, kChoiceCount> run_counts{};
  for (const Run& run : runs_of(choices)) {
    run_counts[static_cast<std::size_t>(choices[run.first])] += 1;
  }
  const auto others =
      static_cast<Activations>(std::ranges::max_element(run_counts) - run_counts.begin());
  std::string text;
  for (const Run& run : runs_of(choices)) {
    if (choices[run.first] == others) continue;
    text += fmt::format("{}:{}", word_of(choices[run.first]), run.first);
    if (run.end > run.first + 1) text += fmt::format("-{}", run.end - 1);
    text += ",";
  }
  return text + word_of(others);
}

LayerChoices layer_choices(const model::LayerActivations& activations, std::int32_t layer_count) {
  LayerChoices choices;
  for (std::int32_t l = 0; l < layer_count; ++l) choices.push_back(activations.of(LayerId{l}));
  return choices;
}

double LayerWorth::benefit() const {
  const double saved = compute_with(Activations::recompute) - compute_with(Activations::keep);
  return kept_bytes > 0 ? saved / static_cast<double>(kept_bytes) : 0;
}

double least_seconds(const LayerProblem& problem, const LayerChoices& first_layers) {
  double compute_seconds = 0;
  std::int64_t moved_bytes = -problem.spare_bytes;
  for (std::size_t l = 0; l < problem.layers.size(); ++l) {
    const bool is_known = l < first_layers.size();
    const Activations choice = is_known ? first_layers[l] : Activations::keep;
    compute_seconds += problem.layers[l].compute_with(choice);
    moved_bytes += problem.layers[l].moved_with(choice);
  }
  double least = compute_seconds;
  const auto moved = static_cast<double>(std::max<std::int64_t>(0, moved_bytes));
  for (const StepLoad& load : problem.loads) {
    least = std::max(least, load.base_seconds + load.seconds_per_moved_byte * moved);
  }
  return least;
}

Result<LayerSearch> choose_layers(const LayerProblem& problem, const LayerChoices& start,
                                  int simulations_max) {
  CHECK_EQ(start.size(), problem.layers.size());
  return Search(problem, simulations_max).run(start);
}

}  // namespace sluice::tune
