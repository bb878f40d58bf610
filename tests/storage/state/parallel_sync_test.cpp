#include "storage/state/detail/parallel_sync.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <thread>

#include "tests/storage/state/state_fixture.h"

namespace sluice::state::detail {
namespace {

using testing::must;
using testing::ScratchFolder;

std::vector<io::File> make_files(const ScratchFolder& scratch, int count) {
  std::vector<io::File> files;
  for (int i = 0; i < count; ++i)
    files.push_back(must(io::File::open(scratch.path(fmt::format("file{}", i)),
                                        {io::FileAccess::create_new, io::Caching::buffered})));
  return files;
}

// Lets no sync go on until all have begun. Those on other threads than the test's take longer.
class MeetingDisk final : public Disk {
 public:
  explicit MeetingDisk(int count) : Disk(Durability::every_commit), count_(count) {}
  int met_count() const { return met_count_; }
  int ended_count() const { return ended_count_; }

 protected:
  Status before(const DiskCall&) override {
    Status met = meet();
    if (std::this_thread::get_id() != owner_)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ++ended_count_;
    return met;
  }

 private:
  Status meet() {
    std::unique_lock lock(mutex_);
    if (++waiting_ == count_) {
      waiting_ = 0;
      ++met_count_;
      everybody_.notify_all();
      return ok_status();
    }
    const int meeting = met_count_;
    // The limit only turns a hang into a failure.
    if (everybody_.wait_for(lock, std::chrono::seconds(60), [&] { return met_count_ > meeting; }))
      return ok_status();
    return make_error(ErrorCode::internal, "the others did not begin");
  }

  int count_;
  const std::thread::id owner_ = std::this_thread::get_id();
  std::atomic<int> ended_count_ = 0;
  std::mutex mutex_;
  std::condition_variable everybody_;
  int waiting_ = 0;
  int met_count_ = 0;
};

TEST_CASE("all devices are made durable at the same time, commit after commit") {
  const ScratchFolder scratch;
  const std::vector<io::File> files = make_files(scratch, 5);
  MeetingDisk disk(5);
  ParallelSync syncs(disk, files);
  for (int commit = 1; commit <= 20; ++commit) {
    must(syncs.sync_all());
    CHECK(disk.met_count() == commit);
    CHECK(disk.ended_count() == 5 * commit);  // none is still under way
  }
}

TEST_CASE("the error of the lowest device that failed is reported, once") {
  const ScratchFolder scratch;
  const std::vector<io::File> files = make_files(scratch, 4);
  const auto log = std::make_shared<testing::CallLog>();
  bool failing = true;
  testing::ScriptedDisk disk(log, [&](int, const std::string& call) {
    return failing && (call == "sync file1" || call == "sync file3");
  });
  ParallelSync syncs(disk, files);
  const Status failed = syncs.sync_all();
  REQUIRE(!failed.ok());
  CHECK_THAT(failed.error().message(), Catch::Contains("file1"));
  CHECK(log->calls.size() == 4);  // the others were synced all the same
  failing = false;
  CHECK(syncs.sync_all().ok());
}

}  // namespace
}  // namespace sluice::state::detail
