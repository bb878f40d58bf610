#pragma once
// Turns calls into exchanges, and sums: the algorithms of core/collective, written once for every
// transport.
//
// A group does one call at a time, in the order asked; groups do theirs side by side. A call is cut
// into messages of at most `message_bytes`, one exchange each (two for all_reduce):
//
//   all_gather      each rank's own shard to all others
//   reduce_scatter  each shard to its owner, who sums in rank order
//   all_reduce      the same, then the sums as in all_gather
//   broadcast       from the root
//
// before them, with checks, one exchange of headers, which is all that an agreement consists of.
//
// Thread contract: one thread, the transport's. Time is an argument, so that tests make it.

#include <memory>
#include <vector>

#include "base/units.h"
#include "core/collective/communicator_options.h"
#include "core/collective/detail/call_header.h"
#include "core/collective/detail/call_state.h"
#include "core/collective/transport.h"

namespace sluice::collective::detail {

class ProgressEngine {
 public:
  ProgressEngine(Transport& transport, CallSlots& slots, const CommunicatorOptions& options);

  Status add_group(GroupId id, std::span<const int> ranks);
  // Takes a call that check_call() found right. Its end is told once, by step() or fail().
  void accept(CallState* state, TimeNs now_ns);
  // Does what can be done, and what came of it: nothing is under way; something is, and waits;
  // something went on, so that more may at once.
  enum class Moved : std::uint8_t { idle, nothing, something };
  Moved step(TimeNs now_ns);
  // Ends all that is under way and all that comes, with this error.
  void fail(const Error& error);
  const Status& outcome() const { return outcome_; }

 private:
  enum class Phase : std::uint8_t { headers, compare, own_part, message, sum, gather, next };
  struct Group {
    GroupId id{-1};
    std::vector<int> ranks;
    std::size_t place = 0;  // own, in ranks
    bool is_member = false;
    CallQueue waiting;
    CallState* active = nullptr;
    Phase phase = Phase::headers;
    std::int64_t message_index = 0;
    bool is_exchanging = false;
    std::int64_t accepted_count = 0;

    // Who has joined the active call, where that is asked.
    TimeNs exchange_start_ns = 0;
    TimeNs asked_ns = -1;                         // -1: not asked yet
    std::vector<char> has_joined;                 // by place
    std::vector<std::int64_t> asked_call_number;  // by place: who wants to be told

    // Taken when the group is made.
    std::vector<CallHeader> headers;       // by place
    std::vector<Part> send_parts;          // by place
    std::vector<Part> receive_parts;       // by place
    std::vector<const std::byte*> inputs;  // by place, of a sum
    std::unique_ptr<std::byte[]> scratch;  // message_bytes, of what others send to be summed
  };

  Group& group(GroupId id) { return groups_[static_cast<std::size_t>(index_of(id))]; }
  void take_ended(const Ended& ended, TimeNs now_ns);
  void pump(Group& group, TimeNs now_ns);
  void do_phase(Group& group, TimeNs now_ns);
  void exchange_headers(Group& group, TimeNs now_ns);
  void compare_headers(Group& group);
  void copy_own_part(Group& group);
  void exchange_message(Group& group, TimeNs now_ns);
  void exchange_for_sum(Group& group, std::int64_t message_count, TimeNs now_ns);
  void sum_message(Group& group);
  void gather_message(Group& group, std::int64_t message_count, TimeNs now_ns);
  void begin(Group& group, const Exchange& exchange, TimeNs now_ns);
  void finish(Group& group, Status outcome);
  void end_alone(Group& group);
  std::int64_t message_elements(const Group& group) const;

  void take_notes();
  void answer(Group& group, std::size_t place);
  void watch_patience(Group& group, TimeNs now_ns);
  Error overdue_error(const Group& group, TimeNs waited_ns) const;
  Error with_call(const Group& group, const Error& error) const;

  Transport& transport_;
  CallSlots& slots_;
  const CommunicatorOptions options_;
  std::vector<Group> groups_;
  std::vector<Ended> ended_;
  Status outcome_;
};

}  // namespace sluice::collective::detail
