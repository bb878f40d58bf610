#pragma once
// How long texts, sources and targets are where the objective is to answer corrupted spans, as T5
// learns (arXiv:1910.10683, section 3.1.4): some spans of a text are taken out, each leaves a
// sentinel in the source, and the targets are the spans, each behind its sentinel. Both end with an
// end token. All texts of one length have as many spans, so all windows have one shape.
//
// Thread contract: plain data; free functions.

#include <cstdint>

#include "core/model/model_shape.h"

namespace sluice::model {

struct SpanLengths {
  std::int64_t text = 0;     // tokens of a window before
  std::int64_t taken = 0;    // of these, that are in spans
  std::int64_t spans = 0;    // at least one token between two of them, and before the first
  std::int64_t targets = 0;  // tokens that are answered

  std::int64_t source() const { return text - taken + spans + 1; }
};

// A source and its targets need so many at least: a token, a sentinel, and the end.
inline constexpr std::int64_t kLeastSource = 3;

// The longest text whose source has at most `sequence` tokens, kLeastSource or more. It has as
// many, but for spans so close that one more takes two. The lengths are those of
// compute_input_and_target_lengths() in Hugging Face's example of a T5's pretraining in flax.
SpanLengths span_lengths(const SpanRule& rule, std::int64_t sequence);

}  // namespace sluice::model
