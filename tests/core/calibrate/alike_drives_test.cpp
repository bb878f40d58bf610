#include "core/calibrate/alike_drives.h"

#include <catch2/catch.hpp>

namespace sluice::calibrate {
namespace {

DriveFigures made_drive(double read, double write, std::int64_t burst_bytes) {
  const auto figure = [](double value) { return Figure{value, value * 0.9, value * 1.1, 3}; };
  DriveFigures drive;
  drive.curve = {{4096, figure(read / 2), figure(write / 2)},
                 {64 << 20, figure(read), figure(write)}};
  drive.page_latency_seconds = figure(5e-5);
  drive.read_burst = {burst_bytes, 1e9};
  return drive;
}

}  // namespace

TEST_CASE("drives that are alike have the medians of all of them") {
  std::vector<DriveFigures> drives = {made_drive(1000, 500, 10), made_drive(1010, 501, 30),
                                      made_drive(990, 499, 20)};
  const auto sentences = pool_alike(drives);
  REQUIRE(sentences.size() == 1);
  CHECK(sentences[0].find("drive0, drive1, drive2") == 0);
  for (const DriveFigures& drive : drives) {
    CHECK(drive.alone().read == 1000);
    CHECK(drive.alone().write == 500);
    CHECK(drive.curve.front().read.value == 500);
    CHECK(drive.curve.back().read.low == 990 * 0.9);
    CHECK(drive.curve.back().read.high == 1010 * 1.1);
    CHECK(drive.curve.back().read.count == 9);
    CHECK(drive.read_burst.size_bytes == 20);
  }
}

TEST_CASE("a drive that is slower keeps its own figures") {
  std::vector<DriveFigures> drives = {made_drive(1000, 500, 10), made_drive(970, 500, 30),
                                      made_drive(1000, 489, 20)};
  CHECK(pool_alike(drives).empty());
  CHECK(drives[0].alone().read == 1000);
  CHECK(drives[1].alone().read == 970);
  CHECK(drives[2].alone().write == 489);
}

}  // namespace sluice::calibrate
