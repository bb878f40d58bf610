#pragma once
// The seam between what a collective call means and who moves its bytes: exchanges within a group,
// and small notes from rank to rank. Two implementations: threads of one process (thread_ranks.h)
// and MPI (mpi_ranks.h). It sums nothing and knows no kind of call; that is written once, in
// detail/progress_engine.h.
//
// Thread contract: made, used and closed on the one thread that makes progress (Communicator's);
// nothing blocks but add_group() and close().

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "core/collective/call.h"

namespace sluice::collective {

// Elements of a buffer.
struct Part {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

enum class Shape : std::uint8_t {
  all_to_all,  // send_parts[j] goes to the j-th rank, receive_parts[j] comes from it; own: empty
  all_gather,  // receive_parts[own] goes to each other, receive_parts[j] comes from the j-th
  broadcast,   // receive_parts[0] goes from the root to each other
};

// One message of each pair of ranks at the most. What it points to stays until it has ended.
struct Exchange {
  Shape shape = Shape::all_gather;
  std::int64_t element_bytes = 1;  // 1, 2, 4 or 8
  const std::byte* send = nullptr;
  std::byte* receive = nullptr;
  std::span<const Part> send_parts;     // by place in the group
  std::span<const Part> receive_parts;  // by place in the group
  int root_place = 0;                   // broadcast: place in the group
};

struct Ended {
  GroupId group{-1};
  Status outcome;
};

// Who has joined which call, asked and answered where a call takes long.
struct JoinNote {
  enum class What : std::int32_t { have_you_joined, i_have_joined };
  What what = What::have_you_joined;
  std::int32_t group = -1;
  std::int64_t call_number = -1;  // of the group, from 1
  std::int32_t from = -1;         // rank
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int rank_count() const = 0;
  // Machines, numbered from 0 by the lowest rank on them.
  virtual int node_of(int rank) const = 0;

  // Groups come in the order of their ids; all ranks of the world call it with the same.
  virtual Status add_group(GroupId group, std::span<const int> ranks) = 0;
  // At most one exchange of a group at a time. An error: nothing was begun.
  virtual Status begin(GroupId group, const Exchange& exchange) = 0;
  // Appends the exchanges that have ended: everything is received, and nobody reads what was sent.
  // An error: the world has ended.
  virtual Status poll(std::vector<Ended>& ended) = 0;
  // Until something may have happened; about 50 us.
  virtual void wait() = 0;

  virtual void send_note(int rank, const JoinNote& note) = 0;
  virtual std::optional<JoinNote> take_note() = 0;

  // Lets go of all exchanges under way: they never end, and the world is of no more use.
  virtual void abandon() = 0;
  // Ends all ranks, with a message that says who and why. MPI's does not return.
  virtual void end_all(const Error& why) = 0;
  // After the last call, on all ranks.
  virtual Status close() = 0;
};

}  // namespace sluice::collective
