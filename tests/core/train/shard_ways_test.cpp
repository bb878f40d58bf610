// Shards together with what else a run may have: pipelines, compression, commits, activations,
// the overlap, changes between steps, failures, resumes, late ranks.

#include <catch2/catch.hpp>

#include "tests/core/train/failing_run.h"
#include "tests/core/train/shard_runs.h"

using namespace sluice;

namespace {

using platform::Scope;

struct Way {
  Scope mesh;
  shard::Triple triple;
  std::vector<std::string> settings;
};

// In a few subgroups a rank, and of a model that is as small as the scope of its parameters allows.
bool is_gathered(const Way& way) { return way.triple.parameters.size() > 1; }
SmallRun files_of(const Way& way) { return is_gathered(way) ? cut_in_eight() : SmallRun(); }
std::vector<std::string> base_of(const Way& way) {
  return {is_gathered(way) ? "subgroup_elements=9000" : "subgroup_elements=1500"};
}

std::string text_of(const Way& way) {
  return fmt::format("{} of {}: {}", shard::triple_text(way.triple), platform::scope_text(way.mesh),
                     fmt::join(way.settings, " "));
}

std::vector<std::string> all_settings(const Way& way) {
  return with(with(base_of(way), settings_of(way.triple, way.mesh)), way.settings);
}

RankRuns runs_of(const Way& way) { return {way.mesh.size(), all_settings(way)}; }

Trained train_way(const Way& way) {
  const SmallRun files = files_of(way);
  return require_alike(train_ranks(files, runs_of(way)));
}

const std::string kClusterPlatform =
    "platform=" + std::string(SLUICE_SOURCE_DIR) + "/sample_models/platforms/smartssd-2x4.toml";
constexpr Scope kOne{1, 1};
constexpr Scope kTwo{2, 1};
constexpr Scope kThree{3, 1};
constexpr Scope kFour{4, 1};
constexpr Scope kSquare{2, 2};

// Parts of everything, in different scopes: each layer is gathered from two ranks, and the state of
// each part belongs to two.
const Way kMixed{kSquare, {kTwo, kTwo, kSquare}, {"steps=4", "grad_accum_steps=2"}};

}  // namespace

TEST_CASE("sharded ranks have the bits of one rank, whatever goes where") {
  // Elements are selected by subgroup. So where fewer are sent parameters are whole, and subgroups
  // are those of one rank.
  const std::vector<Way> ways = {
      {kTwo, {kOne, kOne, kTwo}, {"density=0.1", "wire=native", "error_feedback=true"}},
      {kFour,
       {kOne, kFour, kFour},
       {"density=0.1", "wire=native", "error_feedback=true", "method=host"}},
      {kTwo, {kTwo, kTwo, kTwo}, {"overlap=exact", "max_grad_norm=0.001"}},
      {kSquare, {kOne, kTwo, kTwo}, {"overlap=exact", "max_grad_norm=0.001", "method=host"}},
      {kThree,
       {kThree, kThree, kThree},
       {"precision=fp16", "initial_loss_scale=4294967296", "loss_scale_growth_interval=3"}},
      {kTwo, {kOne, kTwo, kTwo}, {"precision=fp16", "initial_loss_scale=4294967296"}},
      {kFour, {kOne, kOne, kFour}, {"pipeline=serial"}},
      {kFour, {kFour, kFour, kFour}, {"pipeline=handover"}},
      {kTwo, {kTwo, kTwo, kTwo}, {"pipeline=nbuffer", "buffers=1", "prefetch=false"}},
      {kSquare, {kOne, kOne, kSquare}, {"method=host", "pipeline=serial", "gradient_tier=memory"}},
      {kTwo, {kTwo, kTwo, kTwo}, {"method=host", "gradient_tier=memory", "devices=1"}},
      {kTwo, {kOne, kTwo, kTwo}, {"commit_every=3", "state_cache=40KB"}},
      {kFour, {kFour, kFour, kFour}, {"commit_every=3", "state_cache=300KB"}},
      {kTwo, {kTwo, kTwo, kTwo}, {"activations=offload", "activation_buffer=4096"}},
      {kTwo, {kTwo, kTwo, kTwo}, {"clock=emulated", "time_scale=0.01"}},
      // Collectives cost what the cluster's links say.
      {kSquare,
       {kSquare, kSquare, kSquare},
       {"clock=emulated", "time_scale=0.001", kClusterPlatform}},
      {kSquare,
       {kOne, kOne, kSquare},
       {"clock=emulated", "time_scale=0.001", kClusterPlatform, "method=host"}}};
  int skipped = 0;
  for (const Way& way : some_of(ways)) {
    INFO(text_of(way));
    const Trained plain =
        one_rank(files_of(way), with(base_of(way), way.settings), way.mesh.size());
    const Trained found = train_way(way);
    CHECK(found.losses == plain.losses);
    CHECK(found.digest == plain.digest);
    REQUIRE(found.steps.size() == plain.steps.size());
    for (std::size_t s = 0; s < plain.steps.size(); ++s) {
      CHECK(found.steps[s].skipped == plain.steps[s].skipped);
      CHECK(found.steps[s].tokens == plain.steps[s].tokens);
      // The norm of a step that is skipped is not a number.
      if (plain.steps[s].skipped) {
        skipped += 1;
      } else {
        CHECK(found.steps[s].grad_norm == plain.steps[s].grad_norm);
      }
    }
  }
  CHECK(skipped > 0);
}

