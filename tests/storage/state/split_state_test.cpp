// State that is stored in split arrays (base/state_format.h), through the whole folder: what was
// written is read back, whatever is asked for; damage is named by the stored array; what is kept,
// copied or replaced is the same state.

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "storage/state/replacement.h"
#include "storage/state/return_to.h"
#include "storage/state/snapshot.h"
#include "storage/state/state_reader.h"
#include "tests/storage/state/state_fixture.h"

namespace sluice::state {
namespace {

using namespace testing;
namespace fs = std::filesystem;
using enum ArrayCode;

struct Stored {
  const char* name;
  StoredArrays arrays;
};
const Stored kStored[] = {
    {"exact, tie in a sign", {4, {high, low16, ArrayCode::fp32, fp32_with_ties}}},
    {"exact, ties by the group", {3, {high, low16_with_ties, ArrayCode::fp32}}},
    {"compact, 16 bits", {4, {high, low16, mean8, square8}}},
    {"compact, 8 bits", {4, {high, low8, mean8, square8}}},
    {"compact sum", {3, {high, low8, bf16}}},
};
const StoredArrays kExact = kStored[0].arrays;
const StoredArrays kCompact = kStored[2].arrays;

Geometry geometry_of(const StoredArrays& stored, std::int64_t parameter_count,
                     std::int64_t subgroup_elements, std::int32_t device_count = 2) {
  return {parameter_count, subgroup_elements, stored.count, device_count, stored.codes};
}
// The last subgroup is shorter, and so is its last group.
Geometry small_geometry(const StoredArrays& stored) { return geometry_of(stored, 2500, 1024); }

// The whole state after `step` steps, decoded from what encode() made of each subgroup.
std::vector<float> decoded_array(const Geometry& geometry, std::int32_t variable,
                                 std::int64_t step) {
  std::vector<float> all(static_cast<std::size_t>(geometry.parameter_count));
  for (std::int32_t s = 0; s < geometry.subgroup_count(); ++s) {
    const SubgroupId subgroup{s};
    const ArraysInMemory arrays = encoded_subgroup(geometry, subgroup, step);
    decode(arrays.span(), variable, 0,
           std::span(all).subspan(static_cast<std::size_t>(geometry.first_element(subgroup)),
                                  static_cast<std::size_t>(geometry.element_count(subgroup))));
  }
  return all;
}

std::vector<float> read_array(StateStore& store, std::int32_t variable, std::int64_t first,
                              std::int64_t count) {
  StateReader reader = must(StateReader::make(store));
  std::vector<float> values;
  must(reader.read(variable, first, count, [&](std::span<const float> piece) {
    values.insert(values.end(), piece.begin(), piece.end());
    return ok_status();
  }));
  return values;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

void flip(StateStore& store, SubgroupId subgroup, std::int32_t variable, std::int64_t at_byte) {
  const SlotId slot = store.layout().current(subgroup);
  const std::int64_t offset_bytes =
      store.file_offset(store.layout().extent(slot, variable, 1)) + at_byte;
  std::byte byte{};
  must(store.file(slot.device).read_exactly(offset_bytes, {&byte, 1}));
  byte ^= std::byte{4};
  must(store.file(slot.device).write_exactly(offset_bytes, {&byte, 1}));
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("any elements of a split state are read as their arrays decode") {
  for (const auto& [name, arrays] : kStored) {
    CAPTURE(name);
    const ScratchFolder scratch;
    const Geometry geometry = geometry_of(arrays, 3 * 9600 + 3 * 64 + 7, 9600);
    const auto store = make_state(quick_options(scratch.path("state")), geometry, 1);
    std::mt19937 random(1);
    for (std::int32_t v = 0; v < arrays.decoded_count(); ++v) {
      const std::vector<float> all = decoded_array(geometry, v, 1);
      const auto check = [&](std::int64_t first, std::int64_t count) {
        const auto wanted = std::span(all).subspan(static_cast<std::size_t>(first),
                                                   static_cast<std::size_t>(count));
        REQUIRE(same_bits(read_array(*store, v, first, count), wanted));
      };
      const std::int64_t end = geometry.parameter_count;
      check(0, end);
      for (const std::int64_t at :
           {0L, 1L, 63L, 64L, 4095L, 4096L, 9599L, 9600L, 13695L, end - 1}) {
        check(at, 1);
        check(at, std::min<std::int64_t>(4100, end - at));
      }
      for (int i = 0; i < 20; ++i) {
        const auto first = static_cast<std::int64_t>(random() % end);
        check(first, 1 + static_cast<std::int64_t>(random() % (end - first)));
      }
    }
  }
}

TEST_CASE("elements of more than one buffer are read in order, with direct transfers") {
  const ScratchFolder scratch;
  const Geometry geometry = geometry_of(kCompact, 300'000, 280'000);  // decoded 262,144 at a time
  const auto store = make_state({.directory = scratch.path("state")}, geometry, 0);
  for (const std::int32_t v : {0, 2}) {
    const std::vector<float> all = decoded_array(geometry, v, 0);
    for (const std::int64_t first : {0L, 17'777L, 262'143L, 279'999L}) {
      const auto wanted = std::span(all).subspan(static_cast<std::size_t>(first));
      CHECK(same_bits(read_array(*store, v, first, std::ssize(wanted)), wanted));
    }
  }
}

TEST_CASE("an error of whoever takes the elements ends the read") {
  const ScratchFolder scratch;
  const auto store = make_state(quick_options(scratch.path("state")), small_geometry(kCompact), 0);
  StateReader reader = must(StateReader::make(*store));
  int pieces = 0;
  const Status status = reader.read(0, 0, 2500, [&](std::span<const float>) -> Status {
    ++pieces;
    return make_error(ErrorCode::io, "full");
  });
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message() == "full");
  CHECK(pieces == 1);
}

TEST_CASE("the digest of an exact state is that of its values in fp32, however it is cut") {
  for (const Stored& exact : {kStored[0], kStored[1]}) {
    CAPTURE(exact.name);
    for (const std::int64_t subgroup_elements : {2500, 1024, 64}) {
      const ScratchFolder scratch;
      const Geometry geometry = geometry_of(exact.arrays, 2500, subgroup_elements);
      CHECK(digest_of(*make_state(quick_options(scratch.path("state")), geometry, 1)) ==
            expected_digest(geometry, 1));
    }
  }
}

TEST_CASE("the digest of a compact state does not depend on how it is cut and spread") {
  std::string first;
  for (const std::int64_t subgroup_elements : {2500, 1024, 704}) {
    for (const std::int32_t device_count : {1, 3}) {
      const ScratchFolder scratch;
      const Geometry geometry = geometry_of(kCompact, 2500, subgroup_elements, device_count);
      const std::string digest =
          digest_of(*make_state(quick_options(scratch.path("state")), geometry, 1));
      if (first.empty()) first = digest;
      CHECK(digest == first);
    }
  }
}

TEST_CASE("a changed byte in any stored array is found, and named by what is stored there") {
  for (const auto& [name, arrays] : kStored) {
    CAPTURE(name);
    const ScratchFolder scratch;
    const Geometry geometry = small_geometry(arrays);
    const auto store = make_state(quick_options(scratch.path("state")), geometry, 2);
    const std::string digest = digest_of(*store);
    const std::vector<std::string> names = test_identity(arrays).variable_names;
    for (const SubgroupId subgroup : {SubgroupId{0}, SubgroupId{2}}) {
      const std::int64_t count = geometry.element_count(subgroup);
      for (std::int32_t v = 0; v < arrays.count; ++v) {
        const std::int64_t size_bytes = geometry.array_bytes(v, count);
        const SlotId slot = store->layout().current(subgroup);
        const std::int64_t offset_bytes =
            store->file_offset(store->layout().extent(slot, v, count));
        for (const std::int64_t at_byte : {std::int64_t{0}, size_bytes - 1}) {
          flip(*store, subgroup, v, at_byte);
          const Result<StateDigest> found = digest_state(*store, nullptr, nullptr);
          REQUIRE_FALSE(found.ok());
          CHECK(found.error().code() == ErrorCode::corrupt);
          CHECK_THAT(found.error().message(),
                     Catch::StartsWith(fmt::format("{}: {} of subgroup {} ({} bytes at offset {})",
                                                   store->file(slot.device).path(),
                                                   names[static_cast<std::size_t>(v)],
                                                   index_of(subgroup), size_bytes, offset_bytes)));
          flip(*store, subgroup, v, at_byte);
        }
        if (size_bytes % kPageBytes != 0) flip(*store, subgroup, v, size_bytes);  // padding
        CHECK(digest_of(*store) == digest);
      }
    }
  }
}

TEST_CASE("all damage to a split state is listed, and the progress ends at its bytes") {
  const ScratchFolder scratch;
  const Geometry geometry = small_geometry(kCompact);
  const auto store = make_state(quick_options(scratch.path("state")), geometry, 1);
  for (std::int32_t v = 0; v < 4; ++v) flip(*store, SubgroupId{1}, v, 10 + v);
  VerifyProgress last;
  std::vector<std::string> damages;
  const auto note = [](const VerifyProgress& now, void* context) {
    *static_cast<VerifyProgress*>(context) = now;
  };
  must(digest_state(*store, note, &last, &damages));
  REQUIRE(damages.size() == 4);
  CHECK_THAT(damages[0], Catch::Contains("parameters of subgroup 1"));
  CHECK_THAT(damages[1], Catch::Contains("remainder of subgroup 1"));
  CHECK_THAT(damages[2], Catch::Contains("exp_avg of subgroup 1"));
  CHECK_THAT(damages[3], Catch::Contains("exp_avg_sq of subgroup 1"));
  CHECK(last.done_bytes == geometry.state_bytes());
  CHECK(last.total_bytes == geometry.state_bytes());
}

TEST_CASE("a reader's arrays have the names of fp32") {
  using Names = std::vector<std::string>;
  CHECK(decoded_names(test_identity(kCompact), kCompact) ==
        Names{"master_weights", "exp_avg", "exp_avg_sq"});
  const StoredArrays plain{3, {}};
  CHECK(decoded_names(test_identity(plain), plain) ==
        Names{"master_weights", "exp_avg", "exp_avg_sq"});
}

TEST_CASE("a split state opens as it was made, and is told from one of another format") {
  for (const auto& [name, arrays] : kStored) {
    CAPTURE(name);
    const ScratchFolder scratch;
    const StateStore::Options options = quick_options(scratch.path("state"));
    const Geometry geometry = small_geometry(arrays);
    const std::string digest = digest_of(*make_state(options, geometry, 4));
    const auto store = must(StateStore::open(options));
    CHECK(store->layout().geometry() == geometry);
    CHECK(store->identity().variable_names == test_identity(arrays).variable_names);
    CHECK(digest_of(*store) == digest);
    must(store->commit(write_step(*store, 5)));
    CHECK(digest_of(*store) ==
          digest_of(*make_state(quick_options(scratch.path("again")), geometry, 5)));
    CHECK_FALSE(check_geometry(small_geometry(kStored[1].arrays), small_geometry(kCompact),
                               options.directory)
                    .ok());
  }
}

TEST_CASE("subgroups that are not whole groups are refused, one for all elements is not") {
  const ScratchFolder scratch;
  const auto made = [&](const Geometry& geometry) -> Status {
    const auto store =
        StateStore::create(quick_options(scratch.path("state")), test_identity(geometry.stored()),
                           geometry, make_device_map(geometry.subgroup_count(), {1, 1}));
    return store.ok() ? ok_status() : Status(store.error());
  };
  const Status refused = made(geometry_of(kCompact, 2500, 1000));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code() == ErrorCode::config);
  CHECK_THAT(refused.error().message(),
             Catch::Contains("subgroup_elements is 1000") && Catch::Contains("groups of 64"));
  CHECK(made(geometry_of(kCompact, 2500, 2500)).ok());
}

TEST_CASE("a snapshot of a split state is that state") {
  const ScratchFolder scratch;
  const Geometry geometry = small_geometry(kCompact);
  const auto store = make_state(quick_options(scratch.path("state")), geometry, 3);
  const StateStore::Options kept = quick_options(scratch.path("kept"));
  CHECK(must(save_snapshot(*store, kept)).step == 3);
  const auto copy = must(StateStore::open(kept));
  CHECK(copy->layout().geometry() == geometry);
  CHECK(digest_of(*copy) == digest_of(*store));
  for (std::int32_t v = 0; v < 3; ++v) {
    CHECK(same_bits(read_array(*copy, v, 0, 2500), decoded_array(geometry, v, 3)));
  }
  must(copy->commit(write_step(*copy, 4)));
  CHECK(same_bits(read_array(*copy, 1, 0, 2500), decoded_array(geometry, 1, 4)));
  flip(*store, SubgroupId{1}, 1, 100);
  const auto refused = save_snapshot(*store, quick_options(scratch.path("damaged")));
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error().message(), Catch::Contains("remainder of subgroup 1"));
  CHECK_FALSE(fs::exists(scratch.path("damaged")));
}

TEST_CASE("a split state goes back to a commit that was kept") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  const Geometry geometry = small_geometry(kCompact);
  CommitId kept;
  std::string digest;
  {
    const auto store = make_state(options, geometry, 2);
    digest = digest_of(*store);
    kept = must(store->keep("checkpoint"));
    for (std::int64_t step = 3; step <= 7; ++step) must(store->commit(write_step(*store, step)));
    CHECK(digest_of(*store) != digest);
  }
  must(return_to_kept(options, kept));
  const auto store = must(StateStore::open(options));
  CHECK(store->committed().position.step == 2);
  CHECK(digest_of(*store) == digest);
  must(store->release(kept));
  must(store->commit(write_step(*store, 3)));
  CHECK(same_bits(read_array(*store, 2, 0, 2500), decoded_array(geometry, 2, 3)));
}

// A state in fp32 with a residual beside it, whose replacement is the same steps in another format.
class ConversionTest {
 public:
  ConversionTest() {
    make_state(options_, geometry_of({3, {}}, 2500, 1024), 1).reset();
    std::ofstream(residual()) << "what was not sent";
    must(prepare_replacement(options_, 2));
    make_state(replacement_, small_geometry(kExact), 2).reset();
  }

