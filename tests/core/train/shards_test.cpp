// Ranks that have parts of parameters, gradients and optimizer state, against one rank with the
// same global batch: every legal triple.

#include <fmt/ranges.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "tests/core/train/shard_runs.h"

using namespace sluice;

namespace {

const std::vector<std::string> kShardSettings = {
    "subgroup_elements=9000", "devices=1",        "batch=1",           "bounce_memory=8MiB",
    "worker_threads=1",       "durability=never", "max_grad_norm=0.01"};

struct Table {
  std::string method;
  std::int64_t micro_steps = 1;
  std::int64_t steps = 2;
  std::string precision = "bf16";
};

const platform::Scope kMesh{2, 4};

void require_like_one_rank(const Table& table) {
  const std::vector<std::string> settings =
      with(kShardSettings, {"method=" + table.method, "precision=" + table.precision,
                            fmt::format("steps={}", table.steps)});
  const Trained plain = one_rank(cut_in_eight(), settings, 8 * table.micro_steps);
  const std::vector<shard::Triple> triples = shard::all_triples(kMesh);
  REQUIRE(triples.size() == 16);
  // By the scope of the parameters, which decides in what order gradients are added up.
  std::map<std::int32_t, std::string> digests;
  for (const shard::Triple& triple : some_of(triples)) {
    INFO(shard::triple_text(triple)
         << " " << table.method << " M=" << table.micro_steps << " " << table.precision);
    const SmallRun files = cut_in_eight();
    const Trained found = require_alike(train_ranks(
        files, {8, with(with(settings, {fmt::format("grad_accum_steps={}", table.micro_steps)}),
                        settings_of(triple, kMesh))}));
    for (std::size_t s = 0; s < plain.losses.size(); ++s) {
      CHECK(found.losses[s] == Approx(plain.losses[s]).epsilon(1e-6));
    }
    const auto known = digests.emplace(triple.parameters.size(), found.digest).first;
    CHECK(found.digest == known->second);
    if (table.micro_steps == 1 && sums_in_order(triple, kMesh)) {
      CHECK(found.losses == plain.losses);
      CHECK(found.digest == plain.digest);
    }
  }
}

}  // namespace

TEST_CASE("every legal triple of 2x4 ranks trains like one rank with the same global batch") {
  require_like_one_rank(kIsSanitized
                            ? GENERATE(Table{"csd", 4, 2}, Table{"host", 1, 2, "fp32"})
                            : GENERATE(Table{"csd", 1, 5}, Table{"csd", 4, 2}, Table{"host", 1, 3},
                                       Table{"host", 4, 2}, Table{"host", 1, 3, "fp32"},
                                       Table{"csd", 1, 2, "fp32"}));
}

// Minutes: `core_train_test '[.soak]'`.
TEST_CASE("every legal triple of 2x4 ranks trains twenty steps like one rank", "[.soak]") {
  require_like_one_rank(GENERATE(Table{"csd", 1, 20}, Table{"csd", 4, 20}, Table{"host", 1, 20},
                                 Table{"host", 4, 20}));
}

TEST_CASE("the memory plan has the messages of the groups that a rank is in") {
  std::vector<std::vector<std::string>> ways = {{}};
  for (const shard::Triple& triple : shard::all_triples(kMesh))
    ways.push_back(settings_of(triple, kMesh));
  for (const std::vector<std::string>& way : some_of(ways)) {
    INFO(fmt::format("{}", fmt::join(way, " ")));
    const SmallRun files = cut_in_eight();
    const auto planned = [&](train::Ranks& ranks, const collective::Communicator& communicator)
        -> Result<std::pair<std::int64_t, std::int64_t>> {
      ASSIGN_OR_RETURN(const settings::RunConfig config,
                       config_of_rank(files, with(kShardSettings, way), &ranks));
      train::TrainingRun::Request request;
      request.config = &config;
      const model::ModelFactory factory = arithmetic_factory();
      request.factory = &factory;
      request.ranks = &ranks;
      ASSIGN_OR_RETURN(const auto run, train::TrainingRun::open(request));
      std::int64_t taken_bytes = 0;
      for (int g = 0; g < communicator.group_count(); ++g) {
        const std::span<const int> group = communicator.ranks_of(collective::GroupId{g});
        const bool is_in = std::ranges::find(group, communicator.rank()) != group.end();
        if (is_in && group.size() > 1) {
          taken_bytes += collective::CommunicatorOptions{}.message_bytes;
        }
      }
      std::int64_t planned_bytes = 0;
      for (const MemoryItem& item : run->session().memory().host.items) {
        if (item.what == "messages between ranks") planned_bytes = item.size_bytes;
      }
      return std::pair{planned_bytes, taken_bytes};
    };
    using Bytes = std::pair<std::int64_t, std::int64_t>;
    for (const Result<Bytes>& rank : on_communicators<Bytes>({.rank_count = 8}, planned)) {
      REQUIRE(rank.ok());
      CHECK(rank->first == rank->second);
      CHECK(rank->first >= std::int64_t{12} << 20);
    }
  }
}
