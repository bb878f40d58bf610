// The search for layers' choices against all choices there are, on random machines; and what is
// said of the published ways to choose.

#include "core/tune/layer_choices.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <random>

#include "core/tune/known_plans.h"

namespace sluice::tune {
namespace {

using model::Activations;

constexpr std::array kAll = {Activations::keep, Activations::recompute, Activations::offload,
                             Activations::offload_inputs};

// A machine with one engine, one link each way and a buffer between them: written apart from the
// schedule, and fast enough for every choice of six layers.
struct SmallMachine {
  struct Layer {
    double forward_seconds, backward_seconds;
    std::int64_t bytes, input_bytes;
  };
  std::vector<Layer> layers;
  double out_rate, back_rate;  // bytes a second
  double other_link_seconds;   // on the way back
  std::int64_t cap_bytes;

  static std::int64_t moved(const Layer& layer, Activations choice) {
    if (choice == Activations::offload) return layer.bytes;
    return choice == Activations::offload_inputs ? layer.input_bytes : 0;
  }
  std::int64_t resident_bytes(const LayerChoices& choices) const {
    std::int64_t bytes = 0;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      if (choices[l] == Activations::keep) bytes += layers[l].bytes;
      if (choices[l] == Activations::recompute) bytes += layers[l].input_bytes;
    }
    return bytes;
  }
  // A layer's bytes leave after its forward, one layer at a time; backward takes back each layer
  // while the one above it is computed, and a layer that is still leaving stays.
  double seconds(const LayerChoices& choices) const {
    double now = 0;
    double link = 0;
    std::vector<double> away(layers.size());
    for (std::size_t l = 0; l < layers.size(); ++l) {
      now += layers[l].forward_seconds;
      link = std::max(link, now) + static_cast<double>(moved(layers[l], choices[l])) / out_rate;
      away[l] = link;
    }
    link = now + other_link_seconds;
    for (std::size_t l = layers.size(); l-- > 0;) {
      const auto bytes = static_cast<double>(moved(layers[l], choices[l]));
      if (bytes > 0) {
        link = std::max(link, away[l]) + bytes / back_rate;
        now = std::max(now, link);
      }
      now += layers[l].backward_seconds;
      if (is_recomputed(choices[l])) now += layers[l].forward_seconds;
    }
    return std::max(now, link);
  }

  LayerProblem problem() const {
    LayerProblem problem;
    for (const Layer& layer : layers) {
      LayerWorth worth;
      worth.allowed.assign(kAll.begin(), kAll.end());
      for (const Activations choice : kAll) {
        const auto c = static_cast<std::size_t>(choice);
        worth.compute_seconds[c] =
            layer.forward_seconds * (is_recomputed(choice) ? 2 : 1) + layer.backward_seconds;
        worth.moved_bytes[c] = moved(layer, choice);
      }
      worth.kept_bytes = layer.bytes;
      problem.layers.push_back(worth);
    }
    problem.loads = {{"link, back", other_link_seconds, 1 / back_rate}};
    problem.fits = [this](const LayerChoices& choices) {
      return resident_bytes(choices) <= cap_bytes;
    };
    problem.seconds = [this](const LayerChoices& choices) {
      return Result<double>(seconds(choices));
    };
    return problem;
  }
};

SmallMachine made_machine(std::mt19937& random) {
  const auto between = [&](double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random);
  };
  SmallMachine machine;
  std::int64_t all_bytes = 0;
  const auto layer_count = static_cast<int>(between(2, 6.99));
  double forward_seconds = 0;
  for (int l = 0; l < layer_count; ++l) {
    const auto bytes = static_cast<std::int64_t>(between(1e6, 1e8));
    const double forward = between(0.001, 0.1);
    machine.layers.push_back(
        {forward, forward * between(1.5, 2.5), bytes,
         static_cast<std::int64_t>(between(0.03, 0.3) * static_cast<double>(bytes))});
    all_bytes += bytes;
    forward_seconds += forward;
  }
  // From a tenth of what forward makes in its time to ten times that.
  const double needed = static_cast<double>(all_bytes) / forward_seconds;
  machine.out_rate = needed * std::pow(10, between(-1, 1));
  machine.back_rate = machine.out_rate * between(0.7, 1.5);
  machine.other_link_seconds = between(0, 1) < 0.5 ? 0 : between(0, forward_seconds);
  machine.cap_bytes = static_cast<std::int64_t>(between(0, 1.1) * static_cast<double>(all_bytes));
  return machine;
}

