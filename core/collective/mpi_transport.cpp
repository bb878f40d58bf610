#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <list>
#include <thread>
#include <type_traits>

#include "base/check.h"
#include "core/collective/mpi_ranks.h"

namespace sluice::collective {
namespace {

// MPI polls, it does not wake: between two looks a thread sleeps so long, or it would take the
// processor from those who compute.
constexpr std::chrono::microseconds kPollWait{50};

Error mpi_error(const char* call, int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return make_error(ErrorCode::internal, "{}: {}", call,
                    std::string_view(text.data(), static_cast<std::size_t>(length)));
}

#define RETURN_IF_MPI_ERROR(call)                                                                \
  do {                                                                                           \
    if (const int mpi_code = (call); mpi_code != MPI_SUCCESS) return mpi_error(#call, mpi_code); \
  } while (false)

MPI_Datatype datatype_of(std::int64_t element_bytes) {
  switch (element_bytes) {
    case 2:
      return MPI_UINT16_T;
    case 4:
      return MPI_UINT32_T;
    case 8:
      return MPI_UINT64_T;
    default:
      return MPI_BYTE;
  }
}

// An exchange in the form that MPI wants; stays until it has ended.
struct MpiGroup {
  MPI_Comm communicator = MPI_COMM_NULL;  // MPI_COMM_NULL: this rank is not in it
  std::vector<int> send_counts;
  std::vector<int> send_firsts;
  std::vector<int> receive_counts;
  std::vector<int> receive_firsts;
};

struct NoteSent {
  JoinNote note;
  MPI_Request request = MPI_REQUEST_NULL;
};
static_assert(std::is_trivially_copyable_v<JoinNote>);

class MpiTransport final : public Transport {
 public:
  static Result<std::unique_ptr<Transport>> open();
  int rank() const override { return rank_; }
  int rank_count() const override { return static_cast<int>(nodes_.size()); }
  int node_of(int rank) const override { return nodes_[static_cast<std::size_t>(rank)]; }
  Status add_group(GroupId id, std::span<const int> ranks) override;
  Status begin(GroupId id, const Exchange& exchange) override;
  Status poll(std::vector<Ended>& ended) override;
  void wait() override { std::this_thread::sleep_for(kPollWait); }
  void send_note(int rank, const JoinNote& note) override;
  std::optional<JoinNote> take_note() override;
  // A call under way cannot be taken back. The library moves nothing unless it is called.
  void abandon() override {}
  void end_all(const Error& why) override;
  Status close() override;

 private:
  Status find_nodes();
  Status await_note();

  int rank_ = 0;
  std::vector<int> nodes_;  // by rank
  std::vector<MpiGroup> groups_;
  std::vector<MPI_Request> requests_;  // by group; MPI_REQUEST_NULL: nothing under way
  std::vector<int> ended_indices_;
  std::vector<MPI_Status> ended_statuses_;
  MPI_Comm notes_ = MPI_COMM_NULL;
  JoinNote note_;  // the next to come
  MPI_Request note_request_ = MPI_REQUEST_NULL;
  std::list<NoteSent> notes_sent_;  // places stay while MPI reads them
};

Result<std::unique_ptr<Transport>> MpiTransport::open() {
  auto transport = std::make_unique<MpiTransport>();
  int provided = MPI_THREAD_SINGLE;
  RETURN_IF_MPI_ERROR(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided));
  if (provided < MPI_THREAD_FUNNELED) {
    return make_error(ErrorCode::unsupported,
                      "this MPI allows no threads at all (MPI_THREAD_FUNNELED is wanted)");
  }
  RETURN_IF_MPI_ERROR(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  int count = 0;
  RETURN_IF_MPI_ERROR(MPI_Comm_rank(MPI_COMM_WORLD, &transport->rank_));
  RETURN_IF_MPI_ERROR(MPI_Comm_size(MPI_COMM_WORLD, &count));
  transport->nodes_.resize(static_cast<std::size_t>(count));
  RETURN_IF_ERROR(transport->find_nodes());
  RETURN_IF_MPI_ERROR(MPI_Comm_dup(MPI_COMM_WORLD, &transport->notes_));
  RETURN_IF_ERROR(transport->await_note());
  return transport;
}

// A node is called by its lowest rank first, and numbered in the order of those.
Status MpiTransport::find_nodes() {
  MPI_Comm node = MPI_COMM_NULL;
  RETURN_IF_MPI_ERROR(
      MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node));
  int lowest = rank_;
  RETURN_IF_MPI_ERROR(MPI_Bcast(&lowest, 1, MPI_INT, 0, node));
  RETURN_IF_MPI_ERROR(MPI_Comm_free(&node));
  RETURN_IF_MPI_ERROR(
      MPI_Allgather(&lowest, 1, MPI_INT, nodes_.data(), 1, MPI_INT, MPI_COMM_WORLD));
  std::vector<int> names(nodes_);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (int& node_name : nodes_) {
    node_name =
        static_cast<int>(std::lower_bound(names.begin(), names.end(), node_name) - names.begin());
  }
  return ok_status();
}

Status MpiTransport::add_group(GroupId id, std::span<const int> ranks) {
  CHECK_EQ(static_cast<std::size_t>(index_of(id)), groups_.size());
  MpiGroup& group = groups_.emplace_back();
  requests_.push_back(MPI_REQUEST_NULL);
  ended_indices_.resize(groups_.size());
  ended_statuses_.resize(groups_.size());
  if (std::find(ranks.begin(), ranks.end(), rank_) == ranks.end()) return ok_status();
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Group members = MPI_GROUP_NULL;
  RETURN_IF_MPI_ERROR(MPI_Comm_group(MPI_COMM_WORLD, &world));
  RETURN_IF_MPI_ERROR(
      MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &members));
  RETURN_IF_MPI_ERROR(
      MPI_Comm_create_group(MPI_COMM_WORLD, members, index_of(id), &group.communicator));
  RETURN_IF_MPI_ERROR(MPI_Group_free(&members));
  RETURN_IF_MPI_ERROR(MPI_Group_free(&world));
  RETURN_IF_MPI_ERROR(MPI_Comm_set_errhandler(group.communicator, MPI_ERRORS_RETURN));
  for (auto* numbers :
       {&group.send_counts, &group.send_firsts, &group.receive_counts, &group.receive_firsts}) {
    numbers->resize(ranks.size());
  }
  return ok_status();
}

Status MpiTransport::begin(GroupId id, const Exchange& exchange) {
  const auto index = static_cast<std::size_t>(index_of(id));
  MpiGroup& group = groups_[index];
  const MPI_Datatype type = datatype_of(exchange.element_bytes);
  // check_call() sees to it that an int holds them.
  const auto set = [](std::span<const Part> parts, std::vector<int>& counts,
                      std::vector<int>& firsts) {
    for (std::size_t place = 0; place < parts.size(); ++place) {
      counts[place] = static_cast<int>(parts[place].count);
      firsts[place] = static_cast<int>(parts[place].first);
    }
  };
  set(exchange.send_parts, group.send_counts, group.send_firsts);
  set(exchange.receive_parts, group.receive_counts, group.receive_firsts);
  MPI_Request* request = &requests_[index];
  switch (exchange.shape) {
    case Shape::all_to_all:
      RETURN_IF_MPI_ERROR(MPI_Ialltoallv(exchange.send, group.send_counts.data(),
                                         group.send_firsts.data(), type, exchange.receive,
                                         group.receive_counts.data(), group.receive_firsts.data(),
                                         type, group.communicator, request));
      break;
    case Shape::all_gather:
      RETURN_IF_MPI_ERROR(MPI_Iallgatherv(MPI_IN_PLACE, 0, type, exchange.receive,
                                          group.receive_counts.data(), group.receive_firsts.data(),
                                          type, group.communicator, request));
      break;
    case Shape::broadcast:
      RETURN_IF_MPI_ERROR(MPI_Ibcast(
          exchange.receive + group.receive_firsts[0] * exchange.element_bytes,
          group.receive_counts[0], type, exchange.root_place, group.communicator, request));
      break;
  }
  return ok_status();
}

Status MpiTransport::poll(std::vector<Ended>& ended) {
  int count = 0;
  const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                                ended_indices_.data(), ended_statuses_.data());
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) return mpi_error("MPI_Testsome", code);
  for (int i = 0; count != MPI_UNDEFINED && i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const int error = code == MPI_ERR_IN_STATUS ? ended_statuses_[at].MPI_ERROR : int{MPI_SUCCESS};
    ended.push_back(
        {GroupId{ended_indices_[at]},
         error == MPI_SUCCESS ? ok_status() : Status(mpi_error("a transfer of MPI", error))});
  }
  return ok_status();
}

