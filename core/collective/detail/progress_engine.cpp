#include "core/collective/detail/progress_engine.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "core/collective/rank_order_sum.h"

namespace sluice::collective::detail {
namespace {

// The elements of a shard that message `index` carries.
Part message_part(const Shard& shard, std::int64_t index, std::int64_t message_count) {
  const std::int64_t first = std::min(index * message_count, shard.count);
  return {shard.first + first, std::min(message_count, shard.count - first)};
}

}  // namespace

ProgressEngine::ProgressEngine(Transport& transport, CallSlots& slots,
                               const CommunicatorOptions& options)
    : transport_(transport), slots_(slots), options_(options) {}

Status ProgressEngine::add_group(GroupId id, std::span<const int> ranks) {
  CHECK_EQ(static_cast<std::size_t>(index_of(id)), groups_.size());
  RETURN_IF_ERROR(transport_.add_group(id, ranks));
  const auto own = std::find(ranks.begin(), ranks.end(), transport_.rank());
  Group& group = groups_.emplace_back();
  group.id = id;
  group.ranks.assign(ranks.begin(), ranks.end());
  group.is_member = own != ranks.end();
  ended_.reserve(groups_.size());
  if (!group.is_member) return ok_status();
  group.place = static_cast<std::size_t>(own - ranks.begin());
  group.has_joined.resize(ranks.size());
  group.asked_call_number.resize(ranks.size());
  group.headers.resize(ranks.size());
  group.send_parts.resize(ranks.size());
  group.receive_parts.resize(ranks.size());
  group.inputs.resize(ranks.size());
  // Not filled: pages that no sum uses take no memory.
  if (ranks.size() > 1) {
    const std::int64_t size_bytes = std::max(
        options_.message_bytes, std::ssize(ranks) * static_cast<std::int64_t>(sizeof(double)));
    group.scratch =
        std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(size_bytes));
  }
  return ok_status();
}

// In one message of the active call: elements of each shard, or of what is broadcast.
std::int64_t ProgressEngine::message_elements(const Group& group) const {
  const Call& call = group.active->call;
  const std::int64_t parts = call.kind == Kind::broadcast ? 1 : std::ssize(group.ranks);
  return std::max<std::int64_t>(1, options_.message_bytes / (parts * element_bytes(call.type)));
}

void ProgressEngine::accept(CallState* state, TimeNs now_ns) {
  Group& group = this->group(state->call.group);
  state->number = ++group.accepted_count;
  group.waiting.push(state);
  if (!outcome_.ok()) return fail(Error(outcome_.error()));
  for (std::size_t place = 0; place < group.ranks.size(); ++place) {
    if (group.asked_call_number[place] == state->number) answer(group, place);
  }
  pump(group, now_ns);
}

ProgressEngine::Moved ProgressEngine::step(TimeNs now_ns) {
  take_notes();
  if (!outcome_.ok()) return Moved::idle;
  ended_.clear();
  const Status polled = transport_.poll(ended_);
  if (!polled.ok()) fail(polled.error());
  for (const Ended& ended : ended_) {
    if (outcome_.ok()) take_ended(ended, now_ns);
  }
  bool is_busy = false;
  for (Group& group : groups_) {
    if (group.is_exchanging) watch_patience(group, now_ns);
    is_busy = is_busy || group.active != nullptr;
  }
  if (!is_busy) return Moved::idle;
  return ended_.empty() ? Moved::nothing : Moved::something;
}

void ProgressEngine::take_ended(const Ended& ended, TimeNs now_ns) {
  Group& group = this->group(ended.group);
  group.is_exchanging = false;
  if (ended.outcome.ok()) {
    pump(group, now_ns);
  } else {
    fail(with_call(group, ended.outcome.error()));
  }
}

void ProgressEngine::fail(const Error& error) {
  if (outcome_.ok()) {
    outcome_ = error;
    transport_.abandon();
  }
  for (Group& group : groups_) {
    group.is_exchanging = false;
    if (group.active != nullptr) finish(group, error);
    while (!group.waiting.is_empty()) {
      group.active = group.waiting.pop();
      finish(group, error);
    }
  }
}

