#pragma once
// Ranks that are stepped one by one by seeded dice, on one thread and in made-up time: a schedule
// repeats exactly, and one that cannot go on is seen at once.
//
// Thread contract: one thread.

#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "checked_call.h"
#include "conformance.h"
#include "core/collective/detail/progress_engine.h"
#include "core/collective/thread_ranks.h"

namespace sluice::collective {

// Puts something between an engine and its transport; the rank's own.
using Wrap = std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>)>;

class SteppedRanks {
 public:
  SteppedRanks(const ThreadWorldOptions& world, const CommunicatorOptions& options,
               std::uint64_t seed, const Wrap& wrap = {});
  // All ranks make it.
  GroupId add_group(const std::vector<int>& ranks);
  const std::vector<int>& ranks_of(GroupId group) const { return groups_[index_of(group)]; }
  int rank_count() const { return static_cast<int>(ranks_.size()); }
  // Each rank of the group asks for it after its earlier calls of that group.
  void ask(const CallPlan& plan);
  // To the end. What is wrong: results, memory, ranks that are stuck.
  Problems run();
  // After run(), by rank: how many calls ended well, and what the others said.
  struct Outcome {
    int good_count = 0;
    std::vector<std::string> errors;
  };
  const Outcome& outcome(int rank) const { return ranks_[rank]->outcome; }
  // The first that any rank said; empty: none.
  const std::string& first_error() const { return first_error_; }

 private:
  struct Running {
    Running(const CallPlan& plan, std::span<const int> ranks, int rank)
        : checked(plan, ranks, rank) {}
    CheckedCall checked;
    Pending pending;
    bool is_over = false;
  };
  struct Rank {
    std::unique_ptr<Transport> transport;
    detail::CallSlots slots;
    std::unique_ptr<detail::ProgressEngine> engine;
    std::vector<std::deque<CallPlan>> to_start;  // by group
    std::size_t to_start_count = 0;
    std::vector<std::unique_ptr<Running>> running;
    std::size_t over_count = 0;
    Outcome outcome;
  };
  bool start_one(int rank);
  void look_at_ended(Rank& rank);
  bool step(int rank);
  bool are_all_over() const;

  std::mt19937_64 dice_;
  TimeNs now_ns_ = 0;
  TimeNs patience_ns_;
  std::vector<std::vector<int>> groups_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  Problems problems_;
  std::string first_error_;
};

}  // namespace sluice::collective
