// Buffers that are cut or overwritten: nothing behind their valid bytes is read, what is whole is
// decoded, and what is not is counted with its place. libcupti itself is not instrumented by a
// sanitizer, so its reads are watched by a page that may not be read.

#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "tests/profiler/cupti/decoder_fixture.h"

namespace sluice::cupti {
namespace {

// Each kind of record, and where each begins; the last is where the buffer ends.
struct Sample {
  MadeBuffer buffer;
  std::vector<std::size_t> begins = {0};

  template <typename Activity>
  void add(const Activity& activity) {
    buffer.add(activity);
    begins.push_back(buffer.size());
  }
};

Sample sample() {
  Sample made;
  const MadeWork work{.start = kEpoch + 10, .end = kEpoch + 20, .correlation = 1, .bytes = 64};
  made.add(made_call(work));
  made.add(made_step(1, 2));
  made.add(made_layer(1, 3));
  made.add(made_kernel(work));
  made.add(made_memcpy(work, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, CUPTI_ACTIVITY_MEMORY_KIND_PINNED,
                       CUPTI_ACTIVITY_MEMORY_KIND_DEVICE));
  made.add(made_peer_memcpy(work, 0, 1));
  made.add(made_memset(work));
  made.add(made_allocation(work, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE));
  made.add(made_memory(work, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                       CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION));
  made.add(made_overhead(work, CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH));
  made.add(made_synchronization(work, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE));
  made.add(made_call(work, CUPTI_ACTIVITY_KIND_DRIVER));
  return made;
}

// Memory whose last byte is followed by a page that may not be read.
class GuardedPage {
 public:
  GuardedPage() : page_bytes_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    void* memory =
        mmap(nullptr, 2 * page_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    memory_ = static_cast<std::uint8_t*>(memory);
    REQUIRE(mprotect(memory_ + page_bytes_, page_bytes_, PROT_NONE) == 0);
  }
  ~GuardedPage() { munmap(memory_, 2 * page_bytes_); }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;

  // At the page's very end.
  CompletedBuffer put(const std::uint8_t* bytes, std::size_t size) {
    REQUIRE(size <= page_bytes_);
    std::memcpy(memory_ + page_bytes_ - size, bytes, size);
    return {memory_ + page_bytes_ - size, size};
  }

