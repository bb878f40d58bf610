#include <catch2/catch.hpp>

#include "profiler/cupti/cupti_recording.h"

namespace sluice::cupti {
namespace {

TEST_CASE("built without CUPTI's headers, a recording that is asked for is an error with advice") {
  record::Recorder recorder;
  const auto recording = CuptiRecording::start(recorder);
  REQUIRE_FALSE(recording.ok());
  REQUIRE(recording.error().code() == ErrorCode::unsupported);
  REQUIRE(recording.error().message().find("built without its headers") != std::string::npos);
  REQUIRE(recording.error().message().find("SLUICE_CUPTI=ON") != std::string::npos);
  REQUIRE(probe().error().message() == recording.error().message());
  REQUIRE(recorder.rings().empty());
}

}  // namespace
}  // namespace sluice::cupti
