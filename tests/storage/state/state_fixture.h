#pragma once
// What the tests of the state folder share: a scratch folder, states with known contents, and a
// Disk that stops or fails at a chosen call.

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/state_codec.h"
#include "storage/state/detail/disk.h"
#include "storage/state/state_store.h"

namespace sluice::state::testing {

class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Buffered and without fdatasync: what most tests are about does not need either.
StateStore::Options quick_options(const std::string& directory);

StateIdentity test_identity(std::int32_t variable_count = 3);
StateIdentity test_identity(const StoredArrays& stored);

// The test's optimizer state after `step` steps: a function of variable and flat index.
std::uint32_t element_bits(std::int64_t step, std::int32_t variable, std::int64_t flat_index);
// That of a split state: finite, some of it rounded down from a tie by its bf16 copy, and of the
// last variable never negative.
float split_value(const Geometry& geometry, std::int64_t step, std::int32_t variable,
                  std::int64_t flat_index);

// The stored arrays of some elements, in memory of their own.
class ArraysInMemory {
 public:
  ArraysInMemory(const StoredArrays& stored, std::int64_t element_count);
  const StoredSpan& span() const { return span_; }
  std::span<const std::byte> bytes(std::int32_t array) const {
    return bytes_[static_cast<std::size_t>(array)];
  }

 private:
  std::array<std::vector<std::byte>, kMaxStoredArrays> bytes_;
  StoredSpan span_;
};
// A subgroup of the test's split state after `step` steps, encoded.
ArraysInMemory encoded_subgroup(const Geometry& geometry, SubgroupId subgroup, std::int64_t step);

// Writes one subgroup's arrays of `step` into `slot`, and its padding full of ones.
SubgroupVersion write_version(StateStore& store, SubgroupId subgroup, SlotId slot,
                              std::int64_t step);

// Takes next versions of every subgroup on the device that `device_of` names (null: where it lies),
// writes them and returns the record to commit. Step 0 is written into the current slots.
CommitRecord write_step(StateStore& store, std::int64_t step,
                        const std::function<DeviceId(SubgroupId)>& device_of = nullptr);

// A state whose newest commit is `last_step` (and its first is 0).
std::unique_ptr<StateStore> make_state(const StateStore::Options& options, const Geometry& geometry,
                                       std::int64_t last_step);

// XXH3-128 of what digest_state should find after `step`, computed from element_bits alone, or from
// split_value, where nothing may be lost.
std::string expected_digest(const Geometry& geometry, std::int64_t step);
std::string digest_of(StateStore& store);

// What a Disk was asked, as "sync commit.slc", with the path below `directory`.
struct CallLog {
  std::mutex mutex;
  std::vector<std::string> calls;
};

// Makes no real fdatasync. Fails the calls that `fails` picks (by their number, from 0, and
// description); `on_failing` may do part of a write first.
class ScriptedDisk final : public detail::Disk {
 public:
  using Picker = std::function<bool(int number, const std::string& call)>;
  using PartialWork = std::function<void(const detail::DiskCall&)>;
  ScriptedDisk(std::shared_ptr<CallLog> log, Picker fails, PartialWork on_failing = nullptr)
      : Disk(Durability::never),
        log_(std::move(log)),
        fails_(std::move(fails)),
        on_failing_(std::move(on_failing)) {}

 protected:
  Status before(const detail::DiskCall& call) override;

 private:
  std::shared_ptr<CallLog> log_;
  Picker fails_;
  PartialWork on_failing_;
};

// The machine loses power at call `stop_at`: neither that call nor any after it happens.
ScriptedDisk::Picker stops_at(int stop_at);

// Fails the test with the message of the error.
template <typename T>
T must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}
inline void must(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.error().message());
}

}  // namespace sluice::state::testing