void for_each_choice(std::size_t layer_count, LayerChoices& choices,
                     const std::function<void(const LayerChoices&)>& visit) {
  if (choices.size() == layer_count) return visit(choices);
  for (const Activations choice : kAll) {
    choices.push_back(choice);
    for_each_choice(layer_count, choices, visit);
    choices.pop_back();
  }
}

double least_of_all(const SmallMachine& machine) {
  const LayerProblem problem = machine.problem();
  double least = kForEver;
  LayerChoices choices;
  for_each_choice(machine.layers.size(), choices, [&](const LayerChoices& tried) {
    const double seconds = machine.seconds(tried);
    CHECK(least_seconds(problem, tried) <= seconds * (1 + 1e-12));
    if (problem.fits(tried)) least = std::min(least, seconds);
  });
  return least;
}

LayerSearch searched(const SmallMachine& machine, int simulations_max) {
  const LayerProblem problem = machine.problem();
  const auto found = choose_layers(problem, LayerChoices(machine.layers.size(), Activations::keep),
                                   simulations_max);
  REQUIRE(found.ok());
  return *found;
}

TEST_CASE("on 200 random machines the layers chosen take as long as the best of all choices") {
  std::mt19937 random(1);
  int simulated_count = 0;
  for (int i = 0; i < 200; ++i) {
    const SmallMachine machine = made_machine(random);
    const LayerSearch found = searched(machine, 5000);
    simulated_count += found.simulated_count;
    CAPTURE(i, machine.layers.size(), layers_text(found.best));
    CHECK(found.is_exhaustive);
    const double least = least_of_all(machine);
    CHECK((found.seconds == least || found.seconds <= least * (1 + 1e-9)));
    if (found.seconds == kForEver) continue;
    CHECK(machine.seconds(found.best) == found.seconds);
    CHECK(machine.seconds(found.simplest) <= found.seconds * (1 + kWorthwhile));
    CHECK(machine.resident_bytes(found.simplest) <= machine.cap_bytes);
    CHECK(machine.resident_bytes(found.best) <= machine.cap_bytes);
  }
  // All choices are 1200 a machine in the mean; what the bound excludes is not simulated.
  CHECK(simulated_count < 200 * 400);
}

// What a model with too many layers for a full search gets: seeds and neighbours alone.
TEST_CASE("with sixty simulations at most, nine machines of ten are within 2 % of the best") {
  std::mt19937 random(2);
  std::vector<double> ratios;
  for (int i = 0; i < 200; ++i) {
    const SmallMachine machine = made_machine(random);
    const double least = least_of_all(machine);
    const LayerSearch found = searched(machine, 60);
    CHECK(found.simulated_count <= 60);
    CHECK((found.seconds == kForEver) == (least == kForEver));
    if (least < kForEver) ratios.push_back(found.seconds / least);
  }
  std::ranges::sort(ratios);
  const auto at = [&](double share) {
    return ratios[static_cast<std::size_t>(share * static_cast<double>(ratios.size() - 1))];
  };
  CAPTURE(at(0.5), at(0.75), at(0.9), at(1));
  CHECK(at(0.5) == 1);
  CHECK(at(0.9) <= 1.02);
  CHECK(at(1) <= 1.15);
}

TEST_CASE("where everything fits nothing is moved and nothing is computed again") {
  std::mt19937 random(3);
  for (int i = 0; i < 50; ++i) {
    SmallMachine machine = made_machine(random);
    machine.cap_bytes = std::numeric_limits<std::int64_t>::max();
    const LayerSearch found = searched(machine, 5000);
    CHECK(found.best == LayerChoices(machine.layers.size(), Activations::keep));
    CHECK(found.simulated_count == 1);  // the bound excludes all others
  }
}

