// Each engine against what every engine promises (io_engine_conformance.h), and what is asked of
// the one function that opens them.

#include "storage/io/io_engine.h"

#include <array>
#include <catch2/catch.hpp>

#include "tests/skip.h"
#include "tests/storage/io/faulty_engine.h"
#include "tests/storage/io/io_engine_conformance.h"

namespace sluice::io::testing {
namespace {

OpenEngine of_kind(IoEngineKind kind) {
  return [kind](std::size_t queue_depth) { return open_engine(kind, queue_depth); };
}

// The wrapper, with nothing that it shall break.
OpenEngine faultless(IoEngineKind kind, bool shuffle_completions) {
  return [=](std::size_t queue_depth) {
    FaultPlan plan;
    plan.shuffle_completions = shuffle_completions;
    return make_faulty_engine(open_engine(kind, queue_depth), plan);
  };
}

}  // namespace

TEST_CASE("io_uring keeps what every engine promises") {
  CHECK(of_kind(IoEngineKind::io_uring)(1)->name() == "io_uring");
  check_conformance(io_engine_cases(), of_kind(IoEngineKind::io_uring));
}

TEST_CASE("posix keeps what every engine promises") {
  CHECK(of_kind(IoEngineKind::posix)(1)->name() == "posix");
  check_conformance(io_engine_cases(), of_kind(IoEngineKind::posix));
}

TEST_CASE("the wrapper that fails by plan keeps what every engine promises, without a fault") {
  const IoEngineKind kind = GENERATE(IoEngineKind::io_uring, IoEngineKind::posix);
  check_conformance(io_engine_cases(), faultless(kind, false));
}

TEST_CASE("the wrapper keeps it also with completions in a seeded order") {
  check_conformance(io_engine_cases(), faultless(IoEngineKind::posix, true));
}

TEST_CASE("a full file system fails the write with what to do, and leaves its neighbours alone") {
  const std::array engines = {of_kind(IoEngineKind::io_uring), of_kind(IoEngineKind::posix),
                              faultless(IoEngineKind::io_uring, false)};
  for (const OpenEngine& open : engines) {
    const MountedFileSystem mount("tmpfs", "size=1m");
    if (!mount.is_mounted()) return skip_test(mount.refusal());
    check_full_file_system(open, mount);
  }
}

TEST_CASE("options out of range are refused with the range") {
  const auto error = [](IoEngineOptions options) {
    auto engine = open_io_engine(options);
    REQUIRE_FALSE(engine.ok());
    CHECK(engine.error().code() == ErrorCode::config);
    return engine.error().message();
  };
  CHECK_THAT(error({.queue_depth = 0}), Contains("queue_depth = 0") && Contains("1 to 32768"));
  CHECK_THAT(error({.queue_depth = 40'000}), Contains("queue_depth = 40000"));
  CHECK_THAT(error({.kind = IoEngineKind::posix, .thread_count = 0}), Contains("thread_count = 0"));
}

}  // namespace sluice::io::testing
