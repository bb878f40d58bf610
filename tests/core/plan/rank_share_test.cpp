// What a rank has of a model, and settings of shards that are refused.

#include "core/plan/rank_share.h"

#include <catch2/catch.hpp>

#include "core/optimizer/gradient_stats.h"
#include "core/plan/memory_plan.h"
#include "core/plan/run_plan.h"

namespace sluice::plan {
namespace {

std::string sample_file(const std::string& name) {
  return std::string(SLUICE_SOURCE_DIR) + "/sample_models/" + name + ".toml";
}

struct Launched {
  std::int64_t rank_count = 8;
  std::int32_t rank = 0;
  std::int32_t node_ranks = 8;
};

Result<RunPlan> plan_of(const std::string& model, const std::vector<std::string>& settings,
                        const Launched& launched) {
  const std::string text = "model = '" + sample_file(model) + "'\nplatform = '" +
                           sample_file("platforms/laptop") + "'\ntext = 't'\n";
  ASSIGN_OR_RETURN(settings::RunConfig config,
                   settings::parse_run_config(text, "made.toml", settings));
  config.batch.rank_count = launched.rank_count;
  config.shards.rank = launched.rank;
  config.shards.node_ranks = launched.node_ranks;
  return plan_run(config);
}

std::vector<std::string> settings_of(const std::string& parameters, const std::string& gradients,
                                     const std::string& state, const std::string& mesh) {
  return {"shard_parameters=" + parameters, "shard_gradients=" + gradients, "shard_state=" + state,
          "mesh=" + mesh};
}

std::int64_t bytes_of(const RunPlan& plan, const std::string& item) {
  for (const MemoryItem& found : plan_memory(plan, {}, {}).items) {
    if (found.what == item) return found.size_bytes;
  }
  return 0;
}

TEST_CASE("settings of shards that are wrong are refused in words") {
  struct Wrong {
    std::vector<std::string> settings;
    const char* words;
    Launched launched = {};
  };
  const auto more = [](std::vector<std::string> settings, const char* one) {
    settings.emplace_back(one);
    return settings;
  };
  const auto zero1 = settings_of("1x1", "1x1", "8x1", "8x1");
  const std::vector<Wrong> all = {
      {settings_of("2x1", "1x1", "1x1", "8x1"), "breaks the rule of order: parameters (2x1)"},
      {settings_of("1x1", "1x1", "8x2", "8x1"), "breaks the rule of order: state (8x2)"},
      {settings_of("3x1", "3x1", "8x1", "8x1"), "breaks the rule of divisibility"},
      {settings_of("1x2", "1x2", "1x2", "2x4"), "breaks the rule of node fill"},
      {settings_of("1x1", "2x1", "4x1", "8x1"), "breaks the rule of gradients"},
      {settings_of("2", "2x1", "2x1", "8x1"), "shard_parameters=2: '2' is no scope"},
      {settings_of("1x1", "x", "2x1", "8x1"), "shard_gradients=x: 'x' is no scope"},
      {settings_of("1x1", "1x1", "0x1", "8x1"), "shard_state=0x1: '0x1' is no scope"},
      {settings_of("1x1", "1x1", "8x1", "8"), "mesh=8: '8' is no scope"},
      {settings_of("1x1", "1x1", "3x1", "3x1"),
       "mesh=3x1: that is 3 ranks, and the launcher has started 8"},
      {more(zero1, "overlap=local"), "overlap=local goes with ranks that each have all of the"},
      {more(zero1, "parameter_tier=storage"), "parameter_tier=storage goes with ranks that each"},
      {more(settings_of("8x1", "8x1", "8x1", "8x1"), "state_format=compact"),
       "state_format=compact goes with ranks that each have all of the parameters"},
      {more(zero1, "shard_overlap=gather_foward"),
       "'gather_foward' is none (did you mean 'gather_forward'?)"},
      {more(zero1, "shard_overlap=keep_gathered"), "'keep_gathered' is none"},
      {more(zero1, "shard_overlap=all,none"), "'all' is none"},
      {more(zero1, "shard_overlap=gather_forward,"), "'' is none"},
      {more(zero1, "shard_overlap="), "'' is none"},
      {{"shard_overlap=some"}, "'some' is none"},
      {settings_of("1x1", "1x1", "8x1", "auto"), "say with mesh=4x2", {8, 0, 0}},
      {settings_of("1x1", "1x1", "8x1", "auto"), "start it with mpirun -n 8", {1, 0, 1}}};
  for (const Wrong& wrong : all) {
    INFO(fmt::format("{}", fmt::join(wrong.settings, " ")));
    const auto plan = plan_of("models/tiny", wrong.settings, wrong.launched);
    REQUIRE_FALSE(plan.ok());
    CHECK(plan.error().code() == ErrorCode::config);
    CHECK_THAT(plan.error().message(), Catch::Contains(wrong.words));
  }
}

TEST_CASE("ranks with parts of the state have whole groups of it, wherever they are cut") {
  for (const char* format : {"state_format=exact", "state_format=compact"}) {
    for (const char* elements : {"10112", "2000000", "100000001"}) {
      std::vector<std::string> settings = settings_of("1x1", "1x1", "5x1", "5x1");
      settings.insert(settings.end(), {format, fmt::format("subgroup_elements={}", elements)});
      std::int64_t next = 0;
      for (std::int32_t rank = 0; rank < 5; ++rank) {
        INFO(fmt::format("{} {} rank {}", format, elements, rank));
        const auto plan = plan_of("models/tiny", settings, {5, rank, 5});
        INFO((plan.ok() ? "" : plan.error().message()));
        REQUIRE(plan.ok());
        CHECK(plan->options.first_flat_index == next);
        CHECK(next % kGroupElements == 0);
        next += plan->geometry.parameter_count;
      }
    }
  }
}

TEST_CASE("a word for all three scopes is a scheme, and auto is chosen before") {
  const auto with_word = [](const std::string& word, const std::string& platform) {
    auto settings = settings_of(word, word, word, "2x4");
    settings.push_back("platform=" + sample_file("platforms/" + platform));
    return plan_of("models/gpt2-124m", settings, {});
  };
  for (const auto& [word, triple] :
       std::vector<std::pair<std::string, std::string>>{{"data_parallel", "1x1,1x1,1x1"},
                                                        {"zero1", "1x1,1x1,2x4"},
                                                        {"zero3", "2x4,2x4,2x4"},
                                                        {"mics:2x1", "2x1,2x1,2x1"}}) {
    const auto plan = with_word(word, "laptop");
    REQUIRE(plan.ok());
    CHECK(shard::triple_text(plan->share.triple) == triple);
    // The record, and whoever asks later, has the scopes.
    CHECK(plan->config.shards.state == platform::scope_text(plan->share.triple.state));
  }
  const auto open = with_word("auto", "smartssd-2x4");
  REQUIRE_FALSE(open.ok());
  CHECK_THAT(open.error().message(), Catch::Contains("sluice tune --placement --ranks 2x4 finds"));
  const auto wrong = with_word("zero4", "laptop");
  REQUIRE_FALSE(wrong.ok());
  CHECK_THAT(wrong.error().message(), Catch::Contains("'zero4' is no sharding"));
}

TEST_CASE("a run of one rank has nothing to choose") {
  const auto plan = plan_of("models/tiny", settings_of("auto", "auto", "auto", "auto"), {1, 0, 1});
  REQUIRE(plan.ok());
  CHECK_FALSE(plan->share.is_sharded());
}

TEST_CASE("ranks that shard nothing may lie on nodes as they like") {
  CHECK(plan_of("models/tiny", {}, {8, 0, 0}).ok());
}

TEST_CASE("more ranks than a model has blocks are refused, with what there is") {
  const auto plan =
      plan_of("models/tiny", settings_of("512x1", "512x1", "512x1", "512x1"), {512, 0, 512});
  REQUIRE_FALSE(plan.ok());
  CHECK_THAT(plan.error().message(),
             Catch::Contains("too few for 512 ranks to have a part of each"));
}

TEST_CASE("a rank has its part of the formula's bytes, for every triple of 2x4") {
  const platform::Scope mesh{2, 4};
  const std::string model = "models/gpt2-124m";
  for (const shard::Triple& triple : shard::all_triples(mesh)) {
    INFO(shard::triple_text(triple));
    auto settings =
        settings_of(platform::scope_text(triple.parameters), platform::scope_text(triple.gradients),
                    platform::scope_text(triple.state), "2x4");
    settings.insert(settings.end(), {"method=host", "gradient_tier=memory", "devices=1",
                                     "subgroup_elements=65536"});
    std::int64_t parameters = 0;
    std::int64_t state = 0;
    std::int64_t whole = 0;
    for (std::int32_t rank = 0; rank < mesh.size(); ++rank) {
      const auto plan = plan_of(model, settings, {8, rank, 8});
      INFO((plan.ok() ? "" : plan.error().message()));
      REQUIRE(plan.ok());
      whole = plan->layout.parameter_count;
      // Parts are whole blocks of the norm of each layer, and owners have whole subgroups.
      const std::int64_t blocks = plan->share.is_gathered()
                                      ? plan->layout.layer_count() * optimizer::kNormBlockElements
                                      : 0;
      const std::int64_t padding = plan->geometry.subgroup_elements;
      const std::int64_t held =
          bytes_of(*plan, plan->share.is_gathered() ? "parameters of this rank" : "parameters");
      CHECK(std::abs(held - 2 * whole / triple.parameters.size()) <= 2 * (blocks + 1));
      const std::int64_t owned = plan->geometry.parameter_count;
      CHECK(std::abs(12 * owned - 12 * whole / triple.state.size()) <= 12 * (blocks + padding));
      CHECK(plan->geometry.variable_count == 3);
      // What is stored of gradients is what the owner of the state updates by, in fp32.
      const std::int64_t stored = bytes_of(*plan, "gradients of all layers (gradient_tier=memory)");
      CHECK(stored >= 4 * owned);
      CHECK(stored <= 4 * (owned + padding));
      CHECK(stored / 4 <= whole / triple.gradients.size() + blocks + 2 * padding);
      parameters += held;
      state += owned;
    }
    CHECK(parameters == mesh.size() / triple.parameters.size() * 2 * whole);
    CHECK(state == mesh.size() / triple.state.size() * whole);
  }
}

TEST_CASE("messages between ranks are an item of the memory plan, also of one that is refused") {
  constexpr std::int64_t kMebi = 1 << 20;
  const char* const item = "messages between ranks";
  const auto bytes = [&](const std::vector<std::string>& settings, const Launched& launched) {
    return bytes_of(*plan_of("models/gpt2-124m", settings, launched), item);
  };
  CHECK(bytes({}, {.rank_count = 1, .node_ranks = 1}) == 0);
  CHECK(bytes({}, {}) == 12 * kMebi);
  CHECK(bytes(settings_of("8x1", "8x1", "8x1", "8x1"), {}) == 24 * kMebi);
  CHECK(bytes(settings_of("2x1", "2x1", "8x1", "8x1"), {}) == 32 * kMebi);
  MemoryPlan plan = plan_memory(*plan_of("models/gpt2-124m", {}, {}), {}, {});
  plan.cap_bytes = 1;
  CHECK_THAT(check_plan(plan).error().message(), Catch::Contains(item));
}

}  // namespace
}  // namespace sluice::plan