 private:
  const std::size_t page_bytes_;
  std::uint8_t* memory_ = nullptr;
};

TEST_CASE("a buffer that is cut anywhere is decoded as far as records are whole") {
  Sample made = sample();
  GuardedPage page;
  for (std::size_t size = 0; size <= made.buffer.size(); ++size) {
    DecoderFixture fixture;
    const CompletedBuffer buffer = page.put(made.buffer.bytes().data(), size);
    fixture.decoder().decode({&buffer, 1}, DecoderFixture::kBufferBytes, fixture.clock());
    std::size_t whole = 0;
    while (whole + 1 < made.begins.size() && made.begins[whole + 1] <= size) whole += 1;
    const std::size_t refused = size - made.begins[whole];
    CAPTURE(size, fixture.decoder().last_damage());
    REQUIRE(fixture.counts().truncated_buffer == (refused > 0 ? 1 : 0));
    REQUIRE(fixture.counts().damaged_buffer == 0);
    REQUIRE(fixture.counts().refused_bytes == static_cast<std::int64_t>(refused));
    if (refused > 0) {
      REQUIRE(fixture.decoder().last_damage() ==
              fmt::format("buffer 0: cut within the record at byte {} of {}", made.begins[whole],
                          size));
    }
  }
}

TEST_CASE("a buffer that stops being records is refused from there, and the next one is read") {
  Sample made = sample();
  const std::uint32_t no_kind = 0x7fffffff;
  const std::size_t at = made.begins[4];
  MadeBuffer damaged = made.buffer;
  std::memcpy(damaged.bytes().data() + at, &no_kind, sizeof no_kind);
  DecoderFixture fixture;
  fixture.decode({damaged, made.buffer});
  REQUIRE(fixture.counts().damaged_buffer == 1);
  REQUIRE(fixture.counts().refused_bytes == static_cast<std::int64_t>(damaged.size() - at));
  REQUIRE(fixture.decoder().last_damage() ==
          fmt::format("buffer 0: no record at byte {} of {}", at, damaged.size()));
  // One kernel before the damage; all of the other buffer: 6 spans and 3 changes of memory.
  REQUIRE(fixture.drain().size() == 10);
}

TEST_CASE("a buffer with more valid bytes than it has room for is not looked at") {
  DecoderFixture fixture;
  MadeBuffer small;
  small.add(made_step(1, 1));
  const MadeBuffer::Copy copy = small.copy();
  const CompletedBuffer completed{copy.data.get(), copy.size + 1};
  fixture.decoder().decode({&completed, 1}, copy.size, fixture.clock());
  REQUIRE(fixture.counts().damaged_buffer == 1);
  REQUIRE(fixture.counts().refused_bytes == 25);
}

TEST_CASE("random damage: nothing crashes, and every byte is decoded or refused") {
  Sample made = sample();
  GuardedPage page;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    std::mt19937 random(seed);
    MadeBuffer damaged = made.buffer;
    for (unsigned i = 0, count = 1 + random() % 8; i < count; ++i) {
      // Half of the time in a kind, which decides how long a record is.
      const std::size_t at = random() % 2 == 0 ? made.begins[random() % (made.begins.size() - 1)]
                                               : random() % damaged.size();
      damaged.bytes()[at] = static_cast<std::uint8_t>(random() % (random() % 2 == 0 ? 64 : 256));
    }
    const std::size_t size = random() % 2 == 0 ? damaged.size() : random() % damaged.size();
    DecoderFixture fixture;
    const CompletedBuffer buffer = page.put(damaged.bytes().data(), size);
    fixture.decoder().decode({&buffer, 1}, DecoderFixture::kBufferBytes, fixture.clock());
    fixture.decoder().finish();
    const DecoderCounts& counts = fixture.counts();
    CAPTURE(seed, fixture.decoder().last_damage());
    REQUIRE((counts.refused_bytes > 0) == (counts.truncated_buffer + counts.damaged_buffer > 0));
    REQUIRE(counts.refused_bytes <= static_cast<std::int64_t>(size));
    REQUIRE(fixture.drain().size() == static_cast<std::size_t>(counts.decoded));
  }
}

TEST_CASE("the iterator at hand and the plain one agree on every record and every cut") {
  Sample made = sample();
  for (std::size_t size = 0; size <= made.buffer.size(); size += 8) {
    const MadeBuffer::Copy copy = made.buffer.copy(size);
    CUpti_Activity* real = nullptr;
    CUpti_Activity* plain = nullptr;
    CUptiResult real_result = CUPTI_SUCCESS;
    while (size > 0 && real_result == CUPTI_SUCCESS) {
      const bool at_end = real == nullptr
                              ? false
                              : reinterpret_cast<std::uint8_t*>(real) + 8 >= copy.data.get() + size;
      if (at_end) break;
      real_result = iterator_at_hand()(copy.data.get(), size, &real);
      REQUIRE(plain_next_record(copy.data.get(), size, &plain) == real_result);
      REQUIRE(real == plain);
    }
  }
}

TEST_CASE("a libcupti whose records are shorter than ours is refused with what to do") {
  const NextRecord older = [](std::uint8_t* buffer, std::size_t valid_bytes,
                              CUpti_Activity** record) {
    const auto kind = *reinterpret_cast<std::uint32_t*>(buffer);
    if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && valid_bytes >= 208) {
      *record = reinterpret_cast<CUpti_Activity*>(buffer);
      return CUPTI_SUCCESS;
    }
    return plain_next_record(buffer, valid_bytes, record);
  };
  const auto walk = RecordWalk::create(older);
  REQUIRE_FALSE(walk.ok());
  REQUIRE(walk.error().code() == ErrorCode::unsupported);
  REQUIRE(walk.error().message().find("CONCURRENT_KERNEL records of 208 bytes") !=
          std::string::npos);
}

TEST_CASE("an iterator that lands elsewhere than records end is not believed") {
  const NextRecord wild = [](std::uint8_t* buffer, std::size_t valid_bytes,
                             CUpti_Activity** record) {
    const CUptiResult result = plain_next_record(buffer, valid_bytes, record);
    if (result == CUPTI_SUCCESS && reinterpret_cast<std::uint8_t*>(*record) != buffer)
      *record = reinterpret_cast<CUpti_Activity*>(buffer + (std::size_t{1} << 40));
    return result;
  };
  DecoderFixture fixture({}, wild);
  fixture.decode({sample().buffer});
  REQUIRE(fixture.counts().damaged_buffer == 1);
}

}  // namespace
}  // namespace sluice::cupti
