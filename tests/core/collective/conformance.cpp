#include "conformance.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <random>

#include "checked_call.h"
#include "core/collective/detail/call_header.h"
#include "tests/sanitizer.h"

namespace sluice::collective {
namespace {

constexpr std::array kMoving = {Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce,
                                Kind::broadcast};
constexpr std::array kTypes = {ElementType::bf16, ElementType::fp16, ElementType::fp32,
                               ElementType::fp64, ElementType::bytes};

void note(Problems& problems, const Status& status) {
  if (!status.ok()) problems.push_back(status.error().message());
}
void note(Problems& problems, const std::string& problem) {
  if (!problem.empty()) problems.push_back(problem);
}

void run_checked(Communicator& communicator, const CallPlan& plan, Problems& problems) {
  CheckedCall checked(plan, communicator.ranks_of(plan.group), communicator.rank());
  const Status status = communicator.run(checked.call());
  if (!status.ok()) return note(problems, status);
  note(problems, checked.problem());
  checked.fill();
  note(problems, checked.problem_after_fill());
}

bool is_in(std::span<const int> ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

// Halves of consecutive ranks, every second rank, all in reverse, each alone: all groups, also
// those that this rank is not in.
std::vector<GroupId> make_groups(Communicator& communicator, Problems& problems) {
  const int count = communicator.rank_count();
  std::vector<std::vector<int>> lists;
  std::vector<int> low, high, even, odd, reversed;
  for (int rank = 0; rank < count; ++rank) {
    (rank < (count + 1) / 2 ? low : high).push_back(rank);
    (rank % 2 == 0 ? even : odd).push_back(rank);
    reversed.insert(reversed.begin(), rank);
    lists.push_back({rank});
  }
  lists.insert(lists.end(), {low, high, even, odd, reversed});
  std::vector<GroupId> groups;
  for (const std::vector<int>& list : lists) {
    if (list.empty()) continue;
    const Result<GroupId> made = communicator.make_group(list);
    if (made.ok()) {
      groups.push_back(*made);
    } else {
      problems.push_back(made.error().message());
    }
  }
  return groups;
}

// Every kind, type and root, in place and not, of these sizes.
void check_all(Communicator& communicator, GroupId group, std::span<const std::int64_t> counts,
               Problems& problems) {
  const std::vector<int> ranks(communicator.ranks_of(group).begin(),
                               communicator.ranks_of(group).end());
  std::uint64_t salt = 1;
  for (const Kind kind : kMoving) {
    const std::span<const int> roots = kind == Kind::broadcast
                                           ? std::span<const int>(ranks)
                                           : std::span<const int>(ranks).first(1);
    for (const ElementType type : kTypes) {
      if (type == ElementType::bytes && is_reduction(kind)) continue;
      for (const std::int64_t count : counts) {
        for (const int root : roots) {
          const Place place = ++salt % 2 == 0 ? Place::in_place : Place::apart;
          const bool has_shards = kind == Kind::all_gather || kind == Kind::reduce_scatter;
          const std::int64_t unit = has_shards && salt % 3 == 0 ? 16 : 1;
          run_checked(communicator, {kind, group, type, count, root, place, salt, unit}, problems);
          if (!problems.empty()) return;
        }
      }
    }
  }
}

Problems every_kind_type_size_and_root(Communicator& communicator) {
  Problems problems;
  const std::int64_t p = communicator.rank_count();
  const std::vector<std::int64_t> sizes = {p + 1, 0, 1, 2, p - 1, 3001, p, 257};
  check_all(communicator, kWorld, some_of(sizes), problems);
  return problems;
}

Problems every_shape_of_group(Communicator& communicator) {
  Problems problems;
  const std::vector<std::int64_t> sizes = {35, 1, 2, 1200};
  for (const GroupId group : make_groups(communicator, problems)) {
    if (!is_in(communicator.ranks_of(group), communicator.rank())) continue;
    check_all(communicator, group, some_of(sizes), problems);
  }
  return problems;
}

Problems in_place_and_apart_are_the_same(Communicator& communicator) {
  Problems problems;
  for (const Kind kind : kMoving) {
    for (const std::int64_t count : {0, 1, 5, 64, 2500}) {
      for (const Place place : {Place::apart, Place::in_place}) {
        run_checked(communicator, {kind, kWorld, ElementType::fp32, count, 0, place, 5}, problems);
      }
    }
  }
  return problems;
}

// By group that this rank is in: what all its ranks start, in this order.
std::vector<std::deque<CallPlan>> plans_of_round(const Communicator& communicator,
                                                 std::span<const GroupId> groups,
                                                 std::uint32_t round) {
  std::vector<std::deque<CallPlan>> queues;
  for (const GroupId group : groups) {
    const auto members = communicator.ranks_of(group);
    if (!is_in(members, communicator.rank())) continue;
    std::deque<CallPlan>& queue = queues.emplace_back();
    std::mt19937 common(round * 100 + static_cast<std::uint32_t>(index_of(group)));
    for (int call = 0; call < 6; ++call) {
      CallPlan plan;
      plan.kind = kMoving[common() % kMoving.size()];
      plan.group = group;
      plan.type = kTypes[common() % 4];
      plan.count = static_cast<std::int64_t>(common() % 700);
      plan.root = members[common() % members.size()];
      plan.place = common() % 2 == 0 ? Place::apart : Place::in_place;
      plan.salt = common();
      queue.push_back(plan);
    }
  }
  return queues;
}

struct Started {
  CheckedCall checked;
  Pending pending;
};

// The calls of a group in its order, the groups mixed by the rank's own dice.
std::vector<std::unique_ptr<Started>> start_mixed(Communicator& communicator,
                                                  std::vector<std::deque<CallPlan>> queues,
                                                  std::mt19937& dice, Problems& problems) {
  std::vector<std::unique_ptr<Started>> started;
  while (!queues.empty() && problems.empty()) {
    const auto queue = queues.begin() + static_cast<std::ptrdiff_t>(dice() % queues.size());
    const CallPlan plan = queue->front();
    queue->pop_front();
    if (queue->empty()) queues.erase(queue);
    auto one = std::unique_ptr<Started>(
        new Started{{plan, communicator.ranks_of(plan.group), communicator.rank()}, {}});
    note(problems, communicator.start(one->checked.call(), one->pending));
    if (problems.empty()) started.push_back(std::move(one));
  }
  return started;
}

Problems many_in_flight_in_orders_of_their_own(Communicator& communicator) {
  Problems problems;
  std::vector<GroupId> groups = make_groups(communicator, problems);
  groups.push_back(kWorld);
  std::mt19937 dice(static_cast<std::uint32_t>(communicator.rank()) + 1);
  for (std::uint32_t round = 0; round < 8 && problems.empty(); ++round) {
    const auto started =
        start_mixed(communicator, plans_of_round(communicator, groups, round), dice, problems);
    for (const auto& one : started) {
      const Status status = one->pending.wait();
      note(problems, status);
      if (status.ok()) note(problems, one->checked.problem());
      one->checked.fill();
    }
    for (const auto& one : started) note(problems, one->checked.problem_after_fill());
  }
  return problems;
}

Problems agreements_agree(Communicator& communicator) {
  Problems problems;
  const std::int64_t rank = communicator.rank();
  const std::int64_t last = communicator.rank_count() - 1;
  const auto minimum = communicator.minimum(100 - rank, "test");
  const auto maximum = communicator.maximum(-rank, "test");
  if (!minimum.ok() || *minimum != 100 - last) problems.push_back("minimum");
  if (!maximum.ok() || *maximum != 0) problems.push_back("maximum");
  note(problems, communicator.barrier("test"));
  const std::string own(static_cast<std::size_t>(rank * 3), static_cast<char>('a' + rank));
  const auto texts = communicator.gather_text(own, "test");
  if (!texts.ok()) return {texts.error().message()};
  for (std::int64_t other = 0; other <= last; ++other) {
    const std::string wanted(static_cast<std::size_t>(other * 3), static_cast<char>('a' + other));
    if ((*texts)[static_cast<std::size_t>(other)] != wanted)
      problems.push_back("the text of rank " + std::to_string(other));
  }
  return problems;
}

Problems counters_are_the_formulas(Communicator& communicator) {
  Problems problems;
  const auto p = static_cast<std::int64_t>(communicator.rank_count());
  const std::int64_t n = 1003;
  const std::int64_t own = n / p + (communicator.rank() < n % p ? 1 : 0);
  const bool is_root = communicator.rank() == p - 1;
  struct Wanted {
    Kind kind;
    std::int64_t sent;
    std::int64_t received;
  };
  const std::array<Wanted, 4> all = {{
      {Kind::all_gather, (p - 1) * own, n - own},
      {Kind::reduce_scatter, n - own, (p - 1) * own},
      {Kind::all_reduce, (p - 1) * own + n - own, (p - 1) * own + n - own},
      {Kind::broadcast, is_root ? (p - 1) * n : 0, is_root ? 0 : n},
  }};
  for (const Wanted& wanted : all) {
    const CallCounters before = communicator.counters(kWorld, wanted.kind);
    for (const ElementType type : {ElementType::bf16, ElementType::fp64}) {
      run_checked(communicator,
                  {wanted.kind, kWorld, type, n, static_cast<int>(p - 1), Place::apart, 3},
                  problems);
    }
    const CallCounters& after = communicator.counters(kWorld, wanted.kind);
    if (after.call_count - before.call_count != 2 ||
        after.sent_bytes - before.sent_bytes != wanted.sent * (2 + 8) ||
        after.received_bytes - before.received_bytes != wanted.received * (2 + 8))
      problems.push_back("counters of " + std::string(kind_name(wanted.kind)));
  }
  const std::int64_t header_bytes = communicator.counters(kWorld, Kind::barrier).header_bytes;
  note(problems, communicator.barrier("test"));
  if (communicator.counters(kWorld, Kind::barrier).header_bytes - header_bytes !=
      (p - 1) * static_cast<std::int64_t>(sizeof(detail::CallHeader)))
    problems.push_back("header bytes of a barrier");
  return problems;
}

// Nothing of it reaches another rank.
Problems what_is_not_well_formed_is_refused(Communicator& communicator) {
  Problems problems;
  std::vector<std::byte> bytes(64);
  const std::span<std::byte> all(bytes);
  const auto refuse = [&](const Call& call, const char* words) {
    const Status status = communicator.run(call);
    if (status.ok() || status.error().message().find(words) == std::string::npos)
      problems.push_back(std::string("not refused with: ") + words +
                         (status.ok() ? "" : ", but " + status.error().message()));
  };
  Call call;
  call.kind = Kind::all_reduce;
  call.type = ElementType::fp32;
  call.in = all.first(16);
  call.out = all.subspan(16, 16);
  Call changed = call;
  changed.type = ElementType::bytes;
  refuse(changed, "bytes cannot be summed");
  changed = call;
  changed.out = all.subspan(32, 12);
  refuse(changed, "16 bytes in and 12 bytes out; 12 and 12 are wanted");
  changed = call;
  changed.out = all.subspan(4, 16);
  refuse(changed, "overlap");
  changed = call;
  changed.group = GroupId{1000};
  refuse(changed, "there is no group 1000");
  changed = call;
  changed.kind = Kind::broadcast;
  changed.root = 999;
  refuse(changed, "root 999 is not in the group");
  const std::array<int, 2> twice = {0, 0};
  if (communicator.make_group(twice).ok()) problems.push_back("a group with a rank twice");
  const std::array<int, 1> beyond = {communicator.rank_count()};
  if (communicator.make_group(beyond).ok()) problems.push_back("a group with a rank too many");
  return problems;
}

constexpr Promise kPromises[] = {
    {"every kind, type, size and root equals the plain result", every_kind_type_size_and_root},
    {"groups of every shape work", every_shape_of_group},
    {"in place and apart come out the same", in_place_and_apart_are_the_same},
    {"many are in flight, in orders that differ", many_in_flight_in_orders_of_their_own},
    {"agreements agree", agreements_agree},
    {"counters are the formulas", counters_are_the_formulas},
    {"what is not well formed is refused in words", what_is_not_well_formed_is_refused},
};

}  // namespace

std::span<const Promise> promises() { return kPromises; }

}  // namespace sluice::collective
