#pragma once
// The objective of T5: spans of a text are taken out, and are what the model answers
// (core/model/span_lengths.h says how many and how long).
//
//   text     a b c d e f g h
//   source   a b S0 e f g S1 END      S0, S1, ...: the sentinels, counting down
//   targets  S0 c d S1 h END
//
// A text begins with a token that stays and ends with one that is taken. Which spans are taken is a
// function of a stream of chance, so that a window is corrupted in the same way wherever, and
// however often, it is made: both the taken tokens and the others are parted into as many pieces,
// and all ways to do so are alike likely.
//
// Thread contract: plain data.

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/span_lengths.h"

namespace sluice::data {

struct CorruptedSpans {
  model::SpanRule rule = {};
  std::int32_t first_sentinel = 0;  // the next ones are below it
  std::int32_t end = 1;
  std::int32_t start = 0;  // the decoder's first input; its others are the targets before

  // One window: `learnt` has a flag for each token of `text`, and a taken one without it is no
  // target (model::kIgnoredTarget); sentinels and the end always are. The sizes are those of
  // `lengths`.
  struct Row {
    std::span<std::int32_t> source;
    std::span<std::int32_t> decoder_inputs;
    std::span<std::int32_t> targets;
  };
  void corrupt(std::uint64_t stream, const model::SpanLengths& lengths,
               std::span<const std::int32_t> text, std::span<const std::uint8_t> learnt,
               const Row& row) const;
};

// Lengths of `parts` pieces, each at least 1, of `whole`: parts - 1 of the whole - 1 places between
// two of it, by chance.
std::vector<std::int64_t> parted(std::uint64_t stream, std::int64_t whole, std::int64_t parts);

}  // namespace sluice::data
