// Ranks that have parts of parameters, gradients and optimizer state, against one rank with the
// same global batch: every legal triple, whatever goes where.

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/core/train/rank_world.h"
#include "tests/core/train/small_run.h"

using namespace sluice;

namespace {

// A model of which eight ranks can have parts: its block has eight blocks of the norm.
SmallRun cut_in_eight() { return SmallRun(1, 104); }

std::vector<std::string> with(std::vector<std::string> settings,
                              const std::vector<std::string>& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

std::vector<std::string> triple_settings(const shard::Triple& triple) {
  return {"shard_parameters=" + platform::scope_text(triple.parameters),
          "shard_gradients=" + platform::scope_text(triple.gradients),
          "shard_state=" + platform::scope_text(triple.state)};
}

std::vector<Result<Trained>> train_ranks(const SmallRun& files, int rank_count,
                                         const std::vector<std::string>& settings,
                                         train::StartFrom start = train::StartFrom::new_state) {
  return on_ranks<Trained>(
      {.rank_count = rank_count, .seed = 5, .delay_polls_max = 3}, [&](train::Ranks& ranks) {
        return train_small(files, settings, start, {}, {}, nullptr, arithmetic_factory(), &ranks);
      });
}

Trained one_rank(const std::vector<std::string>& settings, std::int64_t micro_steps) {
  const SmallRun files = cut_in_eight();
  const auto trained =
      train_small(files, with(settings, {fmt::format("grad_accum_steps={}", micro_steps)}));
  INFO((trained.ok() ? std::string() : trained.error().message()));
  REQUIRE(trained.ok());
  return *trained;
}

// The sum over ranks is in their order where one group makes it.
bool sums_in_order(const shard::Triple& triple, const platform::Scope& mesh) {
  return triple.parameters.size() == 1 || triple.parameters == mesh;
}

const std::vector<std::string> kSettings = {"subgroup_elements=9000", "devices=1", "batch=1",
                                            "steps=5", "max_grad_norm=0.01"};

}  // namespace

TEST_CASE("every legal triple of 2x4 ranks trains like one rank with the same global batch") {
  const platform::Scope mesh{2, 4};
  const auto micro_steps = GENERATE(1, 4);
  const std::string method = GENERATE("method=csd", "method=host");
  const std::vector<std::string> settings =
      with(kSettings, {method, fmt::format("grad_accum_steps={}", micro_steps)});
  const Trained plain = one_rank(with(kSettings, {method}), 8 * micro_steps);
  const std::vector<shard::Triple> triples = shard::all_triples(mesh);
  REQUIRE(triples.size() == 16);
  for (const shard::Triple& triple : triples) {
    INFO(shard::triple_text(triple) << " " << method << " M=" << micro_steps);
    const SmallRun files = cut_in_eight();
    const auto ranks =
        train_ranks(files, 8, with(with(settings, {"mesh=2x4"}), triple_settings(triple)));
    for (const Result<Trained>& rank : ranks) {
      INFO((rank.ok() ? std::string() : rank.error().message()));
      REQUIRE(rank.ok());
      CHECK(rank->digest == ranks.front()->digest);
      for (std::size_t s = 0; s < plain.losses.size(); ++s) {
        CHECK(rank->losses[s] == Approx(plain.losses[s]).epsilon(1e-6));
      }
    }
    if (micro_steps == 1 && sums_in_order(triple, mesh)) {
      CHECK(ranks.front()->losses == plain.losses);
      CHECK(ranks.front()->digest == plain.digest);
    }
  }
}

TEST_CASE("a state goes on with any number of ranks and any sharding, to the bit") {
  struct Phase {
    int ranks;
    std::vector<std::string> settings;
  };
  const std::vector<Phase> phases = {
      {1, {}},
      {8, {"mesh=2x4", "shard_state=2x4"}},
      {4, {"mesh=2x2", "shard_parameters=2x2", "shard_gradients=2x2", "shard_state=2x2"}},
      {3, {"mesh=3x1", "shard_state=3x1", "devices=2"}},
      {2, {"mesh=2x1"}},
      {4, {"mesh=2x2", "shard_state=2x1"}},
      {1, {}}};
  const SmallRun plain_files = cut_in_eight();
  const SmallRun files = cut_in_eight();
  std::string last_digest;
  for (std::size_t p = 0; p < phases.size(); ++p) {
    const Phase& phase = phases[p];
    INFO("phase " << p);
    const auto start = p == 0 ? train::StartFrom::new_state : train::StartFrom::last_commit;
    const std::vector<std::string> steps = {fmt::format("steps={}", 2 * (p + 1))};
    const auto plain = train_small(
        plain_files,
        with(with(kSettings, steps), {fmt::format("grad_accum_steps={}", phase.ranks)}), start);
    REQUIRE(plain.ok());
    const std::vector<std::string> settings = with(with(kSettings, steps), phase.settings);
    if (phase.ranks == 1) {
      const auto alone = train_small(files, settings, start);
      INFO((alone.ok() ? std::string() : alone.error().message()));
      REQUIRE(alone.ok());
      CHECK(alone->losses == plain->losses);
      CHECK(alone->digest == plain->digest);
      continue;
    }
    for (const Result<Trained>& rank : train_ranks(files, phase.ranks, settings, start)) {
      INFO((rank.ok() ? std::string() : rank.error().message()));
      REQUIRE(rank.ok());
      CHECK(rank->losses == plain->losses);
      CHECK(rank->digest == plain->digest);
    }
  }
}

TEST_CASE("a change to other ranks that a crash has cut is finished, or as if it had not begun") {
  const std::vector<std::string> zero = {"mesh=2x1", "shard_state=2x1"};
  const SmallRun older = cut_in_eight();
  const SmallRun newer = cut_in_eight();
  for (const SmallRun* files : {&older, &newer}) {
    const std::vector<std::string> steps = {files == &older ? "steps=2" : "steps=4"};
    for (const auto& rank : train_ranks(*files, 2, with(with(kSettings, zero), steps))) {
      REQUIRE(rank.ok());
    }
  }
  // The newer state as the replacement of the older one.
  namespace fs = std::filesystem;
  for (const std::string rank : {"rank-0", "rank-1"}) {
    const std::string folder = older.folder.file(rank + "/state");
    fs::copy(newer.folder.file(rank + "/state"), folder + "/replacement",
             fs::copy_options::recursive);
  }
  const bool is_noted = GENERATE(false, true);
  if (is_noted) {
    write_text(older.folder.file("resharded"), "2\n");
    // Some of it was moved already.
    const std::string folder = older.folder.file("rank-1/state");
    fs::rename(folder + "/replacement/dev0/state.slc", folder + "/dev0/state.slc");
  }
  const std::vector<std::string> settings = with(with(kSettings, zero), {"steps=4"});
  const Trained whole = one_rank(with(kSettings, {"steps=4"}), 2);
  for (const auto& rank : train_ranks(older, 2, settings, train::StartFrom::last_commit)) {
    INFO((rank.ok() ? std::string() : rank.error().message()));
    REQUIRE(rank.ok());
    CHECK(rank->digest == whole.digest);
    CHECK(rank->losses.size() == (is_noted ? 0 : 2));
  }
  CHECK_FALSE(fs::exists(older.folder.file("resharded")));
  CHECK_FALSE(fs::exists(older.folder.file("rank-0/state/replacement")));
}

TEST_CASE("what cannot go on is said in words") {
  const SmallRun files = cut_in_eight();
  const auto message = [&](int ranks, const std::vector<std::string>& more,
                           train::StartFrom start) {
    const auto trained = train_ranks(files, ranks, with(kSettings, more), start);
    return trained.front().ok() ? std::string() : trained.front().error().message();
  };
  using train::StartFrom;
  CHECK_THAT(message(2, {"mesh=2x1", "shard_state=2x1"}, StartFrom::last_commit),
             Catch::Contains("there is no state in"));
  REQUIRE(message(2, {"mesh=2x1", "shard_state=2x1"}, StartFrom::new_state).empty());
  const auto alone = train_small(files, kSettings);
  REQUIRE_FALSE(alone.ok());
  CHECK_THAT(alone.error().message(), Catch::Contains("the state of a run of several ranks"));
  // A part is gone.
  std::filesystem::remove_all(files.folder.file("rank-1"));
  CHECK_THAT(message(3, {}, StartFrom::last_commit), Catch::Contains("there is no whole state in"));
}
