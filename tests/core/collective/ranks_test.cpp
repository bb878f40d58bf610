// Ranks that are threads, and the single one: the conformance suite, and what goes wrong.

#include <catch2/catch.hpp>
#include <latch>

#include "checked_call.h"
#include "core/collective/open_ranks.h"
#include "tests/sanitizer.h"
#include "thread_world.h"

using namespace sluice;
using namespace sluice::collective;
using Catch::Matchers::Contains;

namespace {

constexpr CommunicatorOptions kSmallMessages = {.message_bytes = 512, .checks = CallChecks::on};
constexpr TimeNs kLongNs = 600'000'000'000;

CallPlan sum_of(std::int64_t count) {
  CallPlan plan;
  plan.kind = Kind::all_reduce;
  plan.count = count;
  return plan;
}

std::string joined(const Problems& problems) {
  std::string text;
  for (const std::string& problem : problems) text += problem + "\n";
  return text;
}

}  // namespace

TEST_CASE("ranks that are threads keep every promise") {
  const int rank_count = kIsSanitized ? GENERATE(2, 3) : GENERATE(1, 2, 3, 4, 8);
  const CallChecks checks = GENERATE(CallChecks::on, CallChecks::off);
  for (const Promise& promise : promises()) {
    DYNAMIC_SECTION(rank_count << " ranks, checks " << (checks == CallChecks::on ? "on" : "off")
                               << ": " << promise.name) {
      CommunicatorOptions options = kSmallMessages;
      options.checks = checks;
      const Problems problems =
          on_ranks({.rank_count = rank_count, .seed = 1, .delay_polls_max = 2}, options,
                   [&](Communicator& communicator) {
                     Problems found = promise.check(communicator);
                     const Status closed = communicator.close();
                     if (!closed.ok()) found.push_back(closed.error().message());
                     return found;
                   });
      REQUIRE(joined(problems) == "");
    }
  }
}

TEST_CASE("one rank without a launcher keeps every promise") {
  unsetenv("OMPI_COMM_WORLD_SIZE");
  unsetenv("PMI_SIZE");
  unsetenv("PMIX_RANK");
  for (const Promise& promise : promises()) {
    auto communicator = open_ranks(kSmallMessages);
    REQUIRE(communicator.ok());
    REQUIRE((*communicator)->rank_count() == 1);
    REQUIRE(joined(promise.check(**communicator)) == "");
    REQUIRE((*communicator)->close().ok());
  }
}

TEST_CASE("nodes are those of the ranks") {
  const Problems problems =
      on_ranks({.rank_count = 5, .ranks_per_node = 2}, {}, [](Communicator& communicator) {
        Problems found;
        for (int rank = 0; rank < 5; ++rank) {
          if (communicator.node_of(rank) != rank / 2) found.push_back("node");
        }
        return found;
      });
  REQUIRE(joined(problems) == "");
}

TEST_CASE("options out of range are refused in words") {
  const auto opened = [](const CommunicatorOptions& options) {
    const auto communicator = open_ranks(options, UseMpi::never);
    return communicator.ok() ? std::string() : communicator.error().message();
  };
  CHECK_THAT(opened({.patience_ns = 0}), Contains("say how long ranks wait"));
  CHECK_THAT(opened({.message_bytes = 0}), Contains("messages of 0 bytes"));
  CHECK_THAT(opened({.message_bytes = std::int64_t{1} << 31}), Contains("are possible"));
}

TEST_CASE("ranks that ask for different things are told both") {
  struct Differing {
    const char* what;
    std::function<void(CallPlan&)> change;
    const char* words;
  };
  const auto [what, change, words] = GENERATE(
      Differing{"kind", [](CallPlan& plan) { plan.kind = Kind::all_gather; },
                "for all_reduce of 40 elements fp32 (test, layer 0, step 7), rank 1 in its call 1 "
                "for all_gather of 40 elements fp32 (test, layer 0, step 7)"},
      Differing{"size", [](CallPlan& plan) { plan.count = 41; }, "all_reduce of 41 elements"},
      Differing{"type", [](CallPlan& plan) { plan.type = ElementType::bf16; }, "elements bf16"},
      Differing{"unit",
                [](CallPlan& plan) {
                  plan.kind = Kind::all_gather;
                  plan.unit = 16;
                },
                "all_gather of 40 elements fp32 in units of 16"},
      Differing{"label", [](CallPlan& plan) { plan.salt = 3; }, "layer 3"});
  INFO(what);
  const Problems problems =
      on_ranks({.rank_count = 3}, {.checks = CallChecks::on}, [&](Communicator& communicator) {
        CallPlan plan = sum_of(40);
        if (communicator.rank() == 1) change(plan);
        CheckedCall checked(plan, communicator.ranks_of(kWorld), communicator.rank());
        const Status status = communicator.run(checked.call());
        return Problems{status.ok() ? "no error" : status.error().message()};
      });
  REQUIRE(problems.size() == 3);
  for (const std::string& problem : problems) {
    CHECK_THAT(problem, Contains("ranks ask for different things in group 0 (ranks 0, 1, 2)"));
    CHECK_THAT(problem, Contains(words));
  }
}

