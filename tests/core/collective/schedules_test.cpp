// Ten thousand seeded schedules, of ranks that are stepped and of ranks that are threads: calls on
// several groups, delays that reorder what arrives, and in some a rank that is lost or a transfer
// that fails. The checks themselves are held to transports with a mistake in them.

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "lying_transport.h"
#include "stepped_ranks.h"
#include "tests/sanitizer.h"
#include "tests/test_all.h"
#include "thread_world.h"

using namespace sluice;
using namespace sluice::collective;
using Catch::Matchers::Contains;

namespace {

constexpr std::uint64_t kScheduleCount = 10'000;
// Those of threads mostly wait for one another: all where a sanitizer watches them and all is
// tested.
std::uint64_t thread_schedule_count() {
  return kIsThreadSanitized && is_testing_all() ? kScheduleCount : 2'000;
}
constexpr std::array kKinds = {Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce,
                               Kind::broadcast};

// Short: nothing is large, everything has several messages.
CommunicatorOptions options_of(std::uint64_t seed) {
  CommunicatorOptions options;
  options.message_bytes = 64;
  options.checks = seed % 2 == 0 ? CallChecks::on : CallChecks::off;
  return options;
}

CallPlan random_plan(std::mt19937_64& dice, GroupId group, std::span<const int> ranks) {
  CallPlan plan;
  plan.kind = kKinds[dice() % kKinds.size()];
  plan.group = group;
  plan.type = static_cast<ElementType>(dice() % 4);
  plan.count = static_cast<std::int64_t>(dice() % 50);
  plan.root = ranks[dice() % ranks.size()];
  plan.place = dice() % 2 == 0 ? Place::apart : Place::in_place;
  plan.salt = dice();
  return plan;
}

std::vector<int> random_ranks(std::mt19937_64& dice, int rank_count) {
  std::vector<int> ranks;
  for (int rank = 0; rank < rank_count; ++rank) ranks.push_back(rank);
  std::shuffle(ranks.begin(), ranks.end(), dice);
  ranks.resize(1 + dice() % ranks.size());
  return ranks;
}

enum class Fault { none, lost, failing };

struct Schedule {
  Problems problems;
  std::vector<SteppedRanks::Outcome> outcomes;  // by rank
  std::string first_error;
  int faulty_rank = -1;
  std::int64_t call_count = 0;
};

Schedule run_schedule(std::uint64_t seed, Fault fault) {
  std::mt19937_64 dice(seed);
  ThreadWorldOptions world;
  world.rank_count = 2 + static_cast<int>(dice() % 4);
  world.seed = seed;
  world.delay_polls_max = static_cast<std::int64_t>(dice() % 12);
  Schedule schedule;
  schedule.faulty_rank = static_cast<int>(dice() % static_cast<std::uint64_t>(world.rank_count));
  const auto exchange = static_cast<std::int64_t>(dice() % 6);
  if (fault == Fault::lost) {
    world.lost_rank = schedule.faulty_rank;
    world.lost_exchange = exchange;
  } else if (fault == Fault::failing) {
    world.failing_rank = schedule.faulty_rank;
    world.failing_exchange = exchange;
  }
  SteppedRanks ranks(world, options_of(seed), seed);
  std::vector<GroupId> groups = {kWorld};
  for (int group = 0; group < 3; ++group) {
    groups.push_back(ranks.add_group(random_ranks(dice, world.rank_count)));
  }
  for (int call = 0; call < 8; ++call) {
    const GroupId group = groups[dice() % groups.size()];
    ranks.ask(random_plan(dice, group, ranks.ranks_of(group)));
    schedule.call_count += std::ssize(ranks.ranks_of(group));
  }
  schedule.problems = ranks.run();
  schedule.first_error = ranks.first_error();
  for (int rank = 0; rank < world.rank_count; ++rank)
    schedule.outcomes.push_back(ranks.outcome(rank));
  return schedule;
}

// The first error of a rank that is well names a rank that is not: the faulty one, or one whose
// calls had failed before, which then takes part in nothing any more. One that failed after it had
// joined is not known by name.
bool names_a_rank_that_is_out(const Schedule& schedule, int rank) {
  const std::string& error = schedule.outcomes[static_cast<std::size_t>(rank)].errors.front();
  for (int other = 0; other < std::ssize(schedule.outcomes); ++other) {
    const bool is_out = other == schedule.faulty_rank ||
                        !schedule.outcomes[static_cast<std::size_t>(other)].errors.empty();
    const std::string missing = error.substr(std::min(error.size(), error.rfind("joined it from")));
    if (other != rank && is_out && missing.find(std::to_string(other)) != std::string::npos)
      return true;
  }
  return error.find("as planned") != std::string::npos ||
         error.find("a rank that has failed since") != std::string::npos;
}

std::string text_of(const Problems& problems) { return problems.empty() ? "" : problems.front(); }

// What this rank has to start: calls of one group keep their order, the groups do not.
std::vector<CallPlan> plans_of(const Communicator& communicator, std::span<const GroupId> groups,
                               std::uint64_t seed) {
  const int rank = communicator.rank();
  std::mt19937_64 common(seed);
  std::vector<CallPlan> plans;
  for (int call = 0; call < 3; ++call) {
    const GroupId group = groups[common() % groups.size()];
    const auto members = communicator.ranks_of(group);
    const CallPlan plan = random_plan(common, group, members);
    if (std::find(members.begin(), members.end(), rank) != members.end()) plans.push_back(plan);
  }
  std::mt19937_64 own(seed * 8 + static_cast<std::uint64_t>(rank));
  std::array<std::uint64_t, 8> keys{};
  for (std::uint64_t& key : keys) key = own();
  std::stable_sort(plans.begin(), plans.end(), [&](const CallPlan& a, const CallPlan& b) {
    return keys[static_cast<std::size_t>(index_of(a.group))] <
           keys[static_cast<std::size_t>(index_of(b.group))];
  });
  return plans;
}

Problems run_thread_schedule(Communicator& communicator, std::span<const GroupId> groups,
                             std::uint64_t seed) {
  struct StartedCall {
    CheckedCall checked;
    Pending pending;
  };
  Problems found;
  const auto note = [&](const std::string& problem) {
    if (!problem.empty()) found.push_back(problem);
  };
  std::vector<std::unique_ptr<StartedCall>> started;
  for (const CallPlan& plan : plans_of(communicator, groups, seed)) {
    auto one = std::unique_ptr<StartedCall>(
        new StartedCall{{plan, communicator.ranks_of(plan.group), communicator.rank()}, {}});
    const Status status = communicator.start(one->checked.call(), one->pending);
    if (status.ok()) {
      started.push_back(std::move(one));
    } else {
      note(status.error().message());
    }
  }
  for (const auto& one : started) {
    const Status status = one->pending.wait();
    note(status.ok() ? one->checked.problem() : status.error().message());
    one->checked.fill();
  }
  for (const auto& one : started) note(one->checked.problem_after_fill());
  return found;
}

}  // namespace

