#include "storage/io/page_aligned_buffer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>

#include "base/units.h"

namespace sluice::io {

TEST_CASE("a buffer is whole pages, on a page, and zeroed") {
  const std::int64_t asked = GENERATE(1, 4096, 4097, 1 << 20);
  auto buffer = PageAlignedBuffer::allocate(asked);
  REQUIRE(buffer.ok());
  CHECK(buffer->size_bytes() == round_up(asked, kPageBytes));
  CHECK(reinterpret_cast<std::uintptr_t>(buffer->bytes().data()) % kPageBytes == 0);
  CHECK(std::ranges::all_of(buffer->bytes(), [](std::byte byte) { return byte == std::byte{}; }));
}

TEST_CASE("a buffer that was moved from is empty") {
  auto buffer = PageAlignedBuffer::allocate(kPageBytes);
  REQUIRE(buffer.ok());
  const std::byte* data = buffer->bytes().data();
  PageAlignedBuffer other = std::move(*buffer);
  CHECK(other.bytes().data() == data);
  CHECK(buffer->bytes().empty());
  CHECK(PageAlignedBuffer().bytes().empty());
}

TEST_CASE("memory that is not there is an error with the size in words") {
  auto buffer = PageAlignedBuffer::allocate(std::int64_t{1} << 60);
  REQUIRE_FALSE(buffer.ok());
  CHECK(buffer.error().code() == ErrorCode::memory);
  CHECK_THAT(buffer.error().message(), Catch::Contains("1153 PB"));
}

}  // namespace sluice::io