TEST_CASE("Fuyou's step is convex in the bytes that leave, on 200 random machines") {
  std::mt19937 random(4);
  for (int i = 0; i < 200; ++i) {
    const SmallMachine machine = made_machine(random);
    const std::vector<LayerWorth> layers = machine.problem().layers;
    SwapCosts costs;
    for (const auto& layer : machine.layers) {
      costs.forward_seconds += layer.forward_seconds;
      costs.backward_seconds += layer.backward_seconds;
    }
    costs.backward_link_seconds = machine.other_link_seconds;
    costs.out_seconds_per_byte = 1 / machine.out_rate;
    costs.back_seconds_per_byte = 1 / machine.back_rate;
    const std::vector<double> seconds = swapped_seconds(layers, costs);
    const std::vector<std::size_t> order = swap_order(layers);
    REQUIRE(seconds.size() == machine.layers.size() + 1);
    double slope = -kForEver;
    for (std::size_t count = 1; count < seconds.size(); ++count) {
      const auto bytes = static_cast<double>(machine.layers[order[count - 1]].bytes);
      const double next = (seconds[count] - seconds[count - 1]) / bytes;
      CHECK(next >= slope - 1e-15);
      slope = next;
    }
    const LayerChoices chosen = swapped_amount(layers, costs);
    const auto leaving = std::ranges::count(chosen, Activations::offload);
    CHECK(seconds[static_cast<std::size_t>(leaving)] == *std::ranges::min_element(seconds));
  }
}

TEST_CASE("SSDTrain's cut keeps more as the drive gets slower") {
  std::vector<LayerWorth> layers(10);
  for (LayerWorth& layer : layers) {
    layer.allowed.assign(kAll.begin(), kAll.end());
    layer.moved_bytes[static_cast<std::size_t>(Activations::offload)] = 100;
  }
  const std::vector<double> forward(10, 1.0);
  std::vector<std::ptrdiff_t> leaving;
  for (const double rate : {200.0, 100.0, 50.0, 20.0, 5.0}) {
    leaving.push_back(
        std::ranges::count(adaptive_cut(layers, forward, rate), Activations::offload));
  }
  CHECK(leaving.front() == 10);
  CHECK(std::ranges::is_sorted(leaving, std::greater<>()));
  // 100 n + 200 <= 20 (30 - 2 n) up to n = 2, from 0.
  CHECK(leaving[3] == 3);
  CHECK(leaving.back() == 0);
}

TEST_CASE("the text of choices is read back as the same, whatever they are") {
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    LayerChoices choices;
    const int layer_count = 1 + static_cast<int>(random() % 12);
    for (int l = 0; l < layer_count; ++l) choices.push_back(kAll[random() % 4]);
    const auto parsed = model::LayerActivations::parse(layers_text(choices));
    CAPTURE(layers_text(choices));
    REQUIRE(parsed.ok());
    CHECK(layer_choices(*parsed, layer_count) == choices);
  }
  CHECK(layers_text({Activations::keep, Activations::offload, Activations::offload,
                     Activations::keep}) == "offload:1-2,keep");
}

TEST_CASE("a search that is stopped gives the best so far, and an error ends it") {
  std::mt19937 random(6);
  SmallMachine machine = made_machine(random);
  machine.cap_bytes = std::numeric_limits<std::int64_t>::max();
  LayerProblem problem = machine.problem();
  problem.loads.clear();
  const LayerChoices start(machine.layers.size(), Activations::recompute);
  int asked = 0;
  problem.stops = [&asked] { return ++asked > 1; };
  const auto stopped = choose_layers(problem, start, 1000);
  REQUIRE(stopped.ok());
  CHECK(!stopped->is_exhaustive);
  CHECK(stopped->simulated_count == 1);
  problem.stops = {};
  problem.seconds = [](const LayerChoices&) -> Result<double> {
    return make_error(ErrorCode::config, "no such platform");
  };
  const auto failed = choose_layers(problem, start, 1000);
  REQUIRE(!failed.ok());
  CHECK(failed.error().message() == "no such platform");
}

}  // namespace
}  // namespace sluice::tune
