// What a state was made with, and what ranks train with, is one record: ranks that differ in it are
// refused by what differs before anything is made, and a resume is compared with it.

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "core/session/recipe_history.h"
#include "core/train/training_recipe.h"
#include "tests/core/train/rank_world.h"
#include "tests/core/train/small_run.h"
#include "tests/core/train/stderr_text.h"

using namespace sluice;
using session::StartFrom;
using settings::Decides;

namespace {

namespace fs = std::filesystem;

std::vector<std::string> joined(std::vector<std::string> settings,
                                const std::vector<std::string>& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

const data::TextFacts kText{4000, 0x1234};

model::ModelShape small_shape() {
  return {
      .name = "small", .layers = 2, .hidden = 16, .heads = 2, .sequence = 16, .vocabulary = 256};
}

session::Recipe recipe_with(const SmallRun& files, const std::vector<std::string>& settings) {
  const auto config = files.config(settings);
  INFO((config.ok() ? "" : config.error().message()));
  REQUIRE(config.ok());
  return train::recipe_of(*config, small_shape(), kText);
}

// Said, so that another optimizer changes nothing else.
const std::vector<std::string> kAsAlways = {"lr=0.01", "eps=1e-8", "weight_decay=0.01"};

// The first of many values that this setting may have and has not; "": none.
std::string other_value(const SmallRun& files, const settings::SettingInfo& info) {
  const auto base = files.config(kAsAlways);
  const std::string now = settings::value_of(*base, info.key);
  std::vector<std::string> candidates = {"2",       "3",    "8",     "0.25", "0.0001",
                                         "8388608", "true", "false", "soft"};
  for (std::size_t begin = 0; begin < info.values.size();) {  // of a choice among words
    const std::size_t end = std::min(info.values.find(", ", begin), info.values.size());
    candidates.push_back(info.values.substr(begin, end - begin));
    begin = end + 2;
  }
  for (const std::string& candidate : candidates) {
    const auto config = files.config(joined(kAsAlways, {info.key + "=" + candidate}));
    if (config.ok() && settings::value_of(*config, info.key) != now) return candidate;
  }
  return "";
}

// What the second of two ranks with these recipes says.
std::string refused_for(const session::Recipe& first, const session::Recipe& second) {
  const auto outcomes =
      on_ranks<bool>({.rank_count = 2, .seed = 1}, [&](train::Ranks& ranks) -> Result<bool> {
        const Status same = train::check_same_on_ranks(ranks, ranks.is_first() ? first : second);
        RETURN_IF_ERROR(ranks.agreed_or_end(same, "settings"));
        return true;
      });
  for (const Result<bool>& outcome : outcomes) REQUIRE(outcome.ok() == outcomes.front().ok());
  if (outcomes.back().ok()) return "";
  CHECK(outcomes.back().error().code() == ErrorCode::config);
  return outcomes.back().error().message();
}

// What two ranks say of which one has other settings, in folders of their own.
std::vector<std::string> two_ranks(const SmallRun& files, const std::vector<std::string>& second) {
  std::vector<std::string> messages;
  for (const Result<Trained>& rank :
       on_ranks<Trained>({.rank_count = 2, .seed = 1}, [&](train::Ranks& ranks) {
         return train_small(files, ranks.is_first() ? std::vector<std::string>() : second,
                            session::StartFrom::new_state, {}, {}, nullptr, arithmetic_factory(),
                            &ranks);
       })) {
    messages.push_back(rank.ok() ? "" : rank.error().message());
  }
  return messages;
}

std::set<std::string> paths_in(const SmallRun& files) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(files.folder.path())) {
    names.insert(entry.path().string());
  }
  return names;
}

const std::vector<std::string> kThreeSteps = {"steps=3", "schedule_steps=6", "lr=0.003"};

Result<Trained> resume_of(const SmallRun& files, const std::vector<std::string>& more) {
  return train_small(files, joined(joined(kThreeSteps, {"steps=6"}), more),
                     session::StartFrom::last_commit);
}

