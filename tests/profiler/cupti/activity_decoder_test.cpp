#include "profiler/cupti/activity_decoder.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "tests/profiler/cupti/decoder_fixture.h"

namespace sluice::cupti {
namespace {

using record::Record;
using record::RecordKind;
using record::SpanRecord;

MadeWork work(std::uint64_t start, std::uint64_t end, std::uint32_t correlation = 0) {
  return {.start = kEpoch + start, .end = kEpoch + end, .correlation = correlation};
}

TEST_CASE(
    "a kernel becomes a span of its stream, with step, layer and the call that asked for it") {
  DecoderFixture fixture;
  MadeBuffer buffer;
  buffer.add(made_layer(5, 3)).add(made_step(5, 12)).add(made_call(work(100, 200, 5)));
  buffer.add(made_kernel(work(1'000, 4'000, 5)));
  fixture.decode({buffer});
  const std::vector<Record> records = fixture.drain();
  REQUIRE(records.size() == 1);
  const SpanRecord& span = records[0].span;
  REQUIRE(records[0].kind() == RecordKind::span);
  REQUIRE(fixture.name(span.name) == "kernel");
  REQUIRE(fixture.track(span.track) == "GPU0/stream 7");
  REQUIRE(span.submit_ts == 100);
  REQUIRE(span.ts == 1'000);
  REQUIRE(span.dur == 3'000);
  REQUIRE(span.step == 12);
  REQUIRE(span.layer == 3);
  REQUIRE(span.device == -1);
  REQUIRE(fixture.counts().decoded == 1);
}

TEST_CASE("copies, sets, waits and overhead have names, tracks and bytes that say what they were") {
  DecoderFixture fixture;
  MadeWork copy = work(10, 20);
  copy.bytes = 4096;
  MadeWork peer = work(30, 40);
  peer.gpu = 1;
  peer.bytes = 8192;
  MadeBuffer buffer;
  buffer.add(made_memcpy(copy, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE,
                         CUPTI_ACTIVITY_MEMORY_KIND_DEVICE));
  buffer.add(made_memcpy(copy, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                         CUPTI_ACTIVITY_MEMORY_KIND_PINNED));
  buffer.add(made_memcpy(copy, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                         CUPTI_ACTIVITY_MEMORY_KIND_DEVICE));
  buffer.add(made_peer_memcpy(peer, 1, 0)).add(made_memset(copy));
  buffer.add(
      made_synchronization(work(50, 90), CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE));
  buffer.add(made_overhead(work(60, 70), CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING));
  fixture.decode({buffer});
  fixture.decoder().finish();
  std::vector<std::string> seen;
  for (const Record& record : fixture.drain()) {
    seen.push_back(fixture.track(record.span.track) + ": " + fixture.name(record.span.name) + " " +
                   std::to_string(record.span.bytes));
  }
  std::sort(seen.begin(), seen.end());
  REQUIRE(seen == std::vector<std::string>{
                      "CUPTI overhead: function is loaded 0",
                      "GPU0/stream 7: memcpy DtoD 4096",
                      "GPU0/stream 7: memcpy DtoH (pinned) 4096",
                      "GPU0/stream 7: memcpy HtoD (pageable) 4096",
                      "GPU0/stream 7: memset 4096",
                      "GPU1/stream 7: memcpy GPU1 to GPU0 8192",
                      "synchronization: wait for stream 0",
                  });
}

TEST_CASE("allocated memory is a counter in the order of time, whatever order the records have") {
  DecoderFixture fixture;
  const auto change = [](std::uint64_t ts, std::uint64_t bytes, bool is_release,
                         CUpti_ActivityMemoryKind kind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE) {
    MadeWork made = work(ts, ts);
    made.bytes = bytes;
    return made_memory(made, kind,
                       is_release ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
                                  : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
  };
  MadeBuffer late, early;
  late.add(change(300, 1000, true)).add(change(200, 50, false));
  early.add(change(100, 1000, false)).add(change(150, 7, false, CUPTI_ACTIVITY_MEMORY_KIND_PINNED));
  fixture.decode({late, early});
  std::vector<std::string> seen;
  for (const Record& record : fixture.drain()) {
    REQUIRE(record.kind() == RecordKind::counter);
    seen.push_back(fixture.track(record.counter.track) + " " + std::to_string(record.counter.ts) +
                   " " + std::to_string(static_cast<int>(record.counter.value)));
  }
  REQUIRE(seen == std::vector<std::string>{"GPU0/GPU0 memory 100 1000", "pinned host memory 150 7",
                                           "GPU0/GPU0 memory 200 1050", "GPU0/GPU0 memory 300 50"});
}

TEST_CASE("a record of an allocation's whole life counts at both of its ends") {
  DecoderFixture fixture;
  MadeWork made = work(100, 900);
  made.bytes = 64;
  MadeWork kept = work(500, 0);
  kept.end = 0;
  kept.bytes = 1;
  MadeBuffer buffer;
  buffer.add(made_allocation(made, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE));
  buffer.add(made_allocation(kept, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE));
  fixture.decode({buffer});
  std::vector<double> values;
  for (const Record& record : fixture.drain()) values.push_back(record.counter.value);
  REQUIRE(values == std::vector<double>{64, 65, 1});
}

TEST_CASE("a correlation may come after the kernel, in the same batch or in the next") {
  DecoderFixture fixture;
  MadeBuffer kernels, same, next;
  kernels.add(made_kernel(work(10, 20, 1))).add(made_kernel(work(30, 40, 2)));
  same.add(made_step(1, 7)).add(made_layer(1, 0)).add(made_call(work(1, 2, 1)));
  next.add(made_step(2, 8)).add(made_layer(2, 1)).add(made_call(work(3, 4, 2)));
  fixture.decode({kernels, same});
  std::vector<Record> records = fixture.drain();
  REQUIRE(records.size() == 1);
  REQUIRE(records[0].span.step == 7);
  REQUIRE(fixture.decoder().held_count() == 1);
  fixture.decode({next});
  records = fixture.drain();
  REQUIRE(records.size() == 1);
  REQUIRE(records[0].span.step == 8);
  REQUIRE(records[0].span.layer == 1);
  REQUIRE(records[0].span.submit_ts == 3);
  REQUIRE(fixture.decoder().held_count() == 0);
  REQUIRE(fixture.counts().without_step == 0);
}

TEST_CASE("a correlation that came some batches ago still joins, and is forgotten in the end") {
  DecoderFixture fixture({.correlations = {.flush_count = 4}});
  MadeBuffer told;
  told.add(made_step(1, 7)).add(made_layer(1, 2));
  fixture.decode({told});
  fixture.decode(std::vector<MadeBuffer>{});
  MadeBuffer kernel;
  kernel.add(made_kernel(work(10, 20, 1)));
  fixture.decode({kernel});
  REQUIRE(fixture.drain()[0].span.step == 7);
  for (int i = 0; i < 4; ++i) fixture.decode(std::vector<MadeBuffer>{});
  fixture.decode({kernel});
  fixture.decoder().finish();
  REQUIRE(fixture.drain()[0].span.step == -1);
  REQUIRE(fixture.counts().without_step == 1);
  REQUIRE(fixture.decoder().lost_correlation_count() == 0);
}

TEST_CASE("work outside of any step is pushed a batch later, without one, and counted") {
  DecoderFixture fixture;
  MadeBuffer buffer;
  buffer.add(made_kernel(work(10, 20, 1)));
  fixture.decode({buffer});
  REQUIRE(fixture.drain().empty());
  fixture.decode(std::vector<MadeBuffer>{});
  const std::vector<Record> records = fixture.drain();
  REQUIRE(records.size() == 1);
  REQUIRE(records[0].span.step == -1);
  REQUIRE(records[0].span.submit_ts == 10);
  REQUIRE(fixture.counts().without_step == 1);
}

TEST_CASE("what waits for its step is bounded, and what does not wait is counted") {
  DecoderFixture fixture({.held_count_max = 3});
  MadeBuffer buffer;
  for (std::uint32_t i = 1; i <= 5; ++i) buffer.add(made_kernel(work(10 * i, 10 * i + 5, i)));
  fixture.decode({buffer});
  REQUIRE(fixture.drain().size() == 2);
  REQUIRE(fixture.counts().given_up == 2);
  REQUIRE(fixture.decoder().held_count() == 3);
}

TEST_CASE("calls that are remembered are bounded: the oldest go, and are counted") {
  DecoderFixture fixture({.correlations = {.count_max = 4}});
  MadeBuffer first, second, kernels;
  for (std::uint32_t i = 1; i <= 3; ++i) first.add(made_step(i, i));
  for (std::uint32_t i = 4; i <= 6; ++i) second.add(made_step(i, i));
  fixture.decode({first});
  fixture.decode({second});
  REQUIRE(fixture.decoder().lost_correlation_count() == 3);
  for (std::uint32_t i = 1; i <= 6; ++i) kernels.add(made_kernel(work(10 * i, 10 * i + 5, i)));
  fixture.decode({kernels});
  fixture.decoder().finish();
  std::vector<int> steps;
  for (const Record& record : fixture.drain()) steps.push_back(record.span.step);
  REQUIRE(steps == std::vector<int>{-1, -1, -1, 4, 5, 6});
}

TEST_CASE("external ids that somebody else pushed are left alone and counted") {
  DecoderFixture fixture;
  ExternalCorrelationActivity foreign = made_step(1, 99);
  foreign.externalId = 99;
  ExternalCorrelationActivity other_kind = made_step(1, 98);
  other_kind.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2;
  MadeBuffer buffer;
  buffer.add(foreign).add(other_kind).add(made_layer(1, 40'000)).add(made_kernel(work(10, 20, 1)));
  fixture.decode({buffer});
  fixture.decoder().finish();
  REQUIRE(fixture.drain()[0].span.step == -1);
  REQUIRE(fixture.counts().foreign_id == 3);
}

TEST_CASE("names are interned once, demangled, and copied out of CUPTI's memory") {
  DecoderFixture fixture;
  char mangled[] = "_Z4gemmILi128EEvPKfPfi";
  MadeWork first = work(10, 20);
  first.name = mangled;
  MadeBuffer buffer;
  buffer.add(made_kernel(first)).add(made_kernel(first));
  fixture.decode({buffer});
  std::fill(std::begin(mangled), std::end(mangled) - 1, '?');
  fixture.decoder().finish();
  const std::vector<Record> records = fixture.drain();
  REQUIRE(records.size() == 2);
  REQUIRE(records[0].span.name == records[1].span.name);
  REQUIRE(fixture.name(records[0].span.name) == "void gemm<128>(float const*, float*, int)");
}

TEST_CASE("a kernel without a readable name is recorded and counted") {
  DecoderFixture fixture;
  MadeWork null_name = work(10, 20);
  null_name.name = nullptr;
  MadeWork wild_name = work(30, 40);
  wild_name.name = reinterpret_cast<const char*>(std::uintptr_t{0xdead'0000'0001});
  MadeBuffer buffer;
  buffer.add(made_kernel(null_name)).add(made_kernel(wild_name)).add(made_kernel(wild_name));
  fixture.decode({buffer});
  fixture.decoder().finish();
  const std::vector<Record> records = fixture.drain();
  REQUIRE(records.size() == 3);
  REQUIRE(fixture.name(records[2].span.name) == "kernel whose name cannot be read");
  REQUIRE(fixture.counts().unreadable_name == 3);
}

TEST_CASE("a name as long as CUPTI likes is cut, and one across pages is whole") {
  DecoderFixture fixture;
  const std::string long_name(10'000, 'x');
  const std::string name(700, 'y');
  MadeWork cut = work(10, 20);
  cut.name = long_name.c_str();
  MadeWork whole = work(30, 40);
  whole.name = name.c_str();
  MadeBuffer buffer;
  buffer.add(made_kernel(cut)).add(made_kernel(whole));
  fixture.decode({buffer});
  fixture.decoder().finish();
  const std::vector<Record> records = fixture.drain();
  REQUIRE(fixture.name(records[0].span.name) == std::string(4096, 'x'));
  REQUIRE(fixture.name(records[1].span.name) == name);
}

TEST_CASE("streams of a second context of a GPU are tracks of their own") {
  DecoderFixture fixture;
  MadeWork second = work(30, 40);
  second.context = 2;
  MadeBuffer buffer;
  buffer.add(made_kernel(work(10, 20))).add(made_kernel(second));
  fixture.decode({buffer});
  fixture.decoder().finish();
  const std::vector<Record> records = fixture.drain();
  REQUIRE(fixture.track(records[0].span.track) == "GPU0/stream 7");
  REQUIRE(fixture.track(records[1].span.track) == "GPU0/stream 7 of context 2");
}

TEST_CASE("past a thousand streams the others share a track") {
  DecoderFixture fixture;
  MadeBuffer buffer;
  for (std::uint32_t stream = 0; stream < 1100; ++stream) {
    MadeWork made = work(10 + stream, 20 + stream);
    made.stream = stream;
    buffer.add(made_memset(made));
  }
  REQUIRE(buffer.size() > DecoderFixture::kBufferBytes);
  const MadeBuffer::Copy copy = buffer.copy();
  const CompletedBuffer completed = copy.completed();
  fixture.decoder().decode({&completed, 1}, buffer.size(), fixture.clock());
  fixture.decoder().finish();
  const std::vector<Record> records = fixture.drain();
  REQUIRE(records.size() == 1100);
  REQUIRE(fixture.track(records[1023].span.track) == "GPU0/stream 1023");
  REQUIRE(fixture.track(records[1024].span.track) == "GPU0/other streams");
  REQUIRE(records[1024].span.track == records[1099].span.track);
}

TEST_CASE("records that CUPTI could not time, or that cannot be, are left out and counted") {
  DecoderFixture fixture;
  MadeWork untimed = work(0, 0);
  untimed.start = 0;
  MadeWork another_day = work(10, 20);
  another_day.end += 86'400'000'000'000;
  MadeWork no_such_gpu = work(10, 20);
  no_such_gpu.gpu = 0xffff'ffff;
  MadeWork too_many_bytes = work(10, 20);
  too_many_bytes.bytes = ~std::uint64_t{0};
  MadeBuffer buffer;
  buffer.add(made_kernel(untimed)).add(made_kernel(work(20, 10))).add(made_kernel(another_day));
  buffer.add(made_kernel(no_such_gpu)).add(made_memset(too_many_bytes));
  buffer.add(made_memset(work(10, 20)));
  fixture.decode({buffer});
  fixture.decoder().finish();
  REQUIRE(fixture.drain().size() == 1);
  REQUIRE(fixture.counts().untimed == 1);
  REQUIRE(fixture.counts().implausible == 4);
}

TEST_CASE("a kind that nobody asked for is stepped over and counted") {
  DecoderFixture fixture;
  CUpti_ActivityName other = {};
  other.kind = CUPTI_ACTIVITY_KIND_NAME;
  MadeBuffer buffer;
  buffer.add(other).add(made_memset(work(10, 20))).add(other);
  fixture.decode({buffer});
  fixture.decoder().finish();
  REQUIRE(fixture.drain().size() == 1);
  REQUIRE(fixture.counts().other_kind == 2);
  REQUIRE(fixture.counts().truncated_buffer == 0);
}

TEST_CASE("any order of records over any split into buffers gives the same spans") {
  struct Seen {
    std::int64_t ts;
    int step;
    int layer;
    std::int64_t submit_ts;
    bool operator==(const Seen&) const = default;
    auto operator<=>(const Seen&) const = default;
  };
  constexpr std::uint32_t kCount = 60;
  std::vector<Seen> expected;
  std::vector<MadeBuffer> parts;  // a record each
  for (std::uint32_t i = 1; i <= kCount; ++i) {
    expected.push_back({100 * i, static_cast<int>(i / 10), static_cast<int>(i % 7), 100 * i - 50});
    parts.push_back(MadeBuffer().add(made_kernel(work(100 * i, 100 * i + 30, i))));
    parts.push_back(MadeBuffer().add(made_step(i, i / 10)));
    parts.push_back(MadeBuffer().add(made_layer(i, i % 7)));
    parts.push_back(MadeBuffer().add(made_call(work(100 * i - 50, 100 * i - 40, i))));
  }
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    std::shuffle(parts.begin(), parts.end(), random);
    std::vector<MadeBuffer> buffers(1 + random() % 9);
    std::size_t at = 0;
    for (MadeBuffer& part : parts) {
      if (random() % 20 == 0) at = (at + 1) % buffers.size();
      buffers[at].bytes().insert(buffers[at].bytes().end(), part.bytes().begin(),
                                 part.bytes().end());
    }
    DecoderFixture fixture;
    fixture.decode(buffers);
    std::vector<Seen> seen;
    for (const Record& record : fixture.drain())
      seen.push_back({record.span.ts, record.span.step, record.span.layer, record.span.submit_ts});
    std::sort(seen.begin(), seen.end());
    REQUIRE(seen == expected);
  }
}

}  // namespace
}  // namespace sluice::cupti