TEST_CASE("ten thousand stepped schedules end, with every byte right and no buffer touched late") {
  std::int64_t call_count = 0;
  for (std::uint64_t seed = 0; seed < kScheduleCount; ++seed) {
    const Schedule schedule = run_schedule(seed, Fault::none);
    std::int64_t good_count = 0;
    for (const auto& outcome : schedule.outcomes) good_count += outcome.good_count;
    call_count += good_count;
    if (schedule.problems.empty() && good_count == schedule.call_count) continue;
    INFO("seed " << seed);
    REQUIRE(text_of(schedule.problems) == "");
    REQUIRE(good_count == schedule.call_count);
  }
  REQUIRE(call_count > static_cast<std::int64_t>(kScheduleCount));
}

TEST_CASE("a rank that is lost is named by those who wait for it, in a thousand schedules") {
  std::int64_t error_count = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Schedule schedule = run_schedule(seed, Fault::lost);
    INFO("seed " << seed);
    REQUIRE(text_of(schedule.problems) == "");
    // Until then everybody else has joined and answers, so the lost one alone is named; unless it
    // is the lost one's own patience that ends first.
    const std::string lost = std::to_string(schedule.faulty_rank);
    if (!schedule.first_error.empty() && !schedule.first_error.starts_with("rank " + lost + " "))
      REQUIRE_THAT(schedule.first_error, Contains("joined it from rank " + lost + ": stopped"));
    for (int rank = 0; rank < std::ssize(schedule.outcomes); ++rank) {
      const auto& outcome = schedule.outcomes[static_cast<std::size_t>(rank)];
      if (rank == schedule.faulty_rank || outcome.errors.empty()) continue;
      INFO(outcome.errors.front());
      REQUIRE_THAT(outcome.errors.front(), Contains("no word of having joined it from rank"));
      REQUIRE(names_a_rank_that_is_out(schedule, rank));
      error_count += 1;
    }
  }
  REQUIRE(error_count > 500);
}

TEST_CASE("a transfer that fails ends every call that needs it, in a thousand schedules") {
  std::int64_t error_count = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Schedule schedule = run_schedule(seed, Fault::failing);
    INFO("seed " << seed);
    REQUIRE(text_of(schedule.problems) == "");
    for (int rank = 0; rank < std::ssize(schedule.outcomes); ++rank) {
      const auto& outcome = schedule.outcomes[static_cast<std::size_t>(rank)];
      if (outcome.errors.empty()) continue;
      INFO(outcome.errors.front());
      REQUIRE(names_a_rank_that_is_out(schedule, rank));
      error_count += 1;
    }
  }
  REQUIRE(error_count > 500);
}

