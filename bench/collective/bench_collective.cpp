// all_reduce and all_gather of core/collective against MPI's own blocking MPI_Allreduce and
// MPI_Allgather, taking turns in one run:
//
//   mpirun --oversubscribe --mca mpi_yield_when_idle 1 -n 4 build/release/bin/bench_collective
//   [rounds]
//
// A time is that of the slowest rank. Ours has the hand-over to the thread that makes progress and
// the note back in it; MPI's is taken on that thread, where MPI is at home.

#include <mpi.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "bench/contenders.h"
#include "core/collective/communicator.h"
#include "core/collective/mpi_ranks.h"
#include "tests/core/collective/forwarding_transport.h"

namespace sluice::collective {
namespace {

// Lets the main thread have something done on the thread that makes progress.
class Errands {
 public:
  void run(const std::function<void()>& errand) {
    MutexLock lock(mutex_);
    errand_ = &errand;
    while (errand_ != nullptr) done_.wait(mutex_);
  }
  void look() {
    MutexLock lock(mutex_);
    if (errand_ == nullptr) return;
    (*errand_)();
    errand_ = nullptr;
    done_.notify_all();
  }

 private:
  Mutex mutex_;
  CondVar done_;
  const std::function<void()>* errand_ GUARDED_BY(mutex_) = nullptr;
};

class WithErrands final : public ForwardingTransport {
 public:
  WithErrands(std::unique_ptr<Transport> next, Errands& errands)
      : ForwardingTransport(std::move(next)), errands_(errands) {}
  Status poll(std::vector<Ended>& ended) override {
    errands_.look();
    return ForwardingTransport::poll(ended);
  }

 private:
  Errands& errands_;
};

void require(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.error().message().c_str());
  std::exit(1);
}

struct Bench {
  Communicator& communicator;
  Errands& errands;
  int rounds;

  // Seconds; the slowest rank's.
  double slowest(TimeNs dur_ns) const {
    const auto longest = communicator.maximum(dur_ns, "duration");
    require(longest.ok() ? ok_status() : Status(longest.error()));
    return static_cast<double>(*longest) / 1e9;
  }
  double ours(const Call& call) const {
    require(communicator.barrier("round"));
    const TimeNs start_ns = monotonic_now_ns();
    require(communicator.run(call));
    return slowest(monotonic_now_ns() - start_ns);
  }
  double plain(const std::function<void()>& call) const {
    TimeNs dur_ns = 0;
    errands.run([&] {
      MPI_Barrier(MPI_COMM_WORLD);
      const TimeNs start_ns = monotonic_now_ns();
      call();
      dur_ns = monotonic_now_ns() - start_ns;
    });
    return slowest(dur_ns);
  }

  void compare(Kind kind, std::int64_t size_bytes) const {
    const auto p = static_cast<std::int64_t>(communicator.rank_count());
    const std::int64_t own = size_bytes / 4 / p;
    const std::int64_t count = own * p;
    const bool gathers = kind == Kind::all_gather;
    const auto in = bench::allocate<float>(gathers ? own : count, 1.0F);
    const auto out = bench::allocate<float>(count, 0.0F);
    Call call;
    call.kind = kind;
    call.type = ElementType::fp32;
    const auto in_count = static_cast<std::size_t>(gathers ? own : count);
    call.in = std::as_bytes(std::span(in.get(), in_count));
    call.out = std::as_writable_bytes(std::span(out.get(), static_cast<std::size_t>(count)));
    call.label.what = "bench";
    const auto mpi = [&] {
      if (gathers) {
        MPI_Allgather(in.get(), static_cast<int>(own), MPI_FLOAT, out.get(), static_cast<int>(own),
                      MPI_FLOAT, MPI_COMM_WORLD);
      } else {
        MPI_Allreduce(in.get(), out.get(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
      }
    };
    ours(call);
    plain(mpi);
    std::vector<double> our_seconds;
    std::vector<double> mpi_seconds;
    std::vector<double> ratios;
    for (int round = 0; round < rounds; ++round) {
      our_seconds.push_back(ours(call));
      mpi_seconds.push_back(plain(mpi));
      ratios.push_back(our_seconds.back() / mpi_seconds.back());
    }
    if (communicator.rank() != 0) return;
    std::printf("%-10s %5lld MB   ours %8.2f ms   MPI %8.2f ms   ours / MPI %5.2f\n",
                std::string(kind_name(kind)).c_str(), static_cast<long long>(size_bytes >> 20),
                bench::median(our_seconds) * 1e3, bench::median(mpi_seconds) * 1e3,
                bench::median(ratios));
    std::fflush(stdout);
  }
};

int main_with(int rounds, std::int64_t message_bytes) {
  Errands errands;
  const auto opener = [&]() -> Result<std::unique_ptr<Transport>> {
    ASSIGN_OR_RETURN(std::unique_ptr<Transport> mpi, open_mpi_transport());
    return std::make_unique<WithErrands>(std::move(mpi), errands);
  };
  auto communicator = Communicator::open(opener, {.message_bytes = message_bytes});
  require(communicator.ok() ? ok_status() : Status(communicator.error()));
  const Bench bench{**communicator, errands, rounds};
  if ((*communicator)->rank() == 0) {
    std::printf("%d ranks, %s, messages of %lld KiB, median of %d rounds\n",
                (*communicator)->rank_count(), bench::cpu_model().c_str(),
                static_cast<long long>(message_bytes >> 10), rounds);
  }
  for (const Kind kind : {Kind::all_reduce, Kind::all_gather}) {
    for (const std::int64_t megabytes : {1, 64}) bench.compare(kind, megabytes << 20);
  }
  require((*communicator)->close());
  return 0;
}

}  // namespace
}  // namespace sluice::collective

int main(int argc, char** argv) {
  using namespace sluice;
  constexpr int kMessageKib = collective::CommunicatorOptions{}.message_bytes >> 10;
  const std::int64_t message_kib = bench::argument(argc, argv, 2, kMessageKib);
  return collective::main_with(bench::argument(argc, argv, 1, 15), message_kib << 10);
}
