#include "core/calibrate/platform_text.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/calibrate/drive_load.h"

namespace sluice::calibrate {
namespace {

using platform::Duplex;

Figure about(double value) { return {value, value * 0.98, value * 1.03, 5}; }

DriveFigures made_drive(const std::string& path, double read, double write) {
  DriveFigures drive;
  drive.directory = {path, "ext4", 4'000'000'000, 1};
  drive.curve = {{4096, about(read / 10), about(write / 20)},
                 {1 << 20, about(read * 0.9), about(write * 0.8)},
                 {kRunInflightBytes, about(read), about(write)}};
  drive.page_latency_seconds = about(80e-6);
  drive.mixed_read = about(read * 0.98);
  drive.mixed_write = about(write * 0.98);
  drive.duplex = fit_duplex(drive.alone(), drive.mixed());
  return drive;
}

Calibration made_calibration(int drive_count) {
  Calibration made;
  made.machine = {"Some CPU", 2, 24'000'000'000, "Linux 6.1", "2026-01-02 03:04 UTC"};
  made.thread_count = 2;
  for (int i = 0; i < drive_count; ++i) {
    made.drives.push_back(made_drive("/mnt/" + std::to_string(i), 2.0e9, 1.5e9));
  }
  made.update = {{"adamw", about(6e8)},
                 {"adamw_compact", about(5e8)},
                 {"sgd", about(8e8)},
                 {"adagrad", about(1e9)}};
  made.stage = about(2.5e9);
  made.checksum = about(11e9);
  made.compress = about(1.1e9);
  made.memory_copy = about(12e9);
  made.compute_samples = {{"wide, forward", 64e9, 130e6, 0.3}};
  made.compute = {290e9, 1.7e9, 0.05};
  return made;
}

TogetherFigures made_together(double read, double write, bool is_limited) {
  TogetherFigures together;
  together.read = together.mixed_read = about(read);
  together.write = together.mixed_write = about(write);
  together.read_limit = {read, is_limited};
  together.write_limit = {write, is_limited};
  return together;
}

platform::Platform parsed(const std::string& text) {
  const auto platform = platform::parse_platform(text, "measured.toml");
  if (!platform.ok()) FAIL(platform.error().message() << "\n" << text);
  return *platform;
}

const platform::Engine& engine(const platform::Platform& platform, platform::EngineId id) {
  return platform.engine(id);
}

}  // namespace

TEST_CASE("what was measured is what the file gives when it is read again") {
  const platform::Platform platform =
      parsed(platform_text(made_calibration(1), DevicesAre::plain_drives));
  REQUIRE(platform.devices.size() == 1);
  CHECK(platform.devices[0].name == "drive0");
  CHECK(platform.devices[0].capacity_bytes == 4'000'000'000);
  CHECK(platform.devices[0].internal_route.empty());
  CHECK(platform.host_memory_bytes == 24'000'000'000);
  REQUIRE(platform.links.size() == 1);  // nothing is shared by one drive
  const platform::Link& drive = platform.links[0];
  CHECK(drive.read_bytes_per_s == Approx(2.0e9));
  CHECK(drive.write_bytes_per_s == Approx(1.5e9));
  CHECK(drive.duplex == Duplex::full);
  CHECK(drive.latency_ns == 80'000);
  REQUIRE(drive.chunk_curve.size() == 3);
  CHECK(drive.chunk_curve[1].chunk_bytes == 1 << 20);
  CHECK(drive.chunk_curve[1].write_bytes_per_s == Approx(1.2e9));
  const platform::Engine& host = engine(platform, platform.host_engine);
  CHECK(host.rate.at("adamw") == Approx(6e8));
  CHECK(host.rate.at("adamw_compact") == Approx(5e8));
  CHECK(host.rate.at("stage") == Approx(2.5e9));
  CHECK(host.rate.at("checksum") == Approx(11e9));
  const platform::Engine& compute = engine(platform, platform.compute_engine);
  CHECK(compute.rate.at("matmul") == Approx(290e9));
  CHECK(compute.rate.at("elementwise") == Approx(1.7e9));
  CHECK(compute.processor == platform.host_engine);
}

TEST_CASE("a drive's burst is in the file, and that none was seen") {
  Calibration made = made_calibration(1);
  made.drives[0].write_burst = {.size_bytes = 5'000'000, .bytes_per_s = 4e9};
  const std::string text = platform_text(made, DevicesAre::plain_drives);
  CHECK_THAT(text, Catch::Contains("# read_burst: none was seen"));
  const platform::Platform platform = parsed(text);
  CHECK(platform.links[0].read_burst.size_bytes == 0);
  CHECK(platform.links[0].write_burst.size_bytes == 5'000'000);
  CHECK(platform.links[0].write_burst.bytes_per_s == Approx(4e9));
}

TEST_CASE("what transfers take from computing is in the file, and that nothing was seen") {
  Calibration made = made_calibration(2);
  CHECK_THAT(platform_text(made, DevicesAre::plain_drives),
             Catch::Contains("# processor_bandwidth: none was seen"));
  made.toll = {about(0.25), 800e6, 4e9};
  const std::string text = platform_text(made, DevicesAre::plain_drives);
  CHECK_THAT(text, Catch::Contains("computing took +25.0 % longer beside 800 MB/s"));
  for (const platform::Link& link : parsed(text).links) {
    CHECK(link.processor_bytes_per_s == Approx(4e9));
  }
}

TEST_CASE("how long forward takes to wake is in the file") {
  Calibration made = made_calibration(1);
  CHECK_THAT(platform_text(made, DevicesAre::plain_drives),
             Catch::Contains("# wake: layers take no longer after idling"));
  made.wake = {0.020, 0.036};
  const platform::Platform platform = parsed(platform_text(made, DevicesAre::plain_drives));
  CHECK(engine(platform, platform.compute_engine).wake_ns == 20'000'000);
  CHECK(engine(platform, platform.compute_engine).wake_takes_ns == 36'000'000);
}

TEST_CASE("the file says how figures spread, and what was not measured") {
  Calibration made = made_calibration(1);
  made.notes = {"a and b lie on one file system"};
  const std::string text = platform_text(made, DevicesAre::plain_drives);
  for (const char* words :
       {"measured: 5 repeats", "Some CPU", "Linux 6.1", "2026-01-02", "/mnt/0 (ext4)",
        "No update engine", "a and b lie on one file system"}) {
    CAPTURE(words, text);
    CHECK(text.find(words) != std::string::npos);
  }
  CHECK(text.find("decompress") == std::string::npos);  // of engines only
  CHECK(platform_text(made, DevicesAre::emulated_csds).find("decompress was not measured") !=
        std::string::npos);
}

TEST_CASE("a shared limit becomes the host link, and the sum of the drives where there is none") {
  Calibration made = made_calibration(2);
  made.together = made_together(3.0e9, 2.5e9, true);
  const platform::Platform limited = parsed(platform_text(made, DevicesAre::plain_drives));
  CHECK(limited.links[0].name == "host");
  CHECK(limited.links[0].read_bytes_per_s == Approx(3.0e9));
  CHECK(limited.devices[1].host_route.size() == 2);

  made.together = made_together(4.0e9, 3.0e9, false);
  const std::string text = platform_text(made, DevicesAre::plain_drives);
  CHECK(parsed(text).links[0].read_bytes_per_s == Approx(4.0e9));
  CHECK(text.find("no shared limit was found") != std::string::npos);
}

TEST_CASE("emulated devices take turns with the host, and are called emulated") {
  Calibration made = made_calibration(2);
  made.together = made_together(4.0e9, 3.0e9, false);
  const std::string text = platform_text(made, DevicesAre::emulated_csds);
  const platform::Platform platform = parsed(text);
  for (const platform::Device& device : platform.devices) {
    REQUIRE_FALSE(device.internal_route.empty());
    CHECK(engine(platform, device.engine).rate.at("adamw") == Approx(6e8));
    CHECK(engine(platform, device.engine).processor == platform.host_engine);
    CHECK(device.memory_bytes == 12'000'000'000);
  }
  CHECK(platform.links[0].read_bytes_per_s == Approx(12e9));  // memory, not the drives
  CHECK(text.find("EMULATED") != std::string::npos);
}

TEST_CASE("odd names of folders and machines do not break the file") {
  Calibration made = made_calibration(1);
  made.drives[0].directory.path = "/mnt/a\nname = \"x\"";
  made.notes = {"/mnt/a\nname = \"x\" and /mnt/b\x7f lie on one file system"};
  CHECK(parsed(platform_text(made, DevicesAre::plain_drives)).devices.size() == 1);
}

TEST_CASE("rates keep four digits whatever their size") {
  Calibration made = made_calibration(1);
  made.drives[0] = made_drive("/mnt/0", 12'345'678, 999'960'000);
  const platform::Platform platform = parsed(platform_text(made, DevicesAre::plain_drives));
  CHECK(platform.links[0].read_bytes_per_s == Approx(12'350'000));
  CHECK(platform.links[0].write_bytes_per_s == Approx(999'960'000).epsilon(1e-4));
}

TEST_CASE("a platform is written whole, or not at all") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("sluice-calibrate-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string path = (folder / "platform.toml").string();
  CHECK_FALSE(write_platform("name = 'no devices'", path).ok());
  CHECK(std::filesystem::is_empty(folder));
  CHECK(check_output(path, IfThere::refuse).ok());
  CHECK(write_platform(platform_text(made_calibration(2), DevicesAre::plain_drives), path).ok());
  CHECK(platform::load_platform(path).ok());
  CHECK(check_output(path, IfThere::refuse).error().code() == ErrorCode::config);
  CHECK(check_output(path, IfThere::replace).ok());
  CHECK_FALSE(check_output((folder / "none/platform.toml").string(), IfThere::replace).ok());
  CHECK_FALSE(check_output(folder.string(), IfThere::replace).ok());
  std::filesystem::remove_all(folder);
}

}  // namespace sluice::calibrate