TEST_CASE("a schedule repeats exactly from its seed") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Schedule first = run_schedule(seed, Fault::lost);
    const Schedule second = run_schedule(seed, Fault::lost);
    for (std::size_t rank = 0; rank < first.outcomes.size(); ++rank) {
      REQUIRE(first.outcomes[rank].errors == second.outcomes[rank].errors);
      REQUIRE(first.outcomes[rank].good_count == second.outcomes[rank].good_count);
    }
  }
}

TEST_CASE("the checks find a transport with a mistake, and none in an honest one") {
  const auto [lie, kind, words] =
      GENERATE(std::tuple(Lie::none, Kind::all_reduce, ""),
               std::tuple(Lie::swaps_senders, Kind::all_reduce, "of what came out is wrong"),
               std::tuple(Lie::swaps_senders, Kind::reduce_scatter, "of what came out is wrong"),
               std::tuple(Lie::ends_at_once, Kind::all_gather, "of what came out is wrong"),
               std::tuple(Lie::ends_at_once, Kind::broadcast, "written after its end was noted"),
               std::tuple(Lie::releases_at_once, Kind::broadcast, "of what came out is wrong"));
  const auto wrap = [lie = lie](std::unique_ptr<Transport> honest) -> std::unique_ptr<Transport> {
    return std::make_unique<LyingTransport>(std::move(honest), lie);
  };
  int found_count = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SteppedRanks ranks({.rank_count = 4, .seed = seed, .delay_polls_max = 5}, {}, seed, wrap);
    CallPlan plan;
    plan.kind = kind;
    plan.count = 400;
    plan.salt = seed + 1;
    ranks.ask(plan);
    const Problems problems = ranks.run();
    const bool is_found = std::any_of(problems.begin(), problems.end(), [&](const auto& problem) {
      return problem.find(words) != std::string::npos;
    });
    found_count += is_found ? 1 : 0;
    if (lie == Lie::none) REQUIRE(text_of(problems) == "");
  }
  REQUIRE(found_count == (lie == Lie::none ? 0 : 20));
}

TEST_CASE(
    "schedules of threads end, thousands under a sanitizer, with every byte right and no buffer "
    "touched late") {
  CommunicatorOptions options = options_of(0);
  options.patience_ns = 600'000'000'000;  // not the matter here
  const ThreadWorldOptions world = {.rank_count = 4, .seed = 3, .delay_polls_max = 1};
  const Problems problems = on_ranks(world, options, [](Communicator& communicator) {
    std::vector<GroupId> groups = {kWorld};
    for (const std::vector<int>& list :
         std::vector<std::vector<int>>{{0, 1}, {2, 3}, {0, 2}, {1, 3}, {3, 1, 0}}) {
      const auto made = communicator.make_group(list);
      if (!made.ok()) return Problems{made.error().message()};
      groups.push_back(*made);
    }
    Problems found;
    for (std::uint64_t seed = 0; seed < thread_schedule_count() && found.empty(); ++seed) {
      found = run_thread_schedule(communicator, groups, seed);
    }
    if (!found.empty()) communicator.end_all(make_error(ErrorCode::internal, "the test failed"));
    const Status closed = communicator.close();
    if (!closed.ok()) found.push_back(closed.error().message());
    return found;
  });
  REQUIRE(text_of(problems) == "");
}

TEST_CASE("threads of which one has a transfer that fails all end, in a hundred schedules") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CommunicatorOptions options = options_of(seed);
    options.patience_ns = 600'000'000'000;  // ended by words, not by time
    const ThreadWorldOptions world = {.rank_count = 3,
                                      .seed = seed,
                                      .delay_polls_max = 2,
                                      .failing_rank = static_cast<int>(seed % 3),
                                      .failing_exchange = static_cast<std::int64_t>(seed % 17)};
    const Problems problems = on_ranks(world, options, [&](Communicator& communicator) {
      std::mt19937_64 common(seed);
      for (int call = 0; call < 40; ++call) {
        CallPlan plan = random_plan(common, kWorld, communicator.ranks_of(kWorld));
        plan.count += 20;  // something to exchange
        CheckedCall checked(plan, communicator.ranks_of(kWorld), communicator.rank());
        const Status status = communicator.run(checked.call());
        if (status.ok()) {
          if (!checked.problem().empty()) return Problems{checked.problem()};
          checked.fill();
          continue;
        }
        if (communicator.rank() == world.failing_rank) communicator.end_all(status.error());
        return Problems{status.error().message()};
      }
      return Problems{"no error"};
    });
    INFO("seed " << seed);
    REQUIRE(problems.size() == 3);
    for (const std::string& problem : problems) REQUIRE_THAT(problem, Contains("as planned"));
  }
}
