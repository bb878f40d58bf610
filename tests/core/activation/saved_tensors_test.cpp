// Tensors of many sizes that are saved, loaded, loaded again and dropped in orders that nobody
// expected, by several threads: what comes back is what was saved, and no more than the cap is ever
// in memory.

#include "core/activation/saved_tensors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <random>
#include <thread>

#include "tests/test_folder.h"

using namespace sluice;
using activation::SavedTensors;
using Catch::Contains;

namespace {

using After = SavedTensors::After;
constexpr std::int64_t kInFlightBytes = SavedTensors::kLeastInFlightBytes;

std::unique_ptr<SavedTensors> open(const TestFolder& folder,
                                   std::int64_t in_flight_bytes = kInFlightBytes) {
  auto saved = SavedTensors::open({.folder = folder.path(), .in_flight_bytes = in_flight_bytes});
  INFO((saved.ok() ? std::string() : saved.error().message()));
  REQUIRE(saved.ok());
  return std::move(*saved);
}

std::vector<std::byte> values(std::size_t size_bytes, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(size_bytes);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

struct Tensor {
  SavedTensors::Number number;
  std::size_t size_bytes;
  std::uint32_t seed;
};

Tensor save(SavedTensors& saved, std::size_t size_bytes, std::uint32_t seed, std::int64_t rank) {
  const auto number = saved.save(values(size_bytes, seed), rank);
  REQUIRE(number.ok());
  return {*number, size_bytes, seed};
}

bool comes_back(SavedTensors& saved, const Tensor& tensor, After after = After::unused) {
  std::vector<std::byte> found(tensor.size_bytes);
  return saved.load(tensor.number, found, after).ok() &&
         found == values(tensor.size_bytes, tensor.seed);
}

// Steps of a program that saves some tensors and loads them in an order that is half expected.
int wrong_steps(SavedTensors& saved, std::uint32_t seed) {
  std::mt19937 random(seed);
  int wrong = 0;
  for (int step = 0; step < 6; ++step) {
    std::vector<Tensor> tensors;
    for (std::uint32_t count = 0; count < 12; ++count) {
      const std::size_t size_bytes = 1 + random() % (count % 4 == 0 ? 200'000 : 9'000);
      const std::uint32_t own_seed = seed * 1000 + count;
      const auto rank = static_cast<std::int64_t>(random() % 20);
      const auto number = saved.save(values(size_bytes, own_seed), rank);
      if (!number.ok()) return ++wrong;
      tensors.push_back({*number, size_bytes, own_seed});
    }
    std::ranges::shuffle(tensors, random);
    for (const Tensor& tensor : tensors) {
      const auto times = random() % 3;  // some are dropped without having been loaded
      for (std::uint32_t time = 0; time < times; ++time)
        wrong +=
            comes_back(saved, tensor, time + 1 < times ? After::wanted : After::unused) ? 0 : 1;
      saved.drop(tensor.number);
    }
  }
  return wrong;
}

// The file has no name any more, so it is found among the descriptors of the process.
void damage(const SavedTensors& saved, std::int64_t offset_bytes) {
  const std::string path = fmt::format("/proc/self/fd/{}", saved.file().fd());
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(file >= 0);
  std::byte byte{};
  REQUIRE(pread(file, &byte, 1, offset_bytes) == 1);
  byte ^= std::byte{1};
  REQUIRE(pwrite(file, &byte, 1, offset_bytes) == 1);
  ::close(file);
}

// Until nothing waits to be written.
void wait_for_writes(const SavedTensors& saved, std::int64_t written_bytes) {
  while (saved.counts().written_bytes < written_bytes) std::this_thread::yield();
}

}  // namespace

TEST_CASE("saved tensors come back in any order, and the cap is held", "[saved]") {
  const std::int64_t in_flight_bytes = kInFlightBytes * GENERATE(1, 5);
  const TestFolder folder;
  const auto saved = open(folder, in_flight_bytes);
  std::vector<int> wrong(3);
  std::vector<std::thread> threads;
  for (std::uint32_t seed = 0; seed < wrong.size(); ++seed)
    threads.emplace_back([&, seed] { wrong[seed] = wrong_steps(*saved, seed + 1); });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>{0, 0, 0});
  const SavedTensors::Counts counts = saved->counts();
  CHECK(counts.tensor_count == 0);
  CHECK(counts.read_bytes > 0);
  CHECK(counts.peak_in_flight_bytes <= in_flight_bytes);
  CHECK(saved->file().size_bytes().value() < 64 * kInFlightBytes);
}