// What a resume with these settings says before its first step, "lr 0.003 -> 0.001", without one.
std::vector<std::string> changes_of(const SmallRun& files, const std::vector<std::string>& more) {
  const auto config = files.config(joined(joined(kThreeSteps, {"steps=6"}), more));
  REQUIRE(config.ok());
  const model::ModelFactory factory = arithmetic_factory();
  train::TrainingRun::Request request;
  request.config = &*config;
  request.factory = &factory;
  request.start = session::StartFrom::last_commit;
  const auto run = train::TrainingRun::open(request);
  INFO((run.ok() ? "" : run.error().message()));
  REQUIRE(run.ok());
  REQUIRE((*run)->prepare(session::StartFrom::last_commit).ok());
  std::vector<std::string> changes;
  for (const settings::KnobChange& change : (*run)->session().state().recipe_changes()) {
    changes.push_back(fmt::format("{} {} -> {}", change.knob, change.from, change.to));
  }
  return changes;
}

std::string refusal(const SmallRun& files, const std::vector<std::string>& more) {
  const auto before = paths_in(files);
  const auto again = resume_of(files, more);
  REQUIRE_FALSE(again.ok());
  CHECK(again.error().code() == ErrorCode::config);
  CHECK(paths_in(files) == before);
  return again.error().message();
}

}  // namespace

TEST_CASE("ranks with another value of any setting that decides something are refused by its key") {
  const SmallRun files;
  const session::Recipe base = recipe_with(files, kAsAlways);
  CHECK(refused_for(base, base) == "");
  int refused = 0;
  int allowed = 0;
  for (const settings::SettingInfo& info : settings::settings()) {
    if (info.type == settings::SettingType::path) continue;  // by their content: below
    CAPTURE(info.key);
    const std::string value = other_value(files, info);
    const bool is_own = info.decides == Decides::own;
    if (is_own && value.empty()) continue;  // needs another setting beside it
    REQUIRE_FALSE(value.empty());
    const std::vector<std::string> other = joined(kAsAlways, {info.key + "=" + value});
    const std::string message = refused_for(base, recipe_with(files, other));
    if (is_own) {
      CHECK(message == "");
      allowed += 1;
      continue;
    }
    const auto config = files.config(other);
    const std::string now = settings::value_of(*config, info.key);
    CHECK_THAT(message, Catch::Contains(fmt::format(": {} is ", info.key)) &&
                            Catch::Contains(fmt::format("and {} on rank 1", now)));
    refused += 1;
  }
  CHECK(refused >= 35);
  CHECK(allowed >= 20);
}

TEST_CASE("ranks with another model or text are refused by what is in the file") {
  const SmallRun files;
  const auto config = files.config({});
  const session::Recipe base = train::recipe_of(*config, small_shape(), kText);
  model::ModelShape more_heads = small_shape();
  more_heads.heads = 4;  // the same tensors
  CHECK_THAT(refused_for(base, train::recipe_of(*config, more_heads, kText)),
             Catch::Contains("model.heads is 2 on rank 0 and 4 on rank 1"));
  CHECK_THAT(refused_for(base, train::recipe_of(*config, small_shape(), {4000, 0x1235})),
             Catch::Contains("text is 4000 bytes, checksum 0000000000001234 on rank 0 and 4000 "
                             "bytes, checksum 0000000000001235 on rank 1"));
  session::Recipe newer = base;
  newer.push_back({"novelty", "on", Decides::numbers});
  CHECK_THAT(refused_for(base, newer),
             Catch::Contains("novelty is (nothing) on rank 0 and on on rank 1"));
}

TEST_CASE("the files that decide something are the model and the text") {
  std::set<std::string> deciding;
  for (const settings::SettingInfo& info : settings::settings()) {
    if (info.type == settings::SettingType::path && info.decides != Decides::own) {
      deciding.insert(info.key);
    }
  }
  CHECK(deciding == std::set<std::string>{"model", "text"});
}