TEST_CASE("ranks that name different groups are told so") {
  const Problems problems = on_ranks({.rank_count = 2}, {}, [](Communicator& communicator) {
    const std::array<int, 1> own = {communicator.rank()};
    const auto group = communicator.make_group(own);
    return Problems{group.ok() ? "made" : group.error().message()};
  });
  REQUIRE(problems.size() == 2);
  for (const std::string& problem : problems)
    CHECK_THAT(problem, Contains("ranks ask for different groups"));
}

TEST_CASE("a rank that ends the run ends the calls of all, with its words") {
  const Problems problems =
      on_ranks({.rank_count = 3}, {.patience_ns = kLongNs}, [](Communicator& communicator) {
        if (communicator.rank() == 2) {
          communicator.end_all(make_error(ErrorCode::io, "the drive is gone"));
          return Problems{communicator.close().ok() ? "closed" : "rank 2 failed"};
        }
        const Status status = communicator.barrier("commit");
        const Status closed = communicator.close();
        return Problems{status.ok() || closed.ok() ? "no error" : status.error().message()};
      });
  CHECK(problems == Problems{"rank 2 of 3: the drive is gone", "rank 2 of 3: the drive is gone",
                             "rank 2 failed"});
}

TEST_CASE("a transfer that fails names rank, call and group, and what comes fails too") {
  const Problems problems = on_ranks(
      {.rank_count = 2, .failing_rank = 1, .failing_exchange = 3}, {.patience_ns = kLongNs},
      [](Communicator& communicator) {
        Problems found;
        for (int call = 0; call < 6; ++call) {
          CheckedCall checked(sum_of(10), communicator.ranks_of(kWorld), communicator.rank());
          const Status status = communicator.run(checked.call());
          if (status.ok()) continue;
          found.push_back(status.error().message());
          if (communicator.rank() == 1) communicator.end_all(status.error());
        }
        return found;
      });
  // Two exchanges a call: the second call's last one fails.
  REQUIRE(problems.size() == 10);
  for (const std::string& problem : problems) {
    CHECK_THAT(problem, Contains("all_reduce of 10 elements fp32 (test, layer 0, step 7) in group "
                                 "0 (ranks 0, 1): the transfer failed, as planned"));
    CHECK_THAT(problem, Contains("rank 1 of 2"));
  }
}

TEST_CASE("calls beyond the places for them are refused, and those under way end") {
  std::latch is_full(1);
  const Problems problems = on_ranks({.rank_count = 2}, {}, [&](Communicator& communicator) {
    Problems found;
    const auto ranks = communicator.ranks_of(kWorld);
    std::vector<std::unique_ptr<CheckedCall>> checked;
    std::vector<std::unique_ptr<Pending>> pending;
    if (communicator.rank() == 1) is_full.wait();
    for (int call = 0; call < 128; ++call) {
      checked.push_back(std::make_unique<CheckedCall>(sum_of(4), ranks, communicator.rank()));
      pending.push_back(std::make_unique<Pending>());
      const Status status = communicator.start(checked.back()->call(), *pending.back());
      if (!status.ok()) found.push_back(status.error().message());
    }
    if (communicator.rank() == 0) {
      const Status refused = communicator.barrier("one more");
      if (refused.ok() || refused.error().code() != ErrorCode::busy) found.push_back("not refused");
      is_full.count_down();
    }
    for (std::size_t call = 0; call < pending.size(); ++call) {
      if (!pending[call]->wait().ok()) found.push_back("failed");
      if (!checked[call]->problem().empty()) found.push_back(checked[call]->problem());
    }
    return found;
  });
  REQUIRE(joined(problems) == "");
}
