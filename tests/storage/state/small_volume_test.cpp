// File systems that are too small or read-only: a tmpfs of our own, which needs the right to mount.

#include <sys/mount.h>
#include <sys/statvfs.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include "tests/skip.h"
#include "tests/storage/state/state_fixture.h"

namespace sluice::state {
namespace {

using namespace testing;
namespace fs = std::filesystem;

class SmallVolume {
 public:
  static std::optional<SmallVolume> mount(const std::string& path) {
    fs::create_directories(path);
    if (::mount("tmpfs", path.c_str(), "tmpfs", 0, "size=1m") == 0) return SmallVolume(path);
    skip_test(std::string("cannot mount a tmpfs: ") + std::strerror(errno));
    return std::nullopt;
  }
  SmallVolume(SmallVolume&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  SmallVolume& operator=(SmallVolume&&) = delete;
  ~SmallVolume() {
    if (!path_.empty()) umount2(path_.c_str(), MNT_DETACH);
  }
  std::int64_t free_bytes() const {
    struct statvfs volume = {};
    REQUIRE(statvfs(path_.c_str(), &volume) == 0);
    return static_cast<std::int64_t>(volume.f_bavail * volume.f_frsize);
  }
  void make_read_only() const {
    REQUIRE(::mount(nullptr, path_.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0);
  }

 private:
  explicit SmallVolume(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

Geometry geometry_of(std::int64_t subgroups, std::int32_t device_count) {
  return {.parameter_count = 1024 * subgroups,  // a page an array
          .subgroup_elements = 1024,
          .variable_count = 3,
          .device_count = device_count};
}

TEST_CASE("a drive that is too small is known when the state is made, and left as it was") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  const auto volume = SmallVolume::mount(options.directory + "/dev1");
  if (!volume) return;
  const std::int64_t free_bytes = volume->free_bytes();
  const Geometry too_big = geometry_of(100, 2);  // 1.2 MB a device
  const auto refused =
      StateStore::create(options, test_identity(), too_big, make_device_map(100, {1, 1}));
  REQUIRE(!refused.ok());
  CHECK(refused.error().code() == ErrorCode::no_space);
  CHECK_THAT(refused.error().message(),
             Catch::Contains("dev1/state.slc") && Catch::Contains("free"));
  CHECK(volume->free_bytes() == free_bytes);
  CHECK_FALSE(StateStore::exists(options.directory));
  const Geometry fits = geometry_of(60, 2);
  CHECK(digest_of(*make_state(options, fits, 2)) == expected_digest(fits, 2));
}

TEST_CASE("a move to a full drive is refused before anything is written, and training goes on") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  const auto volume = SmallVolume::mount(options.directory + "/dev1");
  if (!volume) return;
  const Geometry geometry = geometry_of(80, 2);  // 0.98 MB a device of 1.05
  auto store = make_state(options, geometry, 0);
  for (std::int32_t s = 0; s < geometry.subgroup_count(); ++s)
    store->layout().take_next(SubgroupId{s}, DeviceId{1});
  const Status refused = store->reserve();
  REQUIRE(!refused.ok());
  CHECK(refused.error().code() == ErrorCode::no_space);
  store->layout().abandon();
  must(store->commit(write_step(*store, 1)));
  CHECK(digest_of(*store) == expected_digest(geometry, 1));
}

TEST_CASE("room for a move that is refused leaves the files as they were") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  const auto volume = SmallVolume::mount(options.directory + "/dev1");
  if (!volume) return;
  const Geometry geometry = geometry_of(80, 2);  // 0.98 MB a device of 1.05
  auto store = make_state(options, geometry, 0);
  const std::int64_t before_bytes = must(store->file(DeviceId{1}).size_bytes());
  const Status refused = store->reserve(DeviceMap(80, DeviceId{1}));
  REQUIRE(!refused.ok());
  CHECK(refused.error().code() == ErrorCode::no_space);
  CHECK_THAT(refused.error().message(),
             Catch::Contains("dev1/state.slc") && Catch::Contains("free"));
  CHECK(must(store->file(DeviceId{1}).size_bytes()) == before_bytes);
  must(store->reserve(DeviceMap(80, DeviceId{0})));
  must(store->commit(write_step(*store, 1, [](SubgroupId) { return DeviceId{0}; })));
  must(store->fit());
  CHECK(digest_of(*store) == expected_digest(geometry, 1));
}

TEST_CASE("a state on a read-only file system can be read and not resumed") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  const auto volume = SmallVolume::mount(options.directory);
  if (!volume) return;
  const Geometry geometry = geometry_of(4, 1);
  make_state(options, geometry, 1).reset();
  volume->make_read_only();
  const auto store = must(StateStore::open_read_only(options));
  CHECK(digest_of(*store) == expected_digest(geometry, 1));
  const auto refused = StateStore::open(options);
  REQUIRE(!refused.ok());
  CHECK_THAT(refused.error().message(), Catch::Contains(options.directory + "/lock") &&
                                            Catch::Contains("Read-only file system"));
}

}  // namespace
}  // namespace sluice::state
