// A state that other ranks have kept: more, fewer or with other parts.

#include <filesystem>

#include "tests/core/train/shard_runs.h"
#include "tests/core/train/stderr_text.h"

using namespace sluice;

namespace {

const std::vector<std::string> kSettings = {"subgroup_elements=9000", "devices=1", "batch=1",
                                            "max_grad_norm=0.01"};

}  // namespace

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
    const auto start = p == 0 ? session::StartFrom::new_state : session::StartFrom::last_commit;
    const std::vector<std::string> steps = {fmt::format("steps={}", 2 * (p + 1))};
    const auto plain = train_small(
        plain_files,
        with(with(kSettings, steps), {fmt::format("grad_accum_steps={}", phase.ranks)}), start);
    REQUIRE(plain.ok());
    const std::vector<std::string> settings = with(with(kSettings, steps), phase.settings);
    if (phase.ranks == 1) {
      const auto alone = train_small(files, settings, start);
      INFO(message_of(alone));
      REQUIRE(alone.ok());
      CHECK(alone->losses == plain->losses);
      CHECK(alone->digest == plain->digest);
      continue;
    }
    for (const Result<Trained>& rank : train_ranks(files, {phase.ranks, settings, start})) {
      INFO(message_of(rank));
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
    for (const auto& rank : train_ranks(*files, {2, with(with(kSettings, zero), steps)})) {
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
  const Trained whole = one_rank(cut_in_eight(), with(kSettings, {"steps=4"}), 2);
  for (const auto& rank : train_ranks(older, {2, settings, session::StartFrom::last_commit})) {
    INFO(message_of(rank));
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
                           session::StartFrom start) {
    const auto trained = train_ranks(files, {ranks, with(kSettings, more), start});
    return message_of(trained.front());
  };
  using session::StartFrom;
  CHECK_THAT(message(2, {"mesh=2x1", "shard_state=2x1"}, session::StartFrom::last_commit),
             Catch::Contains("there is no state in"));
  REQUIRE(message(2, {"mesh=2x1", "shard_state=2x1"}, session::StartFrom::new_state).empty());
  const auto alone = train_small(files, kSettings);
  REQUIRE_FALSE(alone.ok());
  CHECK_THAT(alone.error().message(), Catch::Contains("the state of a run of several ranks"));
  // A part is gone.
  std::filesystem::remove_all(files.folder.file("rank-1"));
  CHECK_THAT(message(3, {}, session::StartFrom::last_commit),
             Catch::Contains("there is no whole state in"));
}

TEST_CASE("a residual that other ranks have is said to be left, once and without a kill") {
  const std::vector<std::string> sparse =
      with(kSettings, {"density=0.05", "error_feedback=true", "schedule_steps=8"});
  const auto said = [&](const SmallRun& files, int ranks, const std::vector<std::string>& more) {
    const StderrText text;
    for (const auto& rank :
         train_ranks(files, {ranks, with(sparse, more), session::StartFrom::last_commit})) {
      INFO(message_of(rank));
      REQUIRE(rank.ok());
    }
    return text.so_far();
  };
  const SmallRun files = cut_in_eight();
  for (const auto& rank : train_ranks(files, {2, with(sparse, {"steps=2"})})) REQUIRE(rank.ok());
  CHECK(said(files, 2, {"steps=3"}) == "");
  const std::string once = said(files, 3, {"steps=4"});
  CHECK_THAT(once, Catch::Contains("kept by other ranks, whole, and their residual of error "
                                   "feedback is not handed on: it begins with zeros after step 3"));
  CHECK_THAT(once, !Catch::Contains("killed"));
  CHECK(once.find("residual") == once.rfind("residual"));
  CHECK(said(files, 3, {"steps=5"}) == "");

  // Nothing is lost of a run that never had one.
  const SmallRun dense = cut_in_eight();
  for (const auto& rank :
       train_ranks(dense, {2, with(kSettings, {"steps=2", "schedule_steps=8"})})) {
    REQUIRE(rank.ok());
  }
  CHECK(said(dense, 3, {"steps=3"}) == "");
}

TEST_CASE("a damaged part is found by whichever rank checks it, and nothing is put in its place") {
  const std::vector<std::string> zero = {"mesh=2x1", "shard_state=2x1"};
  const std::string part = GENERATE("rank-0", "rank-1");
  const SmallRun files = cut_in_eight();
  for (const auto& rank : train_ranks(files, {2, with(with(kSettings, zero), {"steps=2"})})) {
    REQUIRE(rank.ok());
  }
  const std::string path = files.folder.file(part + "/state/dev0/state.slc");
  std::string bytes;
  {
    std::ifstream whole(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(whole), {});
  }
  std::string damaged = bytes;
  for (std::size_t at = 4096; at < damaged.size(); at += 4096) damaged[at] ^= 1;
  write_text(path, damaged);
  const RankRuns three = {3, with(kSettings, {"steps=4"}), session::StartFrom::last_commit};
  for (const auto& rank : train_ranks(files, three)) {
    REQUIRE_FALSE(rank.ok());
    CHECK_THAT(message_of(rank), Catch::Contains(path));
  }
  write_text(path, bytes);
  const Trained whole = one_rank(cut_in_eight(), with(kSettings, {"steps=2"}), 2);
  for (const auto& rank : train_ranks(
           files, {2, with(with(kSettings, zero), {"steps=2"}), session::StartFrom::last_commit})) {
    INFO(message_of(rank));
    REQUIRE(rank.ok());
    CHECK(rank->digest == whole.digest);
  }
}
