#pragma once
// A decoder with its recorder, ring and clock: buffers go in, spans and counters come out.

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "profiler/cupti/activity_decoder.h"
#include "tests/profiler/cupti/made_activities.h"

namespace sluice::cupti {

// The clocks of these tests: CUPTI's says kEpoch when the run's says 0.
inline constexpr std::uint64_t kEpoch = 1'700'000'000'000'000'000;

class DecoderFixture {
 public:
  explicit DecoderFixture(const DecoderOptions& options = {},
                          NextRecord next_record = iterator_at_hand())
      : ring_(recorder_.add_ring(1 << 11)) {
    clock_.add({.monotonic_ts = 0, .realtime_ts = kEpoch});
    auto made = ActivityDecoder::create(next_record, recorder_, ring_, options);
    REQUIRE(made.ok());
    decoder_ = std::move(*made);
  }

  // One batch.
  void decode(const std::vector<MadeBuffer>& buffers) {
    std::vector<MadeBuffer::Copy> copies;
    for (const MadeBuffer& buffer : buffers) copies.push_back(buffer.copy());
    decode(copies);
  }
  void decode(const std::vector<MadeBuffer::Copy>& copies) {
    std::vector<CompletedBuffer> completed;
    for (const MadeBuffer::Copy& copy : copies) completed.push_back(copy.completed());
    decoder_->decode(completed, kBufferBytes, clock_);
  }

  std::vector<record::Record> drain() {
    std::vector<record::Record> records;
    ring_.drain(records, ring_.capacity());
    return records;
  }
  std::string name(record::NameId id) const {
    return recorder_.names_since(0)[static_cast<std::size_t>(id)];
  }
  // "GPU0/stream 7"
  std::string track(record::TrackId id) const {
    const record::Track track = recorder_.tracks_since(0)[static_cast<std::size_t>(id)];
    return track.parent == record::kNoTrack ? track.name
                                            : this->track(track.parent) + "/" + track.name;
  }

  ActivityDecoder& decoder() { return *decoder_; }
  const DecoderCounts& counts() const { return decoder_->counts(); }
  record::Recorder& recorder() { return recorder_; }
  ClockSnapshots& clock() { return clock_; }

  static constexpr std::size_t kBufferBytes = 1 << 16;

 private:
  record::Recorder recorder_;
  record::Ring& ring_;
  ClockSnapshots clock_;
  std::unique_ptr<ActivityDecoder> decoder_;
};

}  // namespace sluice::cupti
