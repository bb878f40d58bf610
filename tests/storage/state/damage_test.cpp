// Every way to change or cut the files of a small state: it is refused by name, or what is opened
// is a commit that was made.

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "storage/state/detail/commit_codec.h"
#include "tests/storage/state/state_fixture.h"

namespace sluice::state {
namespace {

using namespace testing;
namespace fs = std::filesystem;

// Two devices, one subgroup each, one page an array: the smallest state with all parts.
const Geometry kDamagedGeometry{
    .parameter_count = 10, .subgroup_elements = 5, .variable_count = 2, .device_count = 2};

class DamageTest {
 public:
  DamageTest() {
    auto store = make_state(options_, kDamagedGeometry, 2);
    older_ = store->committed();
    must(store->commit(write_step(*store, 3)));
    newer_ = store->committed();
  }

 protected:
  std::string log() const { return options_.directory + "/commit.slc"; }
  std::string device(int index) const {
    return fmt::format("{}/dev{}/state.slc", options_.directory, index);
  }
  std::int64_t area_offset(std::uint64_t sequence) const {
    return 4096 + static_cast<std::int64_t>(sequence % 2) * detail::area_bytes(kDamagedGeometry);
  }

  static void flip(const std::string& path, std::int64_t offset, unsigned mask) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(offset);
    const int byte = file.get();
    file.seekp(offset);
    file.put(static_cast<char>(byte ^ static_cast<int>(mask)));
    REQUIRE(file.good());
  }

  // "refused", "newer" or "older"; anything else fails the test.
  std::string outcome(const std::string& damaged_path) const {
    const auto opened = StateStore::open_read_only(options_);
    if (!opened.ok()) {
      const bool has_right_code = opened.error().code() == ErrorCode::corrupt ||
                                  opened.error().code() == ErrorCode::unsupported;
      REQUIRE(has_right_code);
      REQUIRE_THAT(opened.error().message(),
                   Catch::StartsWith(damaged_path) && Catch::Contains("offset"));
      return "refused";
    }
    if ((*opened)->committed() == newer_) return "newer";
    REQUIRE((*opened)->committed() == older_);
    return "older";
  }

