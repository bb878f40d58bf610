#include "core/offload/residual_file.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/noted_calls.h"
#include "tests/test_folder.h"

namespace sluice::offload {

TEST_CASE("a residual is durable before it has its name") {
  const TestFolder folder;
  std::vector<float> residual(10, 1.0F);
  const NotedCalls noted;
  REQUIRE(save_residual(folder.file("residual.slc"), 3, residual_in_memory(residual)).ok());
  CHECK(noted.calls() ==
        std::vector<std::string>{"sync residual.slc.new", "rename residual.slc.new"});
}

}  // namespace sluice::offload
