// Transfers through real engines: cut into requests, bounded, checked.

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <numeric>

#include "core/runtime/clocks.h"
#include "core/runtime/sync.h"
#include "storage/io/page_aligned_buffer.h"
#include "tests/storage/io/faulty_engine.h"

using namespace sluice;
using namespace sluice::runtime;
using namespace sluice::stages;

namespace {

struct TestFile {
  TestFile() {
    path = (std::filesystem::temp_directory_path() / fmt::format("sluice_lanes_{}", getpid()))
               .string();
    std::filesystem::remove(path);
    auto opened = io::File::open(path, {io::FileAccess::create_new, io::Caching::buffered});
    REQUIRE(opened.ok());
    file.emplace(std::move(*opened));
    REQUIRE(file->allocate(1 << 20).ok());
  }
  ~TestFile() { std::filesystem::remove(path); }
  std::string path;
  std::optional<io::File> file;
};

Status round_trip(io::FaultPlan plan, std::int64_t io_bytes, std::int64_t queue_depth) {
  TestFile test;
  io::IoEngineOptions options;
  options.kind = io::IoEngineKind::posix;
  auto engine = io::open_io_engine(options);
  REQUIRE(engine.ok());
  WorkExecutor::Options executor_options;
  executor_options.lanes = {io_bytes, queue_depth};
  auto executor =
      WorkExecutor::make(io::make_faulty_engine(std::move(*engine), plan), executor_options);
  REQUIRE(executor.ok());
  Runtime runtime(std::make_unique<RealClock>(std::move(*executor)));
  auto from = io::PageAlignedBuffer::allocate(1 << 19);
  auto to = io::PageAlignedBuffer::allocate(1 << 19);
  REQUIRE(from.ok());
  REQUIRE(to.ok());
  for (std::size_t i = 0; i < from->bytes().size(); ++i) from->bytes()[i] = std::byte(i * 31 >> 3);
  const auto move = [&](io::IoDirection direction, std::span<std::byte> data, std::int64_t offset) {
    Operation operation;
    operation.runtime = &runtime;
    operation.work.kind = WorkKind::transfer;
    operation.work.file = &*test.file;
    operation.work.offset_bytes = offset;
    operation.work.data = data;
    operation.work.direction = direction;
    return operation;
  };
  auto task = [&]() -> Task<Status> {
    const auto half = from->bytes().size() / 2;
    const Operation writes[] = {
        move(io::IoDirection::write, from->bytes().first(half), 0),
        move(io::IoDirection::write, from->bytes().subspan(half), static_cast<std::int64_t>(half))};
    Status written = co_await together<2>(writes);
    CO_RETURN_IF_ERROR(written);
    Status read = co_await move(io::IoDirection::read, to->bytes(), 0);
    CO_RETURN_IF_ERROR(read);
    CHECK(std::ranges::equal(from->bytes(), to->bytes()));
    co_return ok_status();
  };
  return runtime.run(task());
}

}  // namespace

TEST_CASE("transfers arrive whole at every request size and depth, in any order of completion") {
  for (const std::int64_t io_bytes : {4096, 12288, 1 << 20}) {
    for (const std::int64_t queue_depth : {1, 3, 64}) {
      io::FaultPlan plan;
      plan.shuffle_completions = true;
      plan.seed = static_cast<std::uint64_t>(io_bytes + queue_depth);
      CHECK(round_trip(plan, io_bytes, queue_depth).ok());
    }
  }
}

TEST_CASE("a failed request fails its transfer with a message that names the file") {
  for (const std::uint64_t index : {0u, 5u, 127u}) {
    io::FaultPlan plan;
    plan.planned.push_back({index, io::FaultPlan::Fault::eio});
    const Status status = round_trip(plan, 4096, 8);
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().code() == ErrorCode::io);
    CHECK_THAT(status.error().message(), Catch::Contains("sluice_lanes_"));
  }
}

TEST_CASE("short transfers, EINTR and EAGAIN are continued below, unseen") {
  io::FaultPlan plan;
  plan.planned = {{0, io::FaultPlan::Fault::short_transfer},
                  {1, io::FaultPlan::Fault::interrupted},
                  {2, io::FaultPlan::Fault::again},
                  {130, io::FaultPlan::Fault::short_transfer}};
  CHECK(round_trip(plan, 4096, 8).ok());
}
