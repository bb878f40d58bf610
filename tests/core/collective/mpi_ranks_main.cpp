// One of several ranks under mpirun, for tests/e2e/collective_test.py:
//
//   collective_ranks conformance    every promise of the seam, and the bytes that MPI was asked for
//   collective_ranks nodes          says which node each rank is on
//   collective_ranks differing      rank 1 asks for something else
//   collective_ranks stopped        rank 2 stops itself (SIGSTOP) before a call of all
//   collective_ranks stopped_later  rank 2 stops itself within one
//   collective_ranks killed         rank 2 kills itself (SIGKILL) while the others wait for it
//   collective_ranks ended          rank 1 ends all
//   collective_ranks leaves         rank 1 returns with 7 and closes nothing
//
// Prints lines as tests do, and ends with 0 where all went as the word says, 3 with an error.

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string_view>
#include <thread>

#include "checked_call.h"
#include "conformance.h"
#include "core/collective/open_ranks.h"
#include "mpi_byte_counts.h"

namespace sluice::collective {
namespace {

constexpr TimeNs kPatienceNs = 4'000'000'000;
constexpr int kFailed = 3;

int say_error(const Error& error) {
  std::printf("ERROR %s\n", error.message().c_str());
  std::fflush(stdout);
  return kFailed;
}

// Each rank says what it found; rank 0 says that nobody found anything.
bool report(Communicator& communicator, const char* name, const Problems& problems) {
  for (const std::string& problem : problems)
    std::printf("FAIL %s: rank %d: %s\n", name, communicator.rank(), problem.c_str());
  const auto worst = communicator.maximum(std::ssize(problems), "problems");
  const bool is_good = worst.ok() && *worst == 0;
  if (is_good && communicator.rank() == 0) std::printf("PASS %s\n", name);
  std::fflush(stdout);
  return is_good;
}

Problems bytes_asked_of_mpi(Communicator& communicator) {
  CallCounters all;
  for (int group = 0; group < communicator.group_count(); ++group) {
    for (std::size_t kind = 0; kind < kKindCount; ++kind) {
      const CallCounters& one = communicator.counters(GroupId{group}, static_cast<Kind>(kind));
      all.sent_bytes += one.sent_bytes + one.header_bytes;
      all.received_bytes += one.received_bytes + one.header_bytes;
    }
  }
  const MpiByteCounts asked = mpi_byte_counts();
  Problems problems;
  const bool is_alone = communicator.rank_count() == 1;
  if ((all.sent_bytes == 0) != is_alone || asked.sent_bytes != all.sent_bytes)
    problems.push_back(fmt::format("sent {}, counted {}", asked.sent_bytes, all.sent_bytes));
  if (asked.received_bytes != all.received_bytes)
    problems.push_back(
        fmt::format("received {}, counted {}", asked.received_bytes, all.received_bytes));
  if (asked.note_bytes != 0)
    problems.push_back(fmt::format("{} bytes of notes, though nobody was late", asked.note_bytes));
  return problems;
}

int conformance(Communicator& communicator) {
  bool is_good = true;
  for (const Promise& promise : promises()) {
    const Problems problems = promise.check(communicator);
    is_good = report(communicator, promise.name, problems) && is_good;
    if (!problems.empty()) break;
  }
  is_good = is_good && report(communicator, "what MPI was asked for is what the counters say",
                              bytes_asked_of_mpi(communicator));
  const Status closed = communicator.close();
  if (!closed.ok()) return say_error(closed.error());
  return is_good ? 0 : kFailed;
}

Status one_sum(Communicator& communicator, std::int64_t count, Kind kind = Kind::all_reduce) {
  CallPlan plan;
  plan.kind = kind;
  plan.count = count;
  const CheckedCall checked(plan, communicator.ranks_of(kWorld), communicator.rank());
  return communicator.run(checked.call());
}

int nodes(Communicator& communicator) {
  for (int rank = 0; rank < communicator.rank_count() && communicator.rank() == 0; ++rank)
    std::printf("rank %d on node %d\n", rank, communicator.node_of(rank));
  return communicator.close().ok() ? 0 : kFailed;
}

// The buffers of a call that failed stay until the process ends, which is here.
[[noreturn]] void end_with(const Status& status) {
  const int code = status.ok() ? 0 : say_error(status.error());
  _exit(code);
}

[[noreturn]] void stopped(Communicator& communicator, bool within) {
  const Status first = one_sum(communicator, 1000);
  if (!first.ok()) end_with(first);
  if (communicator.rank() == 2 && within) {
    // In the middle of one of many messages, wherever that is.
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      raise(SIGSTOP);
    }).detach();
  } else if (communicator.rank() == 2) {
    raise(SIGSTOP);
  }
  for (;;) {
    const Status status = one_sum(communicator, 200'000);
    if (!status.ok() || !within) end_with(status);
  }
}

int run(Communicator& communicator, std::string_view mode) {
  if (mode == "conformance") return conformance(communicator);
  if (mode == "nodes") return nodes(communicator);
  if (mode == "stopped" || mode == "stopped_later") stopped(communicator, mode != "stopped");
  if (mode == "differing") {
    end_with(one_sum(communicator, 10,
                     communicator.rank() == 1 ? Kind::reduce_scatter : Kind::all_reduce));
  }
  if (mode == "killed" && communicator.rank() == 2) raise(SIGKILL);
  if (mode == "ended" && communicator.rank() == 1)
    communicator.end_all(make_error(ErrorCode::io, "the drive is gone"));
  if (mode == "leaves" && communicator.rank() == 1) _exit(7);
  end_with(one_sum(communicator, 1000));
}

int main_of(std::string_view mode) {
  CommunicatorOptions options;
  options.checks = CallChecks::on;
  options.patience_ns = mode == "conformance" ? 60'000'000'000 : kPatienceNs;
  // Several messages a call, without taking long over it.
  if (mode == "conformance") options.message_bytes = 2048;
  if (mode == "killed" || mode == "ended" || mode == "leaves") options.patience_ns *= 100;
  auto communicator = open_ranks(options);
  if (!communicator.ok()) return say_error(communicator.error());
  return run(**communicator, mode);
}

}  // namespace
}  // namespace sluice::collective

int main(int argc, char** argv) { return argc == 2 ? sluice::collective::main_of(argv[1]) : 2; }