Status MpiTransport::await_note() {
  RETURN_IF_MPI_ERROR(
      MPI_Irecv(&note_, sizeof note_, MPI_BYTE, MPI_ANY_SOURCE, 0, notes_, &note_request_));
  return ok_status();
}

// A note that cannot be sent is not answered, and its rank is named.
void MpiTransport::send_note(int rank, const JoinNote& note) {
  NoteSent& sent = notes_sent_.emplace_back();
  sent.note = note;
  MPI_Isend(&sent.note, sizeof sent.note, MPI_BYTE, rank, 0, notes_, &sent.request);
}

std::optional<JoinNote> MpiTransport::take_note() {
  notes_sent_.remove_if([](NoteSent& sent) {
    int is_sent = 0;
    MPI_Test(&sent.request, &is_sent, MPI_STATUS_IGNORE);
    return is_sent != 0;
  });
  int has_come = 0;
  MPI_Test(&note_request_, &has_come, MPI_STATUS_IGNORE);
  if (note_request_ != MPI_REQUEST_NULL || has_come == 0) return std::nullopt;
  const JoinNote note = note_;
  if (!await_note().ok()) note_request_ = MPI_REQUEST_NULL;
  return note;
}

void MpiTransport::end_all(const Error& why) {
  std::fprintf(stderr, "sluice: %s; all ranks end\n", why.message().c_str());
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

Status MpiTransport::close() {
  RETURN_IF_MPI_ERROR(MPI_Barrier(MPI_COMM_WORLD));
  RETURN_IF_MPI_ERROR(MPI_Cancel(&note_request_));
  RETURN_IF_MPI_ERROR(MPI_Wait(&note_request_, MPI_STATUS_IGNORE));
  for (MpiGroup& group : groups_) {
    if (group.communicator != MPI_COMM_NULL)
      RETURN_IF_MPI_ERROR(MPI_Comm_free(&group.communicator));
  }
  RETURN_IF_MPI_ERROR(MPI_Comm_free(&notes_));
  RETURN_IF_MPI_ERROR(MPI_Finalize());
  return ok_status();
}

}  // namespace

Result<std::unique_ptr<Transport>> open_mpi_transport() { return MpiTransport::open(); }

}  // namespace sluice::collective