  ScratchFolder scratch_;
  StateStore::Options options_ = quick_options(scratch_.path("state"));
  CommitRecord older_;  // sequence 3
  CommitRecord newer_;  // sequence 4
};

TEST_CASE_METHOD(DamageTest, "a changed byte in any header page is refused") {
  for (const std::string& path : {log(), device(0), device(1)}) {
    for (std::int64_t offset = 0; offset < 4096; ++offset) {
      const unsigned mask = 1u << offset % 8;
      flip(path, offset, mask);
      REQUIRE(outcome(path) == "refused");
      flip(path, offset, mask);
    }
  }
  CHECK(outcome("") == "newer");
}

TEST_CASE_METHOD(DamageTest, "a changed bit in one record leaves the other") {
  const std::int64_t record_bytes = detail::record_bytes(kDamagedGeometry);
  for (std::int64_t bit = 0; bit < record_bytes * 8; ++bit) {
    const unsigned mask = 1u << bit % 8;
    flip(log(), area_offset(4) + bit / 8, mask);
    REQUIRE(outcome(log()) == "older");
    flip(log(), area_offset(4) + bit / 8, mask);
    flip(log(), area_offset(3) + bit / 8, mask);
    REQUIRE(outcome(log()) == "newer");
    flip(log(), area_offset(3) + bit / 8, mask);
  }
}

TEST_CASE_METHOD(DamageTest, "both records changed is refused with both offsets") {
  for (std::int64_t offset = 0; offset < detail::record_bytes(kDamagedGeometry); ++offset) {
    flip(log(), area_offset(3) + offset, 0x10);
    flip(log(), area_offset(4) + offset, 0x10);
    REQUIRE(outcome(log()) == "refused");
    flip(log(), area_offset(3) + offset, 0x10);
    flip(log(), area_offset(4) + offset, 0x10);
  }
  flip(log(), area_offset(3), 1);
  flip(log(), area_offset(4), 1);
  const auto opened = StateStore::open(options_);
  CHECK_THAT(opened.error().message(), Catch::Contains("offset 4096 is damaged") &&
                                           Catch::Contains("offset 8192 is damaged"));
}

TEST_CASE_METHOD(DamageTest, "a log cut at any length is refused") {
  for (auto length = static_cast<std::int64_t>(fs::file_size(log())) - 1; length >= 0; --length) {
    fs::resize_file(log(), static_cast<std::uintmax_t>(length));
    REQUIRE(outcome(log()) == "refused");
  }
}

TEST_CASE_METHOD(DamageTest, "a log that was added to is refused") {
  fs::resize_file(log(), fs::file_size(log()) + 1);
  CHECK(outcome(log()) == "refused");
}

TEST_CASE_METHOD(DamageTest,
                 "a device file cut at any length is refused unless only free slots go") {
  const SlotId slot = newer_.subgroups[1].slot;
  const std::int64_t used_end = 4096 + (slot.index + 1) * kDamagedGeometry.slot_bytes();
  const auto size_bytes = static_cast<std::int64_t>(fs::file_size(device(1)));
  for (std::int64_t length = size_bytes - 1; length >= 0; --length) {
    fs::resize_file(device(1), static_cast<std::uintmax_t>(length));
    REQUIRE(outcome(device(1)) == (length < used_end ? "refused" : "newer"));
  }
}

TEST_CASE_METHOD(DamageTest, "free slots that were cut off are reserved again") {
  auto store = must(StateStore::open(options_));
  must(store->commit(write_step(*store, 4)));  // now every subgroup lies in slot 0 again
  store.reset();
  const std::uintmax_t whole = fs::file_size(device(0));
  fs::resize_file(device(0), whole - 4096);
  store = must(StateStore::open(options_));
  CHECK(fs::file_size(device(0)) == whole);
  CHECK(digest_of(*store) == expected_digest(kDamagedGeometry, 4));
}

// Slots that cannot be, in a record with everything else right: only another program writes such.
TEST_CASE_METHOD(DamageTest, "a record with senseless slots is refused") {
  const auto refusal_with = [this](auto change) {
    std::vector<std::byte> page(4096);
    {
      std::ifstream file(log(), std::ios::binary);
      file.read(reinterpret_cast<char*>(page.data()), 4096);
    }
    const detail::FileHeader header = must(detail::decode_header(page, true, log()));
    CommitRecord record = newer_;
    change(record);
    detail::encode_record(header, 4, record, page);
    std::fstream file(log(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(area_offset(4));
    file.write(reinterpret_cast<const char*>(page.data()), 4096);
    file.close();
    const auto opened = StateStore::open_read_only(options_);
    REQUIRE(!opened.ok());
    REQUIRE(opened.error().code() == ErrorCode::corrupt);
    return opened.error().message();
  };
  CHECK_THAT(refusal_with([](CommitRecord& r) { r.subgroups[1].slot.device = DeviceId{2}; }),
             Catch::Contains("subgroup 1 into slot") && Catch::Contains("does not have"));
  CHECK_THAT(refusal_with([](CommitRecord& r) { r.subgroups[1].slot.index = -1; }),
             Catch::Contains("cannot be"));
  CHECK_THAT(refusal_with([](CommitRecord& r) { r.subgroups[0].slot.index = 1 << 20; }),
             Catch::Contains(device(0)) && Catch::Contains("cut short"));
  CHECK_THAT(refusal_with([](CommitRecord& r) { r.subgroups[1].slot = r.subgroups[0].slot; }),
             Catch::Contains("where subgroup 0 lies"));
}

}  // namespace
}  // namespace sluice::state
