#pragma once
// One rank's end of a world of ranks: groups of them, and collective calls within groups
// (docs/collective.md).
//
// - All ranks of a group start the same calls of that group in the same order. Calls of different
//   groups are in no order, and are under way side by side; a group does one at a time.
// - start() never blocks. The end of a call is noted once, when all of `out` is there and nobody
//   reads `in` any more.
// - Sums are those of rank_order_sum.h: the same on every transport, to the bit.
// - The first failure ends it all: what is under way and what comes fails with it. The buffers of
//   calls that failed may not be used nor freed before the communicator is gone.
//
// A thread of its own moves the bytes, and polls only while something is under way.
//
// Thread contract: one owner thread. It notes from its own thread (core/runtime/completion.h).

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/collective/call.h"
#include "core/collective/call_counters.h"
#include "core/collective/communicator_options.h"
#include "core/collective/pending.h"
#include "core/collective/transport.h"
#include "core/runtime/completion.h"

namespace sluice::collective {

namespace detail {
struct CallState;
class Progress;
}  // namespace detail

class Communicator {
 public:
  // Called once, on the thread that makes progress.
  using TransportOpener = std::function<Result<std::unique_ptr<Transport>>()>;

  // Collective over all ranks. Errors: ErrorCode::config for options out of range; the transport's.
  static Result<std::unique_ptr<Communicator>> open(const TransportOpener& opener,
                                                    const CommunicatorOptions& options);
  // Without close(): leaves, which the others notice by what they wait for.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int rank_count() const { return static_cast<int>(nodes_.size()); }
  int node_of(int rank) const { return nodes_[static_cast<std::size_t>(rank)]; }

  // Collective over the world, not only the group: all ranks make all groups, in the same order.
  // The order of `ranks` is that of shards and sums. Blocks. Errors: ErrorCode::internal for ranks
  // that are none or come twice, and where ranks ask for different groups.
  Result<GroupId> make_group(std::span<const int> ranks);
  std::span<const int> ranks_of(GroupId group) const;
  int group_count() const { return static_cast<int>(groups_.size()); }

  // Begins a call. An error: nothing was begun and no note will come (ErrorCode::internal where the
  // call is not well formed, ErrorCode::busy with too many under way). An operation's patience
  // stays off: this class has its own, and says who did not join.
  Status start(const Call& call, runtime::Completion completion);
  Status start(const Call& call, Pending& pending);
  // Begins a call and waits for its end. For start-up.
  Status run(const Call& call);

  // Agreements, for start-up and commits; they block. `what` names them in errors.
  Status barrier(const char* what, GroupId group = kWorld);
  Result<std::int64_t> minimum(std::int64_t value, const char* what, GroupId group = kWorld);
  Result<std::int64_t> maximum(std::int64_t value, const char* what, GroupId group = kWorld);
  // Each rank's text, in the order of the group.
  Result<std::vector<std::string>> gather_text(std::string_view text, const char* what,
                                               GroupId group = kWorld);

  // The counts of the calls started until now.
  const CallCounters& counters(GroupId group, Kind kind) const;

  // Something else has failed on this rank: all ranks end, and say who and why. With MPI the
  // process ends here (MPI_Abort).
  void end_all(const Error& why);
  // After the last call; all ranks. What a failed communicator's failure was, else what closing
  // the transport says. A failed one does not wait for the others.
  Status close();

 private:
  struct Group {
    std::vector<int> ranks;
    std::array<CallCounters, kKindCount> counters;
  };
  Communicator(const CommunicatorOptions& options, std::unique_ptr<detail::Progress> progress);
  Result<detail::CallState*> prepare(const Call& call);
  void count(const Call& call);

  const CommunicatorOptions options_;
  std::unique_ptr<detail::Progress> progress_;
  int rank_ = 0;
  std::vector<int> nodes_;  // by rank
  std::vector<Group> groups_;
};

}  // namespace sluice::collective