TEST_CASE("ranks that differ make nothing, and those that differ only in what is their own train") {
  const SmallRun files;
  write_text(files.folder.file("other.txt"), std::string(4000, 'x'));
  const std::string other_text = "text=" + files.folder.file("other.txt");
  const auto before = paths_in(files);
  for (const auto& [setting, words] : std::vector<std::pair<std::string, std::string>>{
           {"seed=1", "seed is 0 on rank 0 and 1 on rank 1"},
           {"batch=4", "batch is 2 on rank 0 and 4 on rank 1"},
           {"sequence=8", "sequence is 16 on rank 0 and 8 on rank 1"},
           {"commit_every=2", "commit_every is 1 on rank 0 and 2 on rank 1"},
           {other_text, "text is 4000 bytes"}}) {
    for (const std::string& message : two_ranks(files, {setting})) {
      CHECK_THAT(message, Catch::Contains(words));
    }
    CHECK(paths_in(files) == before);
  }
  // One that cannot begin ends both, by its name.
  for (const std::string& message : two_ranks(files, {"sequence=32"})) {
    CHECK_THAT(message, Catch::Contains("longer than model small allows"));
  }
  CHECK(paths_in(files) == before);
  for (const std::string& message :
       two_ranks(files, {"threads=1", "queue_depth=4", "host_memory=8GB", "buffers=2"})) {
    CHECK(message == "");
  }
}