// As far as the group gets without waiting.
void ProgressEngine::pump(Group& group, TimeNs now_ns) {
  while (outcome_.ok() && !group.is_exchanging) {
    if (group.active == nullptr) {
      if (group.waiting.is_empty()) return;
      group.active = group.waiting.pop();
      group.message_index = 0;
      const bool has_headers =
          options_.checks == CallChecks::on || is_agreement(group.active->call.kind);
      group.phase = has_headers ? Phase::headers : Phase::own_part;
    }
    if (group.ranks.size() == 1) {
      end_alone(group);
    } else {
      do_phase(group, now_ns);
    }
  }
}

void ProgressEngine::do_phase(Group& group, TimeNs now_ns) {
  switch (group.phase) {
    case Phase::headers:
      return exchange_headers(group, now_ns);
    case Phase::compare:
      return compare_headers(group);
    case Phase::own_part:
      return copy_own_part(group);
    case Phase::message:
      return exchange_message(group, now_ns);
    case Phase::sum:
      return sum_message(group);
    case Phase::gather:
      return gather_message(group, message_elements(group), now_ns);
    case Phase::next:
      group.message_index += 1;
      group.phase = Phase::message;
  }
}

void ProgressEngine::exchange_headers(Group& group, TimeNs now_ns) {
  group.phase = Phase::compare;
  group.headers[group.place] = header_of(group.active->call, group.active->number);
  for (std::size_t place = 0; place < group.ranks.size(); ++place) {
    group.receive_parts[place] = {static_cast<std::int64_t>(place * sizeof(CallHeader)),
                                  sizeof(CallHeader)};
  }
  Exchange exchange;
  exchange.shape = Shape::all_gather;
  exchange.receive = reinterpret_cast<std::byte*>(group.headers.data());
  exchange.receive_parts = group.receive_parts;
  begin(group, exchange, now_ns);
}

void ProgressEngine::compare_headers(Group& group) {
  const std::optional<std::size_t> other = first_difference(group.headers);
  if (other.has_value()) {
    return fail(make_error(
        ErrorCode::internal,
        "ranks ask for different things in group {} ({}): rank {} in its call {} for {}, rank {} "
        "in its call {} for {}",
        index_of(group.id), ranks_text(group.ranks), group.ranks[0], group.headers[0].call_number,
        header_text(group.headers[0]), group.ranks[*other], group.headers[*other].call_number,
        header_text(group.headers[*other])));
  }
  const Call& call = group.active->call;
  if (!is_agreement(call.kind)) {
    group.phase = Phase::own_part;
    return;
  }
  if (call.kind != Kind::barrier) {
    std::int64_t value = group.headers[0].value;
    for (const CallHeader& header : group.headers) {
      value = call.kind == Kind::minimum ? std::min(value, header.value)
                                         : std::max(value, header.value);
    }
    std::memcpy(call.out.data(), &value, sizeof value);
  }
  finish(group, ok_status());
}

// Gathers and broadcasts go from `out`; where the caller does not work in place, that is a copy.
void ProgressEngine::copy_own_part(Group& group) {
  group.phase = Phase::message;
  const Call& call = group.active->call;
  std::byte* to = call.out.data();
  if (call.kind == Kind::all_gather) {
    to += shard_of(call, group.ranks.size(), group.place).first * element_bytes(call.type);
  }
  if (is_reduction(call.kind) || call.in.empty() || call.in.data() == to) return;
  std::memcpy(to, call.in.data(), call.in.size());
}

void ProgressEngine::exchange_message(Group& group, TimeNs now_ns) {
  const Call& call = group.active->call;
  const std::int64_t count = element_count(call);
  const std::int64_t message_count = message_elements(group);
  const bool is_broadcast = call.kind == Kind::broadcast;
  // The first shard is the longest.
  const std::int64_t to_send = is_broadcast ? count : shard_of(call, group.ranks.size(), 0).count;
  if (group.message_index * message_count >= to_send) return finish(group, ok_status());
  if (is_reduction(call.kind)) return exchange_for_sum(group, message_count, now_ns);
  if (call.kind == Kind::all_gather) return gather_message(group, message_count, now_ns);
  group.phase = Phase::next;
  group.receive_parts[0] = message_part({0, count}, group.message_index, message_count);
  Exchange exchange;
  exchange.shape = Shape::broadcast;
  exchange.element_bytes = element_bytes(call.type);
  exchange.receive = call.out.data();
  exchange.receive_parts = std::span(group.receive_parts).first(1);
  exchange.root_place = static_cast<int>(
      std::find(group.ranks.begin(), group.ranks.end(), call.root) - group.ranks.begin());
  begin(group, exchange, now_ns);
}

