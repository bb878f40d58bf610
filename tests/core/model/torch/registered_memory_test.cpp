// Pinned memory, with a runtime that counts what is registered.

#include "core/model/torch/registered_memory.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

namespace sluice::model {
namespace {

std::map<void*, std::size_t>& registered() {
  static std::map<void*, std::size_t> bytes;
  return bytes;
}

int take(void* address, std::size_t size_bytes, unsigned /*flags*/) {
  registered()[address] = size_bytes;
  return 0;
}
int refuse(void* /*address*/, std::size_t /*size_bytes*/, unsigned /*flags*/) { return 2; }
int give_back(void* address) { return registered().erase(address) == 1 ? 0 : 1; }

TEST_CASE("pinned memory takes whole pages of what is asked for, and is registered as it lives") {
  RegisteredMemory memory({take, give_back});
  {
    Result<io::PinnedBuffer> buffer = memory.allocate(5 * 4096 + 1);
    REQUIRE(buffer.ok());
    CHECK(buffer->size_bytes() == 6 * 4096);  // and not 8
    CHECK(std::ranges::all_of(buffer->bytes(), [](std::byte b) { return b == std::byte{0}; }));
    REQUIRE(registered().size() == 1);
    CHECK(registered().begin()->first == buffer->bytes().data());
    CHECK(registered().begin()->second == 6 * 4096);
  }
  CHECK(registered().empty());
  CHECK(memory.allocate(0)->size_bytes() == 0);
  CHECK(registered().empty());
}

TEST_CASE("memory that the runtime does not pin is an error that says how much it was") {
  RegisteredMemory memory({refuse, give_back});
  const Result<io::PinnedBuffer> buffer = memory.allocate(1 << 20);
  REQUIRE(!buffer.ok());
  CHECK(buffer.error().code() == ErrorCode::memory);
  CHECK_THAT(buffer.error().message(), Catch::Contains("1.05 MB") && Catch::Contains("error 2"));
}

}  // namespace
}  // namespace sluice::model