 protected:
  std::string residual() const { return options_.directory + "/residual.slc"; }
  void check_replaced() const {
    CHECK_FALSE(fs::exists(replacement_of(options_.directory)));
    const auto store = must(StateStore::open(options_));
    CHECK(store->layout().geometry() == small_geometry(kExact));
    CHECK(digest_of(*store) == expected_digest(small_geometry(kExact), 2));
  }

  ScratchFolder scratch_;
  StateStore::Options options_ = quick_options(scratch_.path("state"));
  StateStore::Options replacement_ = quick_options(replacement_of(options_.directory));
};

TEST_CASE_METHOD(ConversionTest, "the residual goes where a replacement of other steps comes") {
  must(put_in_place(options_));
  check_replaced();
  CHECK_FALSE(fs::exists(residual()));
}

TEST_CASE_METHOD(ConversionTest, "the residual that is carried stays, however often it is tried") {
  must(carry_residual(options_, replacement_));
  CHECK(text_of(residual()) == "what was not sent");
  const fs::path log = replacement_of(options_.directory) + "/commit.slc";
  SECTION("at once") { CHECK(fs::exists(log)); }
  SECTION("after a crash between two files") {
    const std::string file = options_.directory + "/dev1/state.slc";  // nothing goes to a folder
    fs::remove(file);
    fs::create_directory(file);
    REQUIRE_FALSE(put_in_place(options_).ok());
    CHECK(text_of(residual()) == "what was not sent");
    fs::remove(file);
  }
  SECTION("after a crash behind the last file") {
    for (const char* device : {"/dev0", "/dev1"}) {
      const std::string file = options_.directory + device + "/state.slc";
      fs::rename(options_.directory + device + "/replacement/state.slc", file);
    }
    fs::rename(log, options_.directory + "/commit.slc");
    CHECK_FALSE(fs::exists(log));
  }
  for (int again = 0; again < 2; ++again) {
    must(put_in_place(options_));
    check_replaced();
    CHECK(text_of(residual()) == "what was not sent");
  }
}

TEST_CASE_METHOD(ConversionTest, "a replacement that is dropped leaves state and residual") {
  must(carry_residual(options_, replacement_));
  must(drop_replacement(options_));
  must(put_in_place(options_));
  CHECK(text_of(residual()) == "what was not sent");
  const Geometry geometry = geometry_of({3, {}}, 2500, 1024);
  CHECK(digest_of(*must(StateStore::open(options_))) == expected_digest(geometry, 1));
}

TEST_CASE("without a residual there is none to carry") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  make_state(options, small_geometry(kCompact), 1).reset();
  must(prepare_replacement(options, 2));
  const StateStore::Options replacement = quick_options(replacement_of(options.directory));
  must(carry_residual(options, replacement));
  CHECK_FALSE(fs::exists(replacement.directory + "/residual.slc"));
}

}  // namespace
}  // namespace sluice::state
