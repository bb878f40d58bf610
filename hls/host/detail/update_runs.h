#pragma once
// Updates under way on a card: for each, a run of the update kernel and one of the checksum kernel
// for each stretch of the gradient, started together (they only read it). A run goes to the compute
// unit of its kernel that has the fewest, or has had, chosen here so that the record can say which
// it was; the last to end notes the end of the operation.
//
// Runs and their result buffers are kept for the next update, so that after the first few steps
// nothing is taken any more.
//
// Thread contract: the schedule's thread. XRT calls back on a thread of its own, which counts the
// end and notes it, and does nothing else.

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/runtime/completion.h"
#include "hls/host/detail/card.h"

namespace sluice::hls_host {

// By Role; null: not given.
using RoleBuffers = std::array<const xrt::bo*, kGivenRoles>;

class UpdateRuns {
 public:
  UpdateRuns(std::string name, std::shared_ptr<Card> card);
  UpdateRuns(const UpdateRuns&) = delete;
  UpdateRuns& operator=(const UpdateRuns&) = delete;

  // An error: nothing runs, and the completion is never noted.
  Status start(const csd::UpdateOrder& order, const RoleBuffers& buffers,
               std::int64_t gradient_bytes, csd::UpdatedChecksums& updated,
               runtime::Completion completion);
  // The outcome of the update that fills `updated`, once its end was noted.
  Status finish(const csd::UpdatedChecksums& updated, Status noted);
  // Aborts what still runs. False: it could not be ended within `timeout_ns`, and touches its
  // buffers as long as it likes; nothing of this object may go then.
  bool stop(TimeNs timeout_ns);

 private:
  struct Flight;

  // A run of one kernel, used over and over, one update at a time.
  struct Launch {
    const char* kernel = "";
    std::size_t unit = 0;  // of the kernel's
    xrt::run run;
    xrt::bo result;
    const std::byte* result_bytes = nullptr;  // the host's copy of it
    Flight* flight = nullptr;
    std::atomic<bool> is_running = false;
    std::atomic<bool> is_refused = false;  // never started: its end means nothing
  };

  // One update. Reused: its place does not change.
  struct Flight {
    const csd::UpdateOrder* order = nullptr;  // null: free
    csd::UpdatedChecksums* updated = nullptr;
    std::vector<Launch*> launches;  // the update, then a checksum a stretch
    std::optional<runtime::Completion> completion;
    std::int32_t unit = -1;            // of the update; -1: its kernel has but one
    std::optional<Error> start_error;  // of a run that could not follow those that were started
    std::atomic<std::int32_t> pending_count = 0;
    std::atomic<bool> is_given_up = false;  // nobody waits for the note any more
    std::atomic<int> bad_state = 0;         // in which a run ended that did not complete; 0: none
  };

  static void on_end(Launch& launch, int state);
  static void count_ends(Flight& flight, std::int32_t count);
  Status prepare(Flight& flight, const RoleBuffers& buffers, std::int64_t gradient_bytes);
  Status add_launch(Flight& flight, const KernelCall& call, const RoleBuffers& buffers);
  Result<Launch*> take_launch(const char* kernel);
  Result<Launch*> make_launch(const char* kernel, std::size_t unit);
  Status start_all(Flight& flight);
  void give_up(Flight& flight, Launch& refused);
  Flight& take_flight(const csd::UpdateOrder& order, csd::UpdatedChecksums& updated);
  void release(Flight& flight);
  Status verdict(const Flight& flight) const;
  Status fetch_result(const Launch& launch) const;

  std::string name_;
  std::shared_ptr<Card> card_;
  std::vector<std::unique_ptr<Launch>> launches_;
  // By kernel, for each of its compute units.
  struct Unit {
    std::vector<Launch*> free;
    std::int32_t taken_count = 0;  // launches that an update has
    std::int64_t total_count = 0;  // that it ever had
  };
  std::map<std::string, std::vector<Unit>, std::less<>> units_;
  std::deque<Flight> flights_;
};

}  // namespace sluice::hls_host
