// Ranks are threads that really do each call; how long it took is made up, and so is the clock.

#include "core/calibrate/ranks/collective_timing.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <mutex>

#include "core/calibrate/ranks/cluster_file.h"
#include "core/shard/cost.h"
#include "tests/core/collective/thread_world.h"

namespace sluice::calibrate {
namespace {

using collective::Communicator;
using collective::Kind;
using platform::Collective;
using platform::Scope;

constexpr int kSlowRank = 1;

double made_up_seconds(Kind kind, std::size_t group_size, std::int64_t size_bytes) {
  const double per_byte = (1.0 + static_cast<double>(kind)) / 1e9;
  return 1e-4 * static_cast<double>(group_size) + per_byte * static_cast<double>(size_bytes);
}

Kind kind_of(Collective collective) {
  constexpr Kind kKinds[] = {Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce,
                             Kind::broadcast};
  return kKinds[static_cast<std::size_t>(collective)];
}

// Bytes of the whole tensor; of a call that is in place one of both spans is all of it.
std::int64_t size_of(const collective::Call& call) {
  return static_cast<std::int64_t>(std::max(call.in.size(), call.out.size()));
}

// A rank whose calls take made-up time, by a clock that only they advance.
struct MadeUpRank {
  explicit MadeUpRank(Communicator& ranks) : communicator(ranks) {
    options.now_ns = [this] { return now_ns; };
    options.time_call = [this](const collective::Call& call) -> Result<TimeNs> {
      RETURN_IF_ERROR(communicator.run(call));
      const double slowest =
          made_up_seconds(call.kind, communicator.ranks_of(call.group).size(), size_of(call));
      const auto slowest_ns = static_cast<TimeNs>(slowest * 1e9);
      now_ns += slowest_ns;
      return communicator.rank() == kSlowRank ? slowest_ns : slowest_ns / 2;
    };
  }
  Communicator& communicator;
  TimeNs now_ns = 0;
  CollectiveTimingOptions options;
};

struct Measured {
  std::vector<RankFigures> by_rank;
  std::vector<double> seconds;  // of the made-up clock
  collective::Problems problems;
};

Measured measure(int rank_count, int ranks_per_node, double seconds_max,
                 std::vector<std::int64_t> sizes_bytes) {
  Measured measured;
  measured.by_rank.resize(static_cast<std::size_t>(rank_count));
  measured.seconds.resize(static_cast<std::size_t>(rank_count));
  const collective::ThreadWorldOptions world{.rank_count = rank_count,
                                             .ranks_per_node = ranks_per_node};
  measured.problems =
      collective::on_ranks(world, {}, [&](Communicator& communicator) -> collective::Problems {
        MadeUpRank rank(communicator);
        rank.options.sizes_bytes = sizes_bytes;
        rank.options.seconds_max = seconds_max;
        auto figures = time_collectives(communicator, rank.options);
        if (!figures.ok()) return {figures.error().message()};
        const auto place = static_cast<std::size_t>(communicator.rank());
        measured.by_rank[place] = std::move(*figures);
        measured.seconds[place] = static_cast<double>(rank.now_ns) / 1e9;
        const Status closed = communicator.close();
        return closed.ok() ? collective::Problems()
                           : collective::Problems{closed.error().message()};
      });
  return measured;
}

using Rows = std::vector<std::pair<Collective, std::string>>;

Rows rows_of(const RankFigures& figures) {
  Rows rows;
  for (const CollectiveFigures& row : figures.rows) {
    rows.emplace_back(row.collective, platform::scope_text(row.group));
  }
  std::ranges::sort(rows);
  return rows;
}

TEST_CASE("each collective is timed in each group that a scope may have, by its slowest rank") {
  const Measured measured = measure(4, 2, 100, {4096, 65536, 1 << 20});
  REQUIRE(measured.problems == collective::Problems());
  const RankFigures& figures = measured.by_rank[0];
  CHECK(figures.mesh == Scope{2, 2});
  CHECK(rows_of(figures) == Rows{{Collective::all_gather, "2x1"},
                                 {Collective::all_gather, "2x2"},
                                 {Collective::reduce_scatter, "2x1"},
                                 {Collective::reduce_scatter, "2x2"},
                                 {Collective::all_reduce, "1x2"},
                                 {Collective::all_reduce, "2x1"},
                                 {Collective::all_reduce, "2x2"},
                                 {Collective::broadcast, "1x2"},
                                 {Collective::broadcast, "2x1"},
                                 {Collective::broadcast, "2x2"}});
  for (const CollectiveFigures& row : figures.rows) {
    REQUIRE(row.times.size() == 3);
    for (const CollectiveTime& time : row.times) {
      const double slowest = made_up_seconds(
          kind_of(row.collective), static_cast<std::size_t>(row.group.size()), time.size_bytes);
      // Where no rank of a group is the slow one another group's is waited for.
      CHECK(time.seconds == Approx(slowest).epsilon(1e-4));
      CHECK(time.round_count == 15);
    }
  }
  for (const RankFigures& other : measured.by_rank) CHECK(rows_of(other) == rows_of(figures));
}

TEST_CASE("three ranks of one node have groups of three alone") {
  const Measured measured = measure(3, 3, 100, {4096});
  REQUIRE(measured.problems == collective::Problems());
  CHECK(measured.by_rank[2].mesh == Scope{3, 1});
  CHECK(rows_of(measured.by_rank[2]) == Rows{{Collective::all_gather, "3x1"},
                                             {Collective::reduce_scatter, "3x1"},
                                             {Collective::all_reduce, "3x1"},
                                             {Collective::broadcast, "3x1"}});
}

TEST_CASE("where the time runs out every row has its smaller sizes") {
  for (const double seconds_max : {0.001, 0.1, 1.0}) {
    INFO(seconds_max);
    const Measured measured = measure(4, 4, seconds_max, usual_sizes_bytes());
    REQUIRE(measured.problems == collective::Problems());
    const RankFigures& figures = measured.by_rank[0];
    std::size_t point_count = 0;
    for (const CollectiveFigures& row : figures.rows) {
      REQUIRE(!row.times.empty());
      CHECK(row.times.front().size_bytes == 4096);
      point_count += row.times.size();
    }
    CHECK(figures.skipped_count > 0);
    CHECK(point_count + static_cast<std::size_t>(figures.skipped_count) ==
          figures.rows.size() * usual_sizes_bytes().size());
    // The smallest size of each row is measured in any case: four calls of half a millisecond.
    CHECK(measured.seconds[0] <= seconds_max + static_cast<double>(figures.rows.size()) * 4 * 5e-4);
  }
}

TEST_CASE("what was measured is what the formulas predict, at its sizes and between them") {
  const Measured measured = measure(4, 2, 100, usual_sizes_bytes());
  REQUIRE(measured.problems == collective::Problems());
  const platform::Cluster cluster = measured_cluster(measured.by_rank[0], nullptr);
  for (const CollectiveFigures& row : measured.by_rank[0].rows) {
    const auto predicted = [&](std::int64_t size_bytes) {
      return shard::collective_cost(cluster, row.collective, size_bytes, {row.group}).seconds;
    };
    const auto truth = [&](std::int64_t size_bytes) {
      return made_up_seconds(kind_of(row.collective), static_cast<std::size_t>(row.group.size()),
                             size_bytes);
    };
    for (const CollectiveTime& time : row.times) {
      CHECK(predicted(time.size_bytes) == Approx(time.seconds));
    }
    // Latency and bandwidth make a line, which a line between points meets.
    for (const std::int64_t size_bytes : {10'000, 300'000, 50'000'000}) {
      CHECK(predicted(size_bytes) == Approx(truth(size_bytes)).epsilon(1e-3));
    }
  }
}

TEST_CASE("one rank alone, and nodes of different sizes, are refused") {
  CHECK(measure(1, 1, 1, {4096}).problems.front().find("begin several") != std::string::npos);
  const Measured measured = measure(3, 2, 1, {4096});
  REQUIRE(measured.problems.size() == 3);
  CHECK(measured.problems.front().find("as many on each") != std::string::npos);
}

}  // namespace
}  // namespace sluice::calibrate