TEST_CASE("a resume with another text, seed or model is refused, and nothing is touched") {
  const SmallRun files;
  REQUIRE(train_small(files, kThreeSteps).ok());
  CHECK_THAT(refusal(files, {"seed=7"}), Catch::Contains("state was begun with seed=0") &&
                                             Catch::Contains("this run has seed=7"));
  const std::string model_path = files.folder.file("model.toml");
  write_text(model_path,
             "name = \"small\"\nlayers = 2\nhidden = 16\nheads = 4\nsequence = 16\n"
             "vocabulary = 256\n");
  CHECK_THAT(refusal(files, {}), Catch::Contains("begun with model.heads=2") &&
                                     Catch::Contains("this run has model.heads=4"));
  write_text(model_path,
             "name = \"small\"\nlayers = 2\nhidden = 16\nheads = 2\nsequence = 16\n"
             "vocabulary = 256\n");

  const std::string text_path = files.folder.file("text.txt");
  std::ifstream file(text_path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  write_text(text_path, text + "more\n");
  CHECK_THAT(refusal(files, {}),
             Catch::Contains("begun with a text of 4000 bytes") &&
                 Catch::Contains("has 4005 bytes") && Catch::Contains("was appended to it") &&
                 Catch::Contains("head -c 4000") && Catch::Contains("begin another run"));
  write_text(text_path, "B" + text.substr(1));
  CHECK_THAT(refusal(files, {}), Catch::Contains("it is another text"));
  write_text(text_path, "B" + text.substr(1) + "more\n");
  CHECK_THAT(refusal(files, {}), Catch::Contains("it is another text"));
  write_text(text_path, text);
  CHECK(resume_of(files, {}).ok());
}

TEST_CASE("what a resume learns with that the steps before did not is told, once") {
  const SmallRun files;
  REQUIRE(train_small(files, kThreeSteps).ok());
  CHECK(changes_of(files, {}).empty());
  CHECK(changes_of(files, {"buffers=2", "method=host", "commit_every=2"}).empty());
  const std::vector<std::string> lower = {"lr=0.001", "batch=4", "validation_fraction=0.1"};
  const std::vector<std::string> told = {"batch 2 -> 4", "lr 0.003 -> 0.001",
                                         "validation_fraction 0.05 -> 0.1"};
  CHECK(changes_of(files, lower) == told);
  // No step was taken with them.
  CHECK(changes_of(files, lower) == told);
  CHECK(changes_of(files, {"batch=4"}) == std::vector<std::string>{"batch 2 -> 4"});
  REQUIRE(resume_of(files, {"lr=0.001", "steps=5"}).ok());
  CHECK(changes_of(files, {"lr=0.001"}).empty());
  CHECK(changes_of(files, {"lr=0.002"}) == std::vector<std::string>{"lr 0.001 -> 0.002"});
  // As long as the settings say no other end of it, the cosine ends with the steps.
  const SmallRun longer;
  REQUIRE(train_small(longer, {"steps=3", "lr=0.003"}).ok());
  CHECK(changes_of(longer, {"schedule_steps=0"}) ==
        std::vector<std::string>{"schedule_steps 3 -> 6"});
}

TEST_CASE("what changed in a live run is what its state was made with") {
  const SmallRun files;
  const std::vector<session::PlannedChange> changes = {{1, {"density=0.5"}}};
  REQUIRE(train_small(files, kThreeSteps, session::StartFrom::new_state, {}, changes).ok());
  CHECK(changes_of(files, {"density=0.5"}).empty());
  CHECK(changes_of(files, {}) == std::vector<std::string>{"density 0.5 -> 1"});
  // A warm-up is a setting of its own, whatever stage it is in.
  const SmallRun warming;
  REQUIRE(
      train_small(warming, joined(kThreeSteps, {"density=0.5", "density_warmup_steps=100"})).ok());
  CHECK(changes_of(warming, {"density=0.5", "density_warmup_steps=100"}).empty());
}

TEST_CASE("a state without its recipe goes on with a sentence, and a damaged recipe is refused") {
  const SmallRun files;
  REQUIRE(train_small(files, kThreeSteps).ok());
  const std::string path = files.folder.file("state/recipe.slc");
  std::ifstream file(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  REQUIRE(whole.size() > 500);
  for (const std::size_t at : {std::size_t{0}, std::size_t{8}, std::size_t{20}, whole.size() / 2}) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    write_text(path, damaged);
    const auto again = resume_of(files, {});
    REQUIRE_FALSE(again.ok());
    CHECK(again.error().code() == ErrorCode::corrupt);
    CHECK_THAT(again.error().message(), Catch::Contains(path) && Catch::Contains("move it away"));
  }
  write_text(path, whole.substr(0, whole.size() - 1));
  CHECK_FALSE(resume_of(files, {}).ok());

  fs::remove(path);
  {
    const StderrText text;
    CHECK(changes_of(files, {"lr=0.001"}).empty());
    CHECK_THAT(text.so_far(), Catch::Contains("nothing is recorded of the text") &&
                                  Catch::Contains("from step 4 on"));
  }
  const StderrText text;
  REQUIRE(resume_of(files, {"lr=0.001", "steps=4"}).ok());
  CHECK(text.so_far() == "");
  CHECK(changes_of(files, {}) == std::vector<std::string>{"lr 0.001 -> 0.003"});
}

TEST_CASE("the recipe goes with a state to other ranks, and leaves with it") {
  const SmallRun files;
  REQUIRE(train_small(files, kThreeSteps).ok());
  const auto on_two = [&](const std::vector<std::string>& more) {
    return on_ranks<Trained>({.rank_count = 2, .seed = 1}, [&](train::Ranks& ranks) {
      return train_small(files, joined(joined(kThreeSteps, {"steps=5"}), more),
                         session::StartFrom::last_commit, {}, {}, nullptr, arithmetic_factory(),
                         &ranks);
    });
  };
  for (const Result<Trained>& rank : on_two({"seed=3"})) {
    REQUIRE_FALSE(rank.ok());
    CHECK_THAT(rank.error().message(), Catch::Contains("was begun with seed=0"));
  }
  CHECK(fs::exists(files.folder.file("state/recipe.slc")));
  for (const Result<Trained>& rank : on_two({})) {
    INFO((rank.ok() ? "" : rank.error().message()));
    REQUIRE(rank.ok());
  }
  CHECK_FALSE(fs::exists(files.folder.file("state/recipe.slc")));
  CHECK(fs::exists(files.folder.file("rank-0/state/recipe.slc")));
  CHECK(fs::exists(files.folder.file("rank-1/state/recipe.slc")));
  CHECK(changes_of(files, {}) == std::vector<std::string>{"ranks 2 -> 1"});
}
