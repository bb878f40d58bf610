#include "stepped_ranks.h"

#include <algorithm>

namespace sluice::collective {

SteppedRanks::SteppedRanks(const ThreadWorldOptions& world, const CommunicatorOptions& options,
                           std::uint64_t seed, const Wrap& wrap)
    : dice_(seed), patience_ns_(options.patience_ns) {
  const std::shared_ptr<ThreadWorld> made = ThreadWorld::make(world);
  for (int rank = 0; rank < world.rank_count; ++rank) {
    auto one = std::make_unique<Rank>();
    one->transport = made->transport(rank);
    if (wrap) one->transport = wrap(std::move(one->transport));
    one->engine = std::make_unique<detail::ProgressEngine>(*one->transport, one->slots, options);
    ranks_.push_back(std::move(one));
  }
  std::vector<int> all;
  for (int rank = 0; rank < world.rank_count; ++rank) all.push_back(rank);
  add_group(all);
}

GroupId SteppedRanks::add_group(const std::vector<int>& ranks) {
  const GroupId id{static_cast<std::int32_t>(groups_.size())};
  groups_.push_back(ranks);
  for (const auto& rank : ranks_) {
    const Status added = rank->engine->add_group(id, ranks);
    if (!added.ok()) problems_.push_back(added.error().message());
    rank->to_start.emplace_back();
  }
  return id;
}

void SteppedRanks::ask(const CallPlan& plan) {
  for (const int rank : ranks_of(plan.group)) {
    ranks_[static_cast<std::size_t>(rank)]->to_start[index_of(plan.group)].push_back(plan);
    ranks_[static_cast<std::size_t>(rank)]->to_start_count += 1;
  }
}

// The next call of a group that the dice choose.
bool SteppedRanks::start_one(int rank) {
  Rank& one = *ranks_[static_cast<std::size_t>(rank)];
  if (one.to_start_count == 0) return false;
  std::size_t group = dice_() % one.to_start.size();
  while (one.to_start[group].empty()) group = (group + 1) % one.to_start.size();
  const CallPlan plan = one.to_start[group].front();
  one.to_start[group].pop_front();
  one.to_start_count -= 1;
  one.running.push_back(std::make_unique<Running>(plan, ranks_of(plan.group), rank));
  Running& running = *one.running.back();
  detail::CallState* state = one.slots.try_acquire();
  state->call = running.checked.call();
  state->notice = &running.pending;
  one.engine->accept(state, now_ns_);
  return true;
}

void SteppedRanks::look_at_ended(Rank& rank) {
  for (const auto& running : rank.running) {
    if (running->is_over || !running->pending.is_ended()) continue;
    running->is_over = true;
    rank.over_count += 1;
    const Status status = running->pending.wait();
    if (!status.ok()) {
      rank.outcome.errors.push_back(status.error().message());
      if (first_error_.empty()) first_error_ = status.error().message();
      continue;
    }
    rank.outcome.good_count += 1;
    const std::string problem = running->checked.problem();
    if (!problem.empty()) problems_.push_back(problem);
    running->checked.fill();
  }
}

// Whether something happened.
bool SteppedRanks::step(int rank) {
  Rank& one = *ranks_[static_cast<std::size_t>(rank)];
  const std::size_t over_count = one.over_count;
  const bool started = dice_() % 3 == 0 && start_one(rank);
  const auto moved = one.engine->step(now_ns_);
  look_at_ended(one);
  return started || over_count != one.over_count ||
         moved == detail::ProgressEngine::Moved::something;
}

bool SteppedRanks::are_all_over() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const auto& rank) {
    return rank->to_start_count == 0 && rank->over_count == rank->running.size();
  });
}

// Time passes only when nothing else does: then by a quarter of the patience.
Problems SteppedRanks::run() {
  const int quiet_max = 200 * rank_count();
  int quiet_count = 0;
  int jump_count = 0;
  while (!are_all_over() && jump_count < 40) {
    const int rank = static_cast<int>(dice_() % ranks_.size());
    quiet_count = step(rank) ? 0 : quiet_count + 1;
    if (quiet_count < quiet_max) continue;
    now_ns_ += patience_ns_ / 4 + 1;
    jump_count += 1;
    quiet_count = 0;
  }
  if (!are_all_over()) problems_.push_back("stuck: calls neither end nor fail");
  // Whoever still reads or writes has time for it.
  for (int more = 0; more < 20; ++more) {
    for (const auto& rank : ranks_) rank->engine->step(now_ns_);
  }
  for (const auto& rank : ranks_) {
    for (const auto& running : rank->running) {
      // What failed is not the caller's again.
      if (!running->is_over) continue;
      const std::string problem = running->checked.problem_after_fill();
      if (rank->outcome.errors.empty() && !problem.empty()) problems_.push_back(problem);
    }
  }
  return problems_;
}

}  // namespace sluice::collective
