#include "core/data/corrupted_spans.h"

#include <algorithm>

#include "base/check.h"
#include "base/split_mix.h"
#include "core/data/token_marks.h"
#include "core/model/trainable_model.h"

namespace sluice::data {
namespace {

// Independent streams of one window's.
constexpr std::uint64_t kTakenStream = 1;
constexpr std::uint64_t kStayingStream = 2;

// Takes what it is given, one after the other.
class Writer {
 public:
  explicit Writer(std::span<std::int32_t> into) : into_(into) {}
  void put(std::int32_t token) { into_[done_++] = token; }
  bool is_full() const { return done_ == into_.size(); }

 private:
  std::span<std::int32_t> into_;
  std::size_t done_ = 0;
};

}  // namespace

std::vector<std::int64_t> parted(std::uint64_t stream, std::int64_t whole, std::int64_t parts) {
  CHECK_GE(whole, parts);
  std::vector<std::int64_t> lengths;
  std::int64_t wanted = parts - 1;
  std::int64_t begun = 0;
  for (std::int64_t place = 1; place < whole; ++place) {
    const auto left = static_cast<std::uint64_t>(whole - place);
    const std::uint64_t chance = split_mix(stream, static_cast<std::uint64_t>(place));
    if (chance % left >= static_cast<std::uint64_t>(wanted)) continue;
    lengths.push_back(place - begun);
    begun = place;
    --wanted;
  }
  lengths.push_back(whole - begun);
  return lengths;
}

void CorruptedSpans::corrupt(std::uint64_t stream, const model::SpanLengths& lengths,
                             std::span<const std::int32_t> text,
                             std::span<const std::uint8_t> learnt, const Row& row) const {
  const auto taken = parted(split_mix(stream, kTakenStream), lengths.taken, lengths.spans);
  const auto staying =
      parted(split_mix(stream, kStayingStream), lengths.text - lengths.taken, lengths.spans);
  Writer source(row.source), targets(row.targets), decoder_inputs(row.decoder_inputs);
  std::int32_t before = start;
  const auto answer = [&](std::int32_t token, bool counts) {
    decoder_inputs.put(before);
    targets.put(counts ? token : model::kIgnoredTarget);
    before = token;
  };
  std::size_t next = 0;
  for (std::int64_t span = 0; span < lengths.spans; ++span) {
    const auto index = static_cast<std::size_t>(span);
    const auto sentinel = static_cast<std::int32_t>(first_sentinel - span);
    for (std::int64_t i = 0; i < staying[index]; ++i) source.put(text[next++]);
    source.put(sentinel);
    answer(sentinel, true);
    for (std::int64_t i = 0; i < taken[index]; ++i, ++next)
      answer(text[next], (learnt[next] & kLearnt) != 0);
  }
  source.put(end);
  answer(end, true);
  CHECK(source.is_full() && targets.is_full() && decoder_inputs.is_full());
}

}  // namespace sluice::data