void ProgressEngine::exchange_for_sum(Group& group, std::int64_t message_count, TimeNs now_ns) {
  group.phase = Phase::sum;
  const Call& call = group.active->call;
  const std::int64_t bytes = element_bytes(call.type);
  const auto part_of = [&](std::size_t place) {
    return message_part(shard_of(call, group.ranks.size(), place), group.message_index,
                        message_count);
  };
  const Part own = part_of(group.place);
  for (std::size_t place = 0; place < group.ranks.size(); ++place) {
    const bool is_own = place == group.place;
    const auto first = static_cast<std::int64_t>(place) * message_count;
    group.send_parts[place] = is_own ? Part{} : part_of(place);
    group.receive_parts[place] = is_own ? Part{} : Part{first, own.count};
    group.inputs[place] =
        is_own ? call.in.data() + own.first * bytes : group.scratch.get() + first * bytes;
  }
  Exchange exchange;
  exchange.shape = Shape::all_to_all;
  exchange.element_bytes = bytes;
  exchange.send = call.in.data();
  exchange.receive = group.scratch.get();
  exchange.send_parts = group.send_parts;
  exchange.receive_parts = group.receive_parts;
  begin(group, exchange, now_ns);
}

void ProgressEngine::sum_message(Group& group) {
  const Call& call = group.active->call;
  const bool is_whole = call.kind == Kind::all_reduce;
  group.phase = is_whole ? Phase::gather : Phase::next;
  const Shard shard = shard_of(call, group.ranks.size(), group.place);
  const Part own = message_part(shard, group.message_index, message_elements(group));
  const std::int64_t first = is_whole ? own.first : own.first - shard.first;
  sum_in_rank_order(call.type, group.inputs, call.out.data() + first * element_bytes(call.type),
                    own.count);
}

void ProgressEngine::gather_message(Group& group, std::int64_t message_count, TimeNs now_ns) {
  group.phase = Phase::next;
  const Call& call = group.active->call;
  for (std::size_t place = 0; place < group.ranks.size(); ++place) {
    group.receive_parts[place] =
        message_part(shard_of(call, group.ranks.size(), place), group.message_index, message_count);
  }
  Exchange exchange;
  exchange.shape = Shape::all_gather;
  exchange.element_bytes = element_bytes(call.type);
  exchange.receive = call.out.data();
  exchange.receive_parts = group.receive_parts;
  begin(group, exchange, now_ns);
}

void ProgressEngine::begin(Group& group, const Exchange& exchange, TimeNs now_ns) {
  group.is_exchanging = true;
  group.exchange_start_ns = now_ns;
  group.asked_ns = -1;
  const Status begun = transport_.begin(group.id, exchange);
  if (!begun.ok()) fail(with_call(group, begun.error()));
}

// A group of one rank: every call is a copy.
void ProgressEngine::end_alone(Group& group) {
  const Call& call = group.active->call;
  if (!call.in.empty() && call.out.data() != call.in.data()) {
    std::memcpy(call.out.data(), call.in.data(), call.in.size());
  }
  finish(group, ok_status());
}

void ProgressEngine::finish(Group& group, Status outcome) {
  CallState* state = std::exchange(group.active, nullptr);
  const Notice notice = std::move(state->notice);
  // First: who is told may start the next call at once.
  slots_.release(state);
  tell(notice, std::move(outcome));
}

Error ProgressEngine::with_call(const Group& group, const Error& error) const {
  return error.with_context(fmt::format("rank {} of {}, {} in group {} ({})", transport_.rank(),
                                        transport_.rank_count(), call_text(group.active->call),
                                        index_of(group.id), ranks_text(group.ranks)));
}

}  // namespace sluice::collective::detail