TEST_CASE("what goes where moves no bit of ranks with parts in different scopes") {
  const std::vector<std::string> sparse = {"density=0.1", "error_feedback=true"};
  const std::vector<std::vector<std::string>> plain_ways = {{}, sparse};
  const std::vector<std::vector<std::string>> others = {
      {"method=host"},
      {"pipeline=serial", "wire=native"},
      {"pipeline=handover", "buffers=2", "devices=1"},
      {"method=host", "gradient_tier=memory"},
      {"overlap=exact"},
      {"commit_every=3", "state_cache=150KB"},
      {"activations=offload", "activation_buffer=4096"}};
  for (const std::vector<std::string>& plain_way : plain_ways) {
    Way way = kMixed;
    way.settings = with(way.settings, plain_way);
    const Trained plain = train_way(way);
    for (const std::vector<std::string>& more : some_of(others)) {
      Way other = way;
      other.settings = with(way.settings, more);
      INFO(text_of(other));
      const Trained found = train_way(other);
      CHECK(found.losses == plain.losses);
      CHECK(found.digest == plain.digest);
    }
  }
}

TEST_CASE("what ranks do beside computing moves no bit") {
  const Trained plain = train_way(kMixed);
  for (const char* overlap : {"none", "gather_forward", "gather_backward", "reduce_backward",
                              "share_forward", "gather_forward,share_forward"}) {
    Way way = kMixed;
    way.settings.push_back(fmt::format("shard_overlap={}", overlap));
    INFO(overlap);
    const Trained found = train_way(way);
    CHECK(found.losses == plain.losses);
    CHECK(found.digest == plain.digest);
  }
}

TEST_CASE("messages that are late move no bit") {
  const Trained plain = train_way(kMixed);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    INFO("seed " << seed);
    const SmallRun files = files_of(kMixed);
    RankRuns late = runs_of(kMixed);
    late.seed = seed;
    late.delay_polls_max = 50;
    const Trained found = require_alike(train_ranks(files, late));
    CHECK(found.losses == plain.losses);
    CHECK(found.digest == plain.digest);
  }
}

TEST_CASE("knobs that change between the steps of sharded ranks move no bit") {
  const Trained plain = train_way(kMixed);
  const std::vector<std::vector<session::PlannedChange>> variants = {
      {{1, {"pipeline=serial"}}, {2, {"pipeline=handover", "buffers=1"}}, {3, {"buffers=4"}}},
      {{1, {"method=host"}}, {2, {"gradient_tier=memory"}}, {3, {"device_map=3,1"}}},
      {{1, {"commit_every=2", "wire=native"}}, {2, {"overlap=exact", "state_cache=150KB"}}}};
  for (const auto& changes : variants) {
    INFO(fmt::format("{}", fmt::join(changes[0].settings, " ")));
    const SmallRun files = files_of(kMixed);
    RankRuns changing = runs_of(kMixed);
    changing.changes = changes;
    const Trained found = require_alike(train_ranks(files, changing));
    CHECK(found.losses == plain.losses);
    CHECK(found.digest == plain.digest);
    CHECK_FALSE(found.knobs.empty());
  }
}

TEST_CASE("sharded ranks go on with the bits of those that never stopped") {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"density=0.1", "error_feedback=true"}, {"commit_every=2"}}) {
    Way way = kMixed;
    way.settings = with(with(way.settings, more), {"schedule_steps=6"});
    const auto until = [&](const char* steps, session::StartFrom start) {
      RankRuns runs = runs_of(way);
      runs.settings.emplace_back(steps);
      runs.start = start;
      return runs;
    };
    INFO(text_of(way));
    const SmallRun whole_files = files_of(way);
    const Trained whole =
        require_alike(train_ranks(whole_files, until("steps=6", session::StartFrom::new_state)));
    const SmallRun files = files_of(way);
    require_alike(train_ranks(files, until("steps=3", session::StartFrom::new_state)));
    const Trained rest =
        require_alike(train_ranks(files, until("steps=6", session::StartFrom::last_commit)));
    CHECK(rest.losses == std::vector<double>(whole.losses.begin() + 3, whole.losses.end()));
    CHECK(rest.digest == whole.digest);
  }
}

TEST_CASE("a sharded rank that fails ends all of them, and they go on together to the same bits") {
  Way way = kMixed;
  way.settings = {"steps=4", "commit_every=1"};
  const Trained plain = train_way(way);
  int resumed = 0;
  int failures = 0;
  for (std::uint64_t request = 12; request < 190; request += kIsSanitized ? 55 : 11) {
    INFO("request " << request);
    const SmallRun files = files_of(way);
    RankRuns runs = runs_of(way);
    const int failing_rank = static_cast<int>(request % 4);
    runs.wrap_of = [&](int rank) { return rank == failing_rank ? failing(request) : WrapEngine(); };
    const auto failed = train_ranks(files, runs);
    if (std::ranges::all_of(failed, [](const auto& rank) { return rank.ok(); })) continue;
    for (const Result<Trained>& rank : failed) CHECK_FALSE(rank.ok());
    failures += 1;
    bool has_begun = true;
    for (int rank = 0; rank < way.mesh.size(); ++rank) {
      state::StateStore::Options options;
      options.directory = files.folder.file(fmt::format("rank-{}/state", rank));
      options.caching = io::Caching::buffered;
      has_begun = has_begun && state::StateStore::open_read_only(options).ok();
    }
    if (!has_begun) continue;
    resumed += 1;
    RankRuns rest = runs_of(way);
    rest.start = session::StartFrom::last_commit;
    CHECK(require_alike(train_ranks(files, rest)).digest == plain.digest);
  }
  CHECK(failures >= (kIsSanitized ? 1 : 6));
  CHECK(resumed >= (kIsSanitized ? 0 : 4));
}
