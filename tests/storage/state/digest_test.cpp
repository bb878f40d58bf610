#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/storage/state/state_fixture.h"

namespace sluice::state {
namespace {

using namespace testing;

TEST_CASE("the digest does not depend on how the state is cut and spread") {
  const std::int64_t parameter_count = 5000;
  std::string first;
  for (const std::int64_t subgroup_elements : {5000, 4999, 1024, 777}) {
    for (const std::int32_t device_count : {1, 3}) {
      const ScratchFolder scratch;
      const Geometry geometry{.parameter_count = parameter_count,
                              .subgroup_elements = subgroup_elements,
                              .variable_count = 3,
                              .device_count = device_count};
      const std::string digest =
          digest_of(*make_state(quick_options(scratch.path("state")), geometry, 1));
      if (first.empty()) first = digest;
      CHECK(digest == first);
      CHECK(digest == expected_digest(geometry, 1));
    }
  }
  CHECK(first.size() == 32);
}

TEST_CASE("arrays of more than one chunk are read whole, with direct transfers") {
  const ScratchFolder scratch;
  const Geometry geometry{// 10 MB an array; the chunk is 8 MiB
                          .parameter_count = 2'500'001,
                          .subgroup_elements = 2'500'001,
                          .variable_count = 1};
  const auto store = make_state({.directory = scratch.path("state")}, geometry, 0);
  std::vector<std::int64_t> progress;
  const auto note = [](const VerifyProgress& now, void* context) {
    static_cast<std::vector<std::int64_t>*>(context)->push_back(now.done_bytes);
    CHECK(now.total_bytes == 10'000'004);
  };
  CHECK(must(digest_state(*store, note, &progress)).digest == expected_digest(geometry, 0));
  CHECK(progress == std::vector<std::int64_t>{8 << 20, 10'000'004});
}

TEST_CASE("one changed bit in any array is found and named, and padding does not count") {
  const ScratchFolder scratch;
  const Geometry geometry{
      .parameter_count = 2500, .subgroup_elements = 1100, .variable_count = 3, .device_count = 2};
  const auto store = make_state(quick_options(scratch.path("state")), geometry, 2);
  const std::string digest = digest_of(*store);

  const auto flip = [&](SubgroupId subgroup, std::int32_t variable, std::int64_t at_byte) {
    const SlotId slot = store->layout().current(subgroup);
    const Extent extent = store->layout().extent(slot, variable, 1);
    const io::File& file = store->file(slot.device);
    std::byte byte{};
    must(file.read_exactly(store->file_offset(extent) + at_byte, {&byte, 1}));
    byte ^= std::byte{4};
    must(file.write_exactly(store->file_offset(extent) + at_byte, {&byte, 1}));
    return fmt::format(
        "{}: {} of subgroup {} ({} bytes at offset {}) was changed after it was "
        "committed",
        file.path(), store->identity().variable_names[variable], index_of(subgroup),
        geometry.element_count(subgroup) * 4, store->file_offset(extent));
  };
  for (std::int32_t s = 0; s < geometry.subgroup_count(); ++s) {
    const std::int64_t array_bytes = geometry.element_count(SubgroupId{s}) * 4;
    for (std::int32_t v = 0; v < geometry.variable_count; ++v) {
      for (const std::int64_t at_byte : {std::int64_t{0}, array_bytes - 1}) {
        const std::string expected = flip(SubgroupId{s}, v, at_byte);
        const Result<StateDigest> found = digest_state(*store, nullptr, nullptr);
        REQUIRE(!found.ok());
        CHECK(found.error().code() == ErrorCode::corrupt);
        CHECK_THAT(found.error().message(), Catch::StartsWith(expected));
        flip(SubgroupId{s}, v, at_byte);
      }
      flip(SubgroupId{s}, v, array_bytes);
      CHECK(digest_of(*store) == digest);
    }
  }
}

TEST_CASE("what cannot be read is an error and no damage") {
  const ScratchFolder scratch;
  const auto store = make_state(quick_options(scratch.path("state")),
                                {.parameter_count = 5000, .subgroup_elements = 5000}, 1);
  // The file is now a folder, of which nothing can be read.
  const int folder = open(scratch.path("state").c_str(), O_RDONLY | O_DIRECTORY);
  REQUIRE(dup2(folder, store->file(DeviceId{0}).fd()) >= 0);
  close(folder);
  std::vector<std::string> damages;
  const Result<StateDigest> found = digest_state(*store, nullptr, nullptr, &damages);
  REQUIRE(!found.ok());
  CHECK(found.error().code() != ErrorCode::corrupt);
  CHECK(damages.empty());
}

}  // namespace
}  // namespace sluice::state
