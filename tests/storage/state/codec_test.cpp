// Header pages and commit records as bytes: they come back as they were, and nothing that was
// changed is taken for one. Pure memory, so every bit can be tried.

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "storage/state/detail/bytes.h"
#include "storage/state/detail/commit_codec.h"
#include "storage/state/detail/file_header.h"

namespace sluice::state::detail {
namespace {

FileHeader sample_header(DeviceId device) {
  FileHeader header{.device = device,
                    .state_id = {},
                    .identity = {.model_name = "gpt2-124m",
                                 .model_fingerprint = ~0ull,
                                 .optimizer = "adamw",
                                 .variable_names = {"master_weights", "exp_avg", "exp_avg_sq"}},
                    .geometry = {.parameter_count = 1000,
                                 .subgroup_elements = 300,
                                 .variable_count = 3,
                                 .device_count = 2}};
  for (std::size_t i = 0; i < header.state_id.size(); ++i)
    header.state_id[i] = static_cast<std::byte>(i * 17 + 1);
  return header;
}

// Where the state is compact.
FileHeader split_header(DeviceId device) {
  using enum ArrayCode;
  FileHeader header = sample_header(device);
  header.identity.variable_names = {"parameters", "remainder", "exp_avg", "exp_avg_sq"};
  header.geometry.subgroup_elements = 320;
  header.geometry.variable_count = 4;
  header.geometry.codes = {high, low8, mean8, square8};
  return header;
}

// The message of the refusal of a page that was changed and has its checksum right.
template <typename Change>
std::string refusal_after(const FileHeader& header, const Change& change) {
  std::vector<std::byte> page(kHeaderBytes);
  encode_header(header, page);
  change(std::span<std::byte>(page));
  store(page, 4088, checksum(std::span<const std::byte>(page).first(4088)));
  const Result<FileHeader> found = decode_header(page, header.device == kNoDevice, "file");
  if (found.ok()) return "";
  CHECK(found.error().code() == ErrorCode::corrupt);
  return found.error().message();
}

CommitRecord sample_record() {
  CommitRecord record;
  record.position = {.step = 12,
                     .optimizer_step = 11,
                     .loss_scale = 32768.5,
                     .loss_scale_good_steps = 3,
                     .seed = ~0ull,
                     .data_position = 1ull << 63};
  for (std::int32_t s = 0; s < 4; ++s) {
    const auto u = static_cast<std::uint64_t>(s);
    record.subgroups.push_back({.slot = {DeviceId{s % 2}, 7 * s}, .checksums = {u, ~u, u << 40}});
  }
  return record;
}

std::vector<std::byte> encoded_area(std::uint64_t sequence) {
  std::vector<std::byte> area(
      static_cast<std::size_t>(area_bytes(sample_header(kNoDevice).geometry)), std::byte{0xee});
  encode_record(sample_header(kNoDevice), sequence, sample_record(), area);
  return area;
}

TEST_CASE("a header page comes back as it was") {
  std::vector<std::byte> page(kHeaderBytes, std::byte{0xee});
  for (const DeviceId device : {kNoDevice, DeviceId{0}, DeviceId{1}}) {
    FileHeader header = sample_header(device);
    header.identity.model_name = std::string(255, 'm');
    header.identity.variable_names = {std::string(63, 'a'), "b", "c"};
    encode_header(header, page);
    const Result<FileHeader> found = decode_header(page, device == kNoDevice, "file");
    REQUIRE(found.ok());
    CHECK(found->device == device);
    CHECK(found->state_id == header.state_id);
    CHECK(found->geometry == header.geometry);
    CHECK(check_identity(header.identity, found->identity, "dir").ok());
  }
}

TEST_CASE("a header page says how the arrays are stored") {
  using enum ArrayCode;
  std::vector<std::byte> page(kHeaderBytes, std::byte{0xee});
  for (const StoredArrays& stored :
       {StoredArrays{4, {high, low16, ArrayCode::fp32, fp32_with_ties}},
        StoredArrays{3, {high, low16_with_ties, ArrayCode::fp32}},
        StoredArrays{3, {high, low16, fp32_with_ties}},
        StoredArrays{4, {high, low16, mean8, square8}}, StoredArrays{3, {high, low8, bf16}}}) {
    FileHeader header = split_header(DeviceId{1});
    header.geometry.variable_count = stored.count;
    header.geometry.codes = stored.codes;
    header.identity.variable_names.resize(static_cast<std::size_t>(stored.count));
    encode_header(header, page);
    CHECK(load<std::uint32_t>(page, 8) == 2);
    for (std::size_t v = 0; v < stored.codes.size(); ++v) {
      CHECK(load<std::uint32_t>(page, 656 + 4 * v) == static_cast<std::uint32_t>(stored.codes[v]));
    }
    const Result<FileHeader> found = decode_header(page, false, "file");
    REQUIRE(found.ok());
    CHECK(found->geometry == header.geometry);
    CHECK(found->identity.variable_names == header.identity.variable_names);
  }
}

TEST_CASE("a state in fp32 is written as version 1, byte for byte as before there was another") {
  const auto checksum_of_page = [](const FileHeader& header) {
    std::vector<std::byte> page(kHeaderBytes);
    encode_header(header, page);
    return checksum(page);
  };
  FileHeader header = sample_header(kNoDevice);
  CHECK(checksum_of_page(header) == 0xd688d3910248dbcf);
  header = sample_header(DeviceId{1});
  CHECK(checksum_of_page(header) == 0x57ac645bf92461c0);
  header.identity.share = {1, 2, 0, 1};
  CHECK(checksum_of_page(header) == 0x21919ffb6e01aee1);
}

TEST_CASE("codes that are those of no state are refused") {
  using Page = std::span<std::byte>;
  using Catch::Contains;
  const auto with_code = [](int array, std::uint32_t code) {
    return [=](Page page) { store(page, 656 + 4 * static_cast<std::size_t>(array), code); };
  };
  const std::string no_format = "the codes of its arrays are those of no format";
  const FileHeader split = split_header(kNoDevice);
  CHECK(refusal_after(split, [](Page) {}).empty());
  for (const auto& [array, code] : {std::pair<int, std::uint32_t>{1, 0},  // no remainder
                                    {1, 6},
                                    {2, 1},  // a second copy
                                    {3, 4},  // a second remainder
                                    {0, 3},  // no copy, and not fp32
                                    {0, 9},
                                    {2, 9},  // unknown
                                    {3, 0x106}}) {
    CAPTURE(array, code);
    CHECK_THAT(refusal_after(split, with_code(array, code)),
               Contains("file: the header page at offset 0") && Contains(no_format));
  }
  const FileHeader plain = sample_header(kNoDevice);
  CHECK_THAT(refusal_after(plain, with_code(2, 6)), Contains(no_format));
  CHECK_THAT(refusal_after(plain, with_code(3, 6)), Contains(no_format));  // it has three arrays
}

TEST_CASE("a version and codes that do not go together are refused") {
  using Page = std::span<std::byte>;
  CHECK_THAT(refusal_after(split_header(kNoDevice), [](Page page) { store(page, 8, 1u); }),
             Catch::Contains("codes of arrays at offset 656 in version 1"));
  CHECK_THAT(refusal_after(sample_header(kNoDevice), [](Page page) { store(page, 8, 2u); }),
             Catch::Contains("codes of arrays at offset 656 in version 2"));
}

TEST_CASE("split state in subgroups that are not whole groups is refused") {
  using Page = std::span<std::byte>;
  const auto with_elements = [](std::int64_t elements) {
    return [=](Page page) { store(page, 40, elements); };
  };
  CHECK_THAT(refusal_after(split_header(kNoDevice), with_elements(300)),
             Catch::Contains("subgroup_elements is 300") &&
                 Catch::Contains("compact, with remainders of 8 bits"));
  CHECK(refusal_after(split_header(kNoDevice), with_elements(1000)).empty());  // all of them
  CHECK(refusal_after(sample_header(kNoDevice), with_elements(300)).empty());
}

TEST_CASE("a header page with any one bit changed is refused") {
  std::vector<std::byte> page(kHeaderBytes);
  encode_header(GENERATE(sample_header(DeviceId{1}), split_header(DeviceId{1})), page);
  for (std::size_t bit = 0; bit < page.size() * 8; ++bit) {
    page[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    const Result<FileHeader> found = decode_header(page, false, "dev1/state.slc");
    REQUIRE(!found.ok());
    REQUIRE(found.error().code() == ErrorCode::corrupt);
    REQUIRE(found.error().message().starts_with("dev1/state.slc: "));
    REQUIRE(found.error().message().find("offset 0") != std::string::npos);
    page[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
  }
  CHECK(decode_header(page, false, "dev1/state.slc").ok());
}

TEST_CASE("a file of a newer version of the format is told from a damaged one") {
  std::vector<std::byte> page(kHeaderBytes);
  encode_header(sample_header(kNoDevice), page);
  store(page, 8, kFormatVersion + 1);
  CHECK(decode_header(page, true, "commit.slc").error().code() == ErrorCode::corrupt);
  store(page, 4088, checksum(std::span<const std::byte>(page).first(4088)));
  const Result<FileHeader> found = decode_header(page, true, "commit.slc");
  REQUIRE(!found.ok());
  CHECK(found.error().code() == ErrorCode::unsupported);
  CHECK_THAT(found.error().message(),
             Catch::Contains("commit.slc: was written by version 3 of the format") &&
                 Catch::Contains("this program reads versions 1 and 2"));
}

TEST_CASE("the two kinds of file are not taken for each other") {
  std::vector<std::byte> page(kHeaderBytes);
  encode_header(sample_header(kNoDevice), page);
  CHECK_THAT(decode_header(page, false, "file").error().message(), Catch::Contains("mixed up"));
}

TEST_CASE("a header that has its checksum right and makes no sense is refused") {
  const auto refused_after = [](auto change) {
    std::vector<std::byte> page(kHeaderBytes);
    encode_header(sample_header(kNoDevice), page);
    change(std::span<std::byte>(page));
    store(page, 4088, checksum(std::span<const std::byte>(page).first(4088)));
    const Result<FileHeader> found = decode_header(page, true, "file");
    return !found.ok() && found.error().code() == ErrorCode::corrupt;
  };
  using Page = std::span<std::byte>;
  CHECK_FALSE(refused_after([](Page) {}));
  CHECK(refused_after([](Page page) { store(page, 12, 0); }));                 // device
  CHECK(refused_after([](Page page) { store(page, 32, std::int64_t{0}); }));   // parameters
  CHECK(refused_after([](Page page) { store(page, 40, std::int64_t{-5}); }));  // subgroup
  CHECK(refused_after([](Page page) { store(page, 48, 5); }));                 // variables
  CHECK(refused_after([](Page page) { store(page, 48, 2); }));                 // names differ
  CHECK(refused_after([](Page page) { store(page, 52, -1); }));                // devices
  CHECK(refused_after([](Page page) { page[384] = std::byte{0}; }));           // model name
  CHECK(refused_after([](Page page) { page[640] = std::byte{1}; }));           // reserved
}

TEST_CASE("names and geometry that the format cannot hold are errors of configuration") {
  const FileHeader good = sample_header(kNoDevice);
  const auto refused = [](const StateIdentity& identity, const Geometry& geometry) {
    const Status status = check_representable(identity, geometry);
    return !status.ok() && status.error().code() == ErrorCode::config;
  };
  CHECK_FALSE(refused(good.identity, good.geometry));
  StateIdentity identity = good.identity;
  identity.model_name = std::string(256, 'm');
  CHECK(refused(identity, good.geometry));
  identity = good.identity;
  identity.variable_names.pop_back();
  CHECK(refused(identity, good.geometry));
  Geometry geometry = good.geometry;
  geometry.subgroup_elements = 0;
  CHECK(refused(good.identity, geometry));
  geometry = good.geometry;
  geometry.parameter_count = std::int64_t{1} << 40;  // 3.7 billion subgroups of 300
  CHECK(refused(good.identity, geometry));
}

TEST_CASE("a record comes back as it was") {
  const std::vector<std::byte> area = encoded_area(5);
  CHECK_FALSE(is_empty_area(area));
  const Result<SequencedRecord> found = decode_record(sample_header(kNoDevice), 1, area);
  REQUIRE(found.ok());
  CHECK(found->sequence == 5);
  CHECK(found->record == sample_record());
}

TEST_CASE("a record with any one bit changed is refused, and its padding does not matter") {
  std::vector<std::byte> area = encoded_area(6);
  const auto end = static_cast<std::size_t>(record_bytes(sample_header(kNoDevice).geometry));
  for (std::size_t bit = 0; bit < area.size() * 8; ++bit) {
    area[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    const Result<SequencedRecord> found = decode_record(sample_header(kNoDevice), 0, area);
    REQUIRE(found.ok() == (bit / 8 >= end));
    if (found.ok()) REQUIRE(found->record == sample_record());
    area[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
  }
}

TEST_CASE("a whole record of another state or of the other area is refused") {
  FileHeader other = sample_header(kNoDevice);
  other.state_id[3] ^= std::byte{1};
  CHECK_THAT(decode_record(other, 0, encoded_area(6)).error().message(),
             Catch::Contains("another state"));
  CHECK_THAT(decode_record(sample_header(kNoDevice), 1, encoded_area(6)).error().message(),
             Catch::Contains("belongs elsewhere"));
}

TEST_CASE("the bytes are those of the format page") {
  std::vector<std::byte> page(kHeaderBytes);
  encode_header(sample_header(DeviceId{1}), page);
  CHECK(std::memcmp(page.data(), "SLUICEDV\1\0\0\0\1\0\0\0", 16) == 0);
  CHECK(load<std::int64_t>(page, 32) == 1000);
  CHECK(load_text(std::span(page).subspan(64, 64)) == "adamw");
  CHECK(load_text(std::span(page).subspan(192, 64)) == "exp_avg");
  CHECK(load_text(std::span(page).subspan(384, 256)) == "gpt2-124m");
  const std::vector<std::byte> area = encoded_area(6);
  CHECK(std::memcmp(area.data(), "SLUICECR\6\0\0\0\0\0\0\0", 16) == 0);
  CHECK(load<std::uint64_t>(area, 16) == 48 + 4 * (8 + 8 * 3));
  CHECK(load<double>(area, 56) == 32768.5);
  CHECK(load<std::int32_t>(area, 88 + 32 + 4) == 7);  // slot of subgroup 1
}

}  // namespace
}  // namespace sluice::state::detail
