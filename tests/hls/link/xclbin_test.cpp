// The xclbin that is written is the one that is read; what was cut, changed or is another's is
// refused with its name and a place in it.

#include "hls/link/xclbin.h"

#include <xclbin.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "base/fnv.h"
#include "hls/link/soft_bitstream.h"
#include "hls/link/xclbin_seal.h"
#include "tests/test_folder.h"

using namespace sluice;
using namespace sluice::hls_link;

namespace {

std::vector<std::byte> some_kernels() {
  std::vector<std::byte> bytes(3001);
  std::mt19937 random(1);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

std::vector<std::byte> some_xclbin(std::span<const std::byte> bitstream) {
  const XclbinParts parts{
      {{"vadd", 2, {{"a", "void*", true, 0x10, 8}, {"count", "uint", false, 0x1c, 4}}},
       {"norm<1>", 1, {{"x", "const float*", true, 0x10, 8}}}},
      bitstream,
      250};
  auto file = write_xclbin(parts);
  REQUIRE(file.ok());
  return std::move(*file);
}

// As one that knows the format would change it: the checksum is right again.
void seal_again(std::vector<std::byte>& file) {
  const std::uint64_t seal = seal_of(file);
  std::memcpy(file.data() + kSealHashOffset, &seal, sizeof seal);
}

void check_refused(std::span<const std::byte> file, const char* expected) {
  const auto xclbin = read_xclbin(file, "my.xclbin");
  REQUIRE_FALSE(xclbin.ok());
  CHECK(xclbin.error().code() == ErrorCode::corrupt);
  CHECK_THAT(xclbin.error().message(), Catch::StartsWith("my.xclbin") && Catch::Contains(expected));
}

}  // namespace

TEST_CASE("what is written is read") {
  const auto bitstream = some_kernels();
  const auto file = some_xclbin(bitstream);
  const auto xclbin = read_xclbin(file, "my.xclbin");
  REQUIRE(xclbin.ok());
  CHECK(std::equal(bitstream.begin(), bitstream.end(), xclbin->bitstream.begin(),
                   xclbin->bitstream.end()));
  CHECK(xclbin->bank_bytes == kBankBytes);
  CHECK(xclbin->kernel_mhz == 250);
  REQUIRE(xclbin->compute_units.size() == 3);
  CHECK(xclbin->compute_units[1].kernel == "vadd");
  CHECK(xclbin->compute_units[1].instance == "vadd_2");
  CHECK(xclbin->compute_units[2].instance == "norm<1>_1");
  CHECK(xclbin->compute_units[1].base_address - xclbin->compute_units[0].base_address ==
        kUnitRangeBytes);
  CHECK_THAT(std::string(xclbin->metadata),
             Catch::Contains(R"(<kernel name="norm&lt;1&gt;")") &&
                 Catch::Contains(R"(name="count" addressQualifier="0" id="1")"));
}

TEST_CASE("the same kernels have the same UUID, others another") {
  auto bitstream = some_kernels();
  const auto first = some_xclbin(bitstream);
  CHECK(first == some_xclbin(bitstream));
  bitstream[100] ^= std::byte{1};
  const auto second = some_xclbin(bitstream);
  CHECK(read_xclbin(first, "")->uuid != read_xclbin(second, "")->uuid);
}

TEST_CASE("a file that is cut anywhere is refused") {
  const auto bitstream = some_kernels();
  const auto file = some_xclbin(bitstream);
  for (std::size_t size = 0; size < file.size(); size += size < 1200 ? 1 : 37) {
    // A copy of its own, so that a read past the end is one past an allocation.
    const std::vector<std::byte> cut(file.begin(),
                                     file.begin() + static_cast<std::ptrdiff_t>(size));
    INFO(size);
    check_refused(cut, "offset ");
  }
}

TEST_CASE("every flipped bit of the header, and any of the rest, is found") {
  const auto bitstream = some_kernels();
  auto file = some_xclbin(bitstream);
  for (std::size_t bit = 0; bit < file.size() * 8; bit += bit < 1200 * 8 ? 1 : 101) {
    const auto mask = std::byte{1} << (bit % 8);
    file[bit / 8] ^= mask;
    INFO(bit);
    check_refused(file, "offset ");
    file[bit / 8] ^= mask;
  }
  CHECK(read_xclbin(file, "my.xclbin").ok());
}

TEST_CASE("lengths that lead outside are refused, also under a right checksum") {
  const auto bitstream = some_kernels();
  const auto file = some_xclbin(bitstream);
  std::mt19937_64 random(2);
  for (int round = 0; round < 20000; ++round) {
    auto changed = file;
    // Tables and headers: what is read as numbers.
    const std::size_t from = kSealHashOffset + 8 + random() % 900;
    const std::uint64_t value = round % 3 == 0 ? random() : (random() % 64) << (random() % 40);
    const std::size_t size = std::min<std::size_t>(1 + random() % 8, changed.size() - from);
    std::memcpy(changed.data() + from, &value, size);
    seal_again(changed);
    const auto xclbin = read_xclbin(changed, "my.xclbin");  // read or refused, and no fault
    if (!xclbin.ok()) {
      CHECK(xclbin.error().code() == ErrorCode::corrupt);
      continue;
    }
    std::uint64_t sum = fnv1a(xclbin->bitstream);
    sum = fnv1a(xclbin->metadata, sum);
    CHECK(sum != 0);
  }
}

TEST_CASE("foreign files are refused by what they lack") {
  check_refused({}, "no xclbin");
  const std::string text(5000, 'x');
  check_refused(std::as_bytes(std::span(text)), "no xclbin");
  axlf vendors{};
  std::memcpy(vendors.m_magic, "xclbin2", 8);
  vendors.m_header.m_length = sizeof vendors;
  check_refused(std::as_bytes(std::span(&vendors, 1)), "not a software xclbin");
}

TEST_CASE("kernels that no xclbin can hold are refused when it is written") {
  CHECK_FALSE(write_xclbin({{}, {}}).ok());
  CHECK_FALSE(write_xclbin({{{"k", 0, {}}}, {}}).ok());
  CHECK_FALSE(write_xclbin({{{"k", 129, {}}}, {}}).ok());
  CHECK(write_xclbin({{{"k", 128, {}}}, {}}).ok());
  CHECK_FALSE(write_xclbin({{{std::string(40, 'k'), 1, {}}}, {}}).ok());
}

TEST_CASE("a shared object's kernels are found, each loading has its own, rubbish is refused") {
  std::ifstream file(SLUICE_TEST_KERNELS, std::ios::binary);
  const std::vector<char> chars{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(chars));
  const auto first = SoftBitstream::open(bytes, "kernels");
  const auto second = SoftBitstream::open(bytes, "kernels");
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  const SluiceSoftKernel* vadd = first->kernel_named("vadd");
  REQUIRE(vadd != nullptr);
  CHECK(vadd->run != second->kernel_named("vadd")->run);
  CHECK(first->kernel_named("vsub") == nullptr);
  const auto kernels = kernels_of(*first);
  REQUIRE(kernels[0].arguments.size() == 4);
  CHECK(kernels[0].arguments[3].name == "element_count");
  CHECK(kernels[0].arguments[3].offset_bytes == 0x34);
  CHECK_FALSE(SoftBitstream::open(some_kernels(), "rubbish").ok());
  CHECK_FALSE(SoftBitstream::open(bytes.first(5000), "cut").ok());
}

TEST_CASE("the program packs, shows, and refuses in words") {
  const TestFolder folder;
  const std::string out = folder.file("out.xclbin");
  const auto run = [&](const std::string& arguments) {
    const std::string command =
        SLUICE_XCLBIN_PROGRAM " " + arguments + " >" + folder.file("said") + " 2>&1";
    const int status = std::system(command.c_str());
    std::ifstream said(folder.file("said"));
    return std::pair(WEXITSTATUS(status), std::string(std::istreambuf_iterator<char>(said), {}));
  };
  CHECK(run("pack " SLUICE_TEST_KERNELS " " + out + " 200").first == 0);
  const auto shown = run("show " + out);
  CHECK(shown.first == 0);
  CHECK_THAT(shown.second, Catch::Contains("compute unit vadd:vadd_2") &&
                               Catch::Contains("200 MHz") &&
                               Catch::Contains("0x0034 uint element_count"));
  CHECK(run("show " SLUICE_TEST_KERNELS).first == 1);
  CHECK(run("pack " + out + " " + out).first == 1);
  CHECK(run("unpack").first == 2);
  CHECK(run("pack a b 20x").first == 2);
}
