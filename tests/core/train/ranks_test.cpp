// A run of several ranks against one rank with as many micro-batches: the same bits, on whatever
// way gradients and state go; what is asked of one rank happens on all; and a run whose ranks ended
// at different commits goes on from the newest that all have.

#include "core/train/ranks.h"

#include <catch2/catch.hpp>

#include "core/train/rank_requests.h"
#include "tests/core/train/failing_run.h"
#include "tests/core/train/rank_world.h"

using namespace sluice;

namespace {

std::vector<Result<Trained>> train_ranks(const SmallRun& files, int rank_count,
                                         const std::vector<std::string>& settings,
                                         session::StartFrom start = session::StartFrom::new_state,
                                         const std::function<WrapEngine(int)>& wrap_of = {}) {
  return on_ranks<Trained>(
      {.rank_count = rank_count, .seed = 5, .delay_polls_max = 3}, [&](train::Ranks& ranks) {
        return train_small(files, settings, start, wrap_of ? wrap_of(ranks.rank()) : WrapEngine(),
                           {}, nullptr, arithmetic_factory(), &ranks);
      });
}

Trained one_rank(std::vector<std::string> settings, int micro_steps) {
  settings.push_back(fmt::format("grad_accum_steps={}", micro_steps));
  const SmallRun files;
  auto trained = train_small(files, settings);
  INFO(message_of(trained));
  REQUIRE(trained.ok());
  return *std::move(trained);
}

// The platform of small runs, with a cluster of 4 MB/s links.
std::string with_cluster(const SmallRun& files, const std::string& ranks_and_nodes) {
  std::ifstream plain(std::string(SLUICE_SOURCE_DIR) +
                      "/sample_models/platforms/smartssd-a5000.toml");
  std::string text{std::istreambuf_iterator<char>(plain), {}};
  text += "\n[cluster]\n" + ranks_and_nodes +
          "\nwithin = { bandwidth = \"4 MB/s\", latency = \"2 ms\" }\n"
          "between = { bandwidth = \"1 GB/s\" }\n";
  const std::string path = files.folder.file("cluster.toml");
  write_text(path, text);
  return "platform=" + path;
}

}  // namespace

TEST_CASE("ranks have the bits of one rank with as many micro-batches, whatever goes where") {
  const std::vector<std::pair<int, std::vector<std::string>>> variants = {
      {2, {"method=csd"}},
      {3, {"method=host", "pipeline=serial", "devices=1"}},
      {4, {"pipeline=handover", "subgroup_elements=700"}},
      {2, {"overlap=exact", "max_grad_norm=0.001"}},
      {3, {"overlap=local", "max_grad_norm=0.001", "commit_every=2"}},
      {2, {"density=0.1", "wire=native"}},
      {3, {"activations=offload", "activation_buffer=4096"}},
      {2, {"parameter_tier=storage", "commit_every=3", "state_cache=40KB"}},
      {2, {"precision=fp16", "initial_loss_scale=1048576", "loss_scale_growth_interval=3"}},
      {2, {"method=host", "gradient_tier=memory", "clock=emulated", "time_scale=0.01"}}};
  for (const auto& [rank_count, settings] : variants) {
    INFO(rank_count << " ranks, " << fmt::format("{}", fmt::join(settings, " ")));
    const Trained plain = one_rank(settings, rank_count);
    const SmallRun files;
    for (const Result<Trained>& rank : train_ranks(files, rank_count, settings)) {
      INFO(message_of(rank));
      REQUIRE(rank.ok());
      CHECK(rank->losses == plain.losses);
      CHECK(rank->digest == plain.digest);
      for (std::size_t s = 0; s < plain.steps.size(); ++s) {
        CHECK(rank->steps[s].grad_norm == plain.steps[s].grad_norm);
        CHECK(rank->steps[s].tokens == plain.steps[s].tokens);
      }
    }
  }
}

TEST_CASE("sums on an emulated cluster take what its links say, and change no bit") {
  const std::vector<std::string> settings = {"clock=emulated", "time_scale=1"};
  const Trained plain = one_rank(settings, 2);
  const SmallRun files;
  std::vector<std::string> on_cluster = settings;
  on_cluster.push_back(with_cluster(files, "ranks = 2\nnodes = 2"));
  for (const Result<Trained>& rank : train_ranks(files, 2, on_cluster)) {
    INFO(message_of(rank));
    REQUIRE(rank.ok());
    CHECK(rank->losses == plain.losses);
    CHECK(rank->digest == plain.digest);
    // Two ranks send each other all gradients, in fp32; two rounds, each of 2 ms, for each of four
    // layers.
    const std::int64_t step_bytes = 4 * rank->parameter_count;
    CHECK(rank->link_bytes.back().size_bytes[0] == 6 * step_bytes);
    const auto sums_ns = static_cast<TimeNs>(static_cast<double>(step_bytes) / 4e6 * 1e9);
    for (const session::StepReport& step : rank->steps) {
      CHECK(step.total_ns >= sums_ns + 4 * 2 * 2'000'000);
    }
  }
}

