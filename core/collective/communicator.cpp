#include "core/collective/communicator.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/fnv.h"
#include "core/collective/detail/progress.h"

namespace sluice::collective {
namespace {

Status check_options(const CommunicatorOptions& options) {
  if (options.patience_ns <= 0) {
    return make_error(ErrorCode::config, "a patience of {} is none; say how long ranks wait",
                      format_duration(options.patience_ns));
  }
  constexpr std::int64_t kMessageMax = std::int64_t{1} << 30;  // an int counts it
  if (options.message_bytes < 1 || options.message_bytes > kMessageMax) {
    return make_error(ErrorCode::config, "messages of {} bytes: from 1 to {} are possible",
                      options.message_bytes, kMessageMax);
  }
  return ok_status();
}

Status check_ranks(std::span<const int> ranks, int rank_count) {
  std::vector<char> is_in(static_cast<std::size_t>(rank_count));
  for (const int rank : ranks) {
    if (rank < 0 || rank >= rank_count) {
      return make_error(ErrorCode::internal, "a group of {}: there are ranks 0 to {}",
                        ranks_text(ranks), rank_count - 1);
    }
    if (std::exchange(is_in[static_cast<std::size_t>(rank)], 1) != 0) {
      return make_error(ErrorCode::internal, "a group of {}: rank {} is in it twice",
                        ranks_text(ranks), rank);
    }
  }
  if (ranks.empty()) return make_error(ErrorCode::internal, "a group of no ranks");
  return ok_status();
}

std::int64_t hash_of(std::span<const int> ranks) {
  return static_cast<std::int64_t>(
      fnv1a({reinterpret_cast<const char*>(ranks.data()), ranks.size_bytes()}));
}

}  // namespace

Communicator::Communicator(const CommunicatorOptions& options,
                           std::unique_ptr<detail::Progress> progress)
    : options_(options), progress_(std::move(progress)) {}

Communicator::~Communicator() = default;

Result<std::unique_ptr<Communicator>> Communicator::open(const TransportOpener& opener,
                                                         const CommunicatorOptions& options) {
  RETURN_IF_ERROR(check_options(options));
  ASSIGN_OR_RETURN(auto progress, detail::Progress::open(opener, options));
  std::unique_ptr<Communicator> made(new Communicator(options, std::move(progress)));
  std::vector<int> world;
  const Status begun = made->progress_->do_there([&](Transport& transport, auto& engine) {
    made->rank_ = transport.rank();
    for (int rank = 0; rank < transport.rank_count(); ++rank) {
      world.push_back(rank);
      made->nodes_.push_back(transport.node_of(rank));
    }
    return engine.add_group(kWorld, world);
  });
  RETURN_IF_ERROR(begun);
  made->groups_.push_back({world, {}});
  return made;
}

Result<GroupId> Communicator::make_group(std::span<const int> ranks) {
  RETURN_IF_ERROR(check_ranks(ranks, rank_count()));
  const std::int64_t hash = hash_of(ranks);
  ASSIGN_OR_RETURN(const std::int64_t lowest, minimum(hash, "ranks of a new group"));
  ASSIGN_OR_RETURN(const std::int64_t highest, maximum(hash, "ranks of a new group"));
  if (lowest != highest) {
    return make_error(ErrorCode::internal,
                      "group {}: ranks ask for different groups; rank {} for one of {}",
                      groups_.size(), rank_, ranks_text(ranks));
  }
  const GroupId id{static_cast<std::int32_t>(groups_.size())};
  const Status added = progress_->do_there(
      [&](Transport& /*transport*/, auto& engine) { return engine.add_group(id, ranks); });
  RETURN_IF_ERROR(added);
  groups_.push_back({{ranks.begin(), ranks.end()}, {}});
  return id;
}

std::span<const int> Communicator::ranks_of(GroupId group) const {
  return groups_[static_cast<std::size_t>(index_of(group))].ranks;
}

Result<detail::CallState*> Communicator::prepare(const Call& call) {
  if (index_of(call.group) < 0 || static_cast<std::size_t>(index_of(call.group)) >= groups_.size())
    return make_error(ErrorCode::internal, "{}: there is no group {}", call_text(call),
                      index_of(call.group));
  RETURN_IF_ERROR(check_call(call, ranks_of(call.group), rank_));
  detail::CallState* state = progress_->slots().try_acquire();
  if (state == nullptr) {
    return make_error(ErrorCode::busy, "{}: {} calls are under way, and no more can be",
                      call_text(call), detail::CallSlots::kCount);
  }
  count(call);
  state->call = call;
  return state;
}

void Communicator::count(const Call& call) {
  Group& group = groups_[static_cast<std::size_t>(index_of(call.group))];
  CallCounters& counters = group.counters[static_cast<std::size_t>(call.kind)];
  counters.call_count += 1;
  const auto others = std::ssize(group.ranks) - 1;
  if (options_.checks == CallChecks::on || is_agreement(call.kind)) {
    counters.header_bytes += others * static_cast<std::int64_t>(sizeof(detail::CallHeader));
  }
  if (is_agreement(call.kind)) return;
  const std::int64_t whole_bytes = element_count(call) * element_bytes(call.type);
  if (call.kind == Kind::broadcast) {
    (call.root == rank_ ? counters.sent_bytes : counters.received_bytes) +=
        call.root == rank_ ? others * whole_bytes : whole_bytes;
    return;
  }
  const auto place = std::find(group.ranks.begin(), group.ranks.end(), rank_);
  const std::int64_t own_bytes =
      shard_of(call, group.ranks.size(), static_cast<std::size_t>(place - group.ranks.begin()))
          .count *
      element_bytes(call.type);
  const bool gathers = call.kind != Kind::reduce_scatter;
  const bool reduces = call.kind != Kind::all_gather;
  counters.sent_bytes +=
      (gathers ? others * own_bytes : 0) + (reduces ? whole_bytes - own_bytes : 0);
  counters.received_bytes +=
      (gathers ? whole_bytes - own_bytes : 0) + (reduces ? others * own_bytes : 0);
}

Status Communicator::start(const Call& call, runtime::Completion completion) {
  ASSIGN_OR_RETURN(detail::CallState * state, prepare(call));
  state->notice = std::move(completion);
  progress_->hand(state);
  return ok_status();
}

Status Communicator::start(const Call& call, Pending& pending) {
  ASSIGN_OR_RETURN(detail::CallState * state, prepare(call));
  state->notice = &pending;
  progress_->hand(state);
  return ok_status();
}

Status Communicator::run(const Call& call) {
  Pending pending;
  RETURN_IF_ERROR(start(call, pending));
  return pending.wait();
}

const CallCounters& Communicator::counters(GroupId group, Kind kind) const {
  return groups_[static_cast<std::size_t>(index_of(group))]
      .counters[static_cast<std::size_t>(kind)];
}

void Communicator::end_all(const Error& why) {
  static_cast<void>(progress_->do_there([&](Transport& transport, auto& engine) {
    const Error named = why.with_context(fmt::format("rank {} of {}", rank_, rank_count()));
    transport.end_all(named);
    engine.fail(named);
    return ok_status();
  }));
}

Status Communicator::close() { return progress_->close(); }

}  // namespace sluice::collective