TEST_CASE("a tensor larger than the cap goes through it", "[saved]") {
  const TestFolder folder;
  const auto saved = open(folder);
  const Tensor large = save(*saved, 10 * kInFlightBytes + 13, 1, 0);
  const Tensor small = save(*saved, 5, 2, 0);
  CHECK(comes_back(*saved, large));
  CHECK(comes_back(*saved, small));
  CHECK(comes_back(*saved, large));  // a graph that was retained
  CHECK(saved->counts().peak_in_flight_bytes == kInFlightBytes);
}

TEST_CASE("the last that were saved are still in memory when backward begins", "[saved]") {
  const TestFolder folder;
  const auto saved = open(folder);
  std::vector<Tensor> tensors;
  for (std::uint32_t count = 0; count < 24; ++count) {
    tensors.push_back(save(*saved, 8192, count, -static_cast<std::int64_t>(count)));
    wait_for_writes(*saved, 8192 * (count + 1));
  }
  for (const Tensor& tensor : tensors)
    CHECK(saved->has_bytes(tensor.number, values(8192, tensor.seed)));
  CHECK_FALSE(saved->has_bytes(tensors[0].number, values(8192, 77)));
  CHECK_FALSE(saved->has_bytes(tensors[0].number, values(8191, 0)));
  std::ranges::reverse(tensors);
  for (const Tensor& tensor : tensors) {
    CHECK(comes_back(*saved, tensor));
    saved->drop(tensor.number);
  }
  CHECK(saved->counts().at_hand_bytes == kInFlightBytes);
  CHECK(saved->counts().read_bytes == 24 * 8192 - kInFlightBytes);
}

TEST_CASE("a tensor that the drive has changed is refused, with file and offset", "[saved]") {
  const TestFolder folder;
  const auto saved = open(folder);
  const Tensor damaged = save(*saved, 8192, 1, 9);
  wait_for_writes(*saved, 8192);
  damage(*saved, 100);
  // The first leaves memory: the others are expected before it.
  std::vector<Tensor> others;
  for (std::uint32_t count = 0; count < 8; ++count) others.push_back(save(*saved, 8192, count, 0));
  std::vector<std::byte> found(8192);
  const Status status = saved->load(damaged.number, found, After::unused);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::corrupt);
  CHECK_THAT(status.error().message(), Contains(saved->file().path()) && Contains("offset 0"));
  for (const Tensor& tensor : others) CHECK(comes_back(*saved, tensor));
}

TEST_CASE("a file that cannot grow is an error that says what to do", "[saved]") {
  const TestFolder folder;
  const auto saved = open(folder);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 2 * kInFlightBytes, .rlim_max = before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const Tensor first = save(*saved, 20'000, 1, 0);
  const auto refused = saved->save(values(5 * kInFlightBytes, 2), 0);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code() == ErrorCode::no_space);
  CHECK_THAT(refused.error().message(),
             Contains(saved->file().path()) && Contains("state=") && Contains("keep="));
  CHECK(comes_back(*saved, first));
  CHECK(saved->counts().tensor_count == 1);
}

TEST_CASE("nothing is left in the folder, and a cap that is too small is refused", "[saved]") {
  const TestFolder folder;
  {
    const auto saved = open(folder);
    save(*saved, 1'000'000, 1, 0);
    CHECK(std::filesystem::is_empty(folder.path()));
  }
  const auto refused =
      SavedTensors::open({.folder = folder.path(), .in_flight_bytes = kInFlightBytes - 1});
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error().message(), Contains("in_flight=65535: it is 65536 or more"));
  CHECK_FALSE(SavedTensors::open({.folder = folder.file("none"), .in_flight_bytes = 1 << 20}).ok());
}