TEST_CASE("ranks that are no part of an emulated cluster are refused") {
  const SmallRun files;
  const std::string platform = with_cluster(files, "ranks = 2\nnodes = 2");
  for (const Result<Trained>& rank : train_ranks(files, 3, {"clock=emulated", platform})) {
    REQUIRE_FALSE(rank.ok());
    CHECK_THAT(rank.error().message(),
               Catch::Contains("3 ranks are no part of a [cluster] of 2x2"));
  }
  for (const Result<Trained>& rank : train_ranks(files, 3, {"clock=real", platform})) {
    INFO(message_of(rank));
    CHECK(rank.ok());
  }
}

TEST_CASE("with several micro-batches a rank, ranks agree to the bit, and with one rank nearly") {
  const Trained plain = one_rank({}, 6);
  const SmallRun files;
  const auto ranks = train_ranks(files, 2, {"grad_accum_steps=3"});
  for (const Result<Trained>& rank : ranks) {
    REQUIRE(rank.ok());
    CHECK(rank->digest == ranks.front()->digest);
    for (std::size_t s = 0; s < plain.losses.size(); ++s) {
      CHECK(rank->losses[s] == Approx(plain.losses[s]).epsilon(1e-6));
    }
  }
}

TEST_CASE("a rank that fails ends all of them, and they go on together from the newest step") {
  const std::vector<std::string> settings = {"commit_every=1", "steps=6"};
  const Trained plain = one_rank(settings, 3);
  int apart = 0;
  for (std::uint64_t request = 60; request < 330; request += 9) {
    const SmallRun files;
    const int failing_rank = static_cast<int>(request % 3);
    const auto failed = train_ranks(
        files, 3, settings, session::StartFrom::new_state,
        [&](int rank) { return rank == failing_rank ? failing(request) : WrapEngine(); });
    INFO("request " << request);
    if (std::ranges::all_of(failed, [](const auto& rank) { return rank.ok(); })) continue;
    for (const Result<Trained>& rank : failed) CHECK_FALSE(rank.ok());
    std::set<std::int64_t> committed;
    bool has_begun = true;
    for (int rank = 0; rank < 3; ++rank) {
      state::StateStore::Options options;
      options.directory = files.folder.file(fmt::format("rank-{}/state", rank));
      options.caching = io::Caching::buffered;
      const auto store = state::StateStore::open_read_only(options);
      has_begun = has_begun && store.ok();
      if (store.ok()) committed.insert((*store)->committed().position.step);
    }
    if (!has_begun) continue;
    CHECK(*committed.rbegin() - *committed.begin() <= 1);
    apart += committed.size() > 1 ? 1 : 0;
    for (const Result<Trained>& rank :
         train_ranks(files, 3, settings, session::StartFrom::last_commit)) {
      INFO(message_of(rank));
      REQUIRE(rank.ok());
      CHECK(rank->digest == plain.digest);
    }
  }
  INFO(apart << " times a rank was a commit ahead");
}

TEST_CASE("what is asked of a rank happens on all at the same step") {
  // Asks after so many steps.
  struct Asking final : session::RunObserver, session::RunRequests {
    void on_step(const session::StepReport& report) override { step = report.step; }
    bool wants_stop() override { return stops_at > 0 && step >= stops_at; }
    std::vector<session::AskedChange> take_changes() override {
      if (step < 2 || changes.empty()) return {};
      return std::exchange(changes, {});
    }
    std::int64_t step = 0;
    std::int64_t stops_at = 0;
    std::vector<session::AskedChange> changes;
  };
  struct Outcome {
    std::int64_t last_step;
    std::vector<std::string> knobs;
  };
  const SmallRun files;
  const auto outcomes =
      on_ranks<Outcome>({.rank_count = 3, .seed = 1}, [&](train::Ranks& ranks) -> Result<Outcome> {
        const std::string output = files.folder.file(fmt::format("rank-{}", ranks.rank()));
        ASSIGN_OR_RETURN(settings::RunConfig config,
                         files.config({"steps=40", "output=" + output}));
        config.batch.rank_count = ranks.count();
        const model::ModelFactory factory = arithmetic_factory();
        train::TrainingRun::Request request;
        request.config = &config;
        request.factory = &factory;
        request.ranks = &ranks;
        ASSIGN_OR_RETURN(const auto run, train::TrainingRun::open(request));
        RETURN_IF_ERROR(run->prepare(session::StartFrom::new_state));
        Asking asking;
        if (ranks.rank() == 0) {
          // Whoever asks may call himself what he likes.
          asking.changes = {{7, {"buffers=2", "pipeline=serial"}, "3:te\x1e\x1fst\n"},
                            {8, {"host_memory=1MB"}, "test"}};
        }
        if (ranks.rank() == 2) asking.stops_at = 9;
        train::RankRequests agreed(ranks, {&asking});
        Quiet seen;
        ASSIGN_OR_RETURN(const train::TrainReport report,
                         train::train(*run, {{&asking, &seen, &agreed}, {&agreed}}, {}));
        return Outcome{report.last_step, seen.knobs};
      });
  for (const Result<Outcome>& rank : outcomes) {
    INFO((rank.ok() ? std::string() : rank.error().message()));
    REQUIRE(rank.ok());
    CHECK(rank->last_step == 9);
    CHECK(rank->knobs ==
          std::vector<std::string>{"2: pipeline nbuffer -> serial", "2: buffers 3 -> 2"});
  }
}
