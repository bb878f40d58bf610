#include "mpi_byte_counts.h"

#include <mpi.h>

#include <atomic>

namespace {

std::atomic<std::int64_t> sent_bytes = 0;
std::atomic<std::int64_t> received_bytes = 0;
std::atomic<std::int64_t> note_bytes = 0;

std::int64_t size_of(MPI_Datatype type) {
  int size = 0;
  PMPI_Type_size(type, &size);
  return size;
}

struct Place {
  int rank = 0;
  int count = 0;
};
Place place_in(MPI_Comm communicator) {
  Place place;
  PMPI_Comm_rank(communicator, &place.rank);
  PMPI_Comm_size(communicator, &place.count);
  return place;
}

std::int64_t sum_of_others(const int* counts, const Place& place) {
  std::int64_t sum = 0;
  for (int rank = 0; rank < place.count; ++rank) sum += rank == place.rank ? 0 : counts[rank];
  return sum;
}

}  // namespace

extern "C" {

int MPI_Ialltoallv(const void* send, const int* send_counts, const int* send_firsts,
                   MPI_Datatype send_type, void* receive, const int* receive_counts,
                   const int* receive_firsts, MPI_Datatype receive_type, MPI_Comm communicator,
                   MPI_Request* request) {
  const Place place = place_in(communicator);
  sent_bytes += sum_of_others(send_counts, place) * size_of(send_type);
  received_bytes += sum_of_others(receive_counts, place) * size_of(receive_type);
  return PMPI_Ialltoallv(send, send_counts, send_firsts, send_type, receive, receive_counts,
                         receive_firsts, receive_type, communicator, request);
}

// In place: what is sent is the own part of what is received.
int MPI_Iallgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                    const int* receive_counts, const int* firsts, MPI_Datatype receive_type,
                    MPI_Comm communicator, MPI_Request* request) {
  const Place place = place_in(communicator);
  sent_bytes += (place.count - 1) * receive_counts[place.rank] * size_of(receive_type);
  received_bytes += sum_of_others(receive_counts, place) * size_of(receive_type);
  return PMPI_Iallgatherv(send, send_count, send_type, receive, receive_counts, firsts,
                          receive_type, communicator, request);
}

int MPI_Ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm communicator,
               MPI_Request* request) {
  const Place place = place_in(communicator);
  const std::int64_t bytes = count * size_of(type);
  (root == place.rank ? sent_bytes : received_bytes) +=
      root == place.rank ? (place.count - 1) * bytes : bytes;
  return PMPI_Ibcast(buffer, count, type, root, communicator, request);
}

int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag,
              MPI_Comm communicator, MPI_Request* request) {
  note_bytes += count * size_of(type);
  return PMPI_Isend(buffer, count, type, to, tag, communicator, request);
}

}  // extern "C"

namespace sluice::collective {

MpiByteCounts mpi_byte_counts() { return {sent_bytes, received_bytes, note_bytes}; }

}  // namespace sluice::collective
