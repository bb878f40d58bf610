#pragma once
// Which windows of the text a step sees: a deterministic order that resumes from a position.
//
// The tokens are split: the last `validation_fraction` is held out. Training windows of sequence +
// 1 tokens start at every multiple of `sequence` (with corrupted spans a window is as long as the
// text whose source has `sequence` tokens, and windows lie side by side; plus a per-epoch offset
// below that, from the seed); each epoch visits all of them in an order that is a keyed permutation
// of their indices, so position p names one window without any table.
//
// A file whose records are packed (TokenFile::window_tokens()) is read window by window: they start
// at multiples of `sequence`, are split as a whole, and the last token of one has no target.
//
// With Documents::apart, a document's first token is no target of the token before it, which does
// not see the document that it would have to begin.
//
// A target is the next token, or with hidden tokens (hidden_tokens.h) each of those itself, or with
// corrupted spans (corrupted_spans.h) a token of what was taken out. A token
// that its file marks as not learnt is no target (kIgnoredTarget). A window of a record with a
// label has one target, that label; what fills it is a document that the record does not see.
//
// Thread contract: one thread.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/data/corrupted_spans.h"
#include "core/data/hidden_tokens.h"
#include "core/model/trainable_model.h"
#include "core/model/window_shape.h"

namespace sluice::data {

class TokenFile;

struct SamplerOptions {
  std::int64_t batch = 8;
  std::int64_t sequence = 128;
  double validation_fraction = 0.05;
  std::uint64_t seed = 0;
  // At most one; none: the model answers the next token.
  std::optional<HiddenTokens> hidden = {};
  std::optional<CorruptedSpans> spans = {};
  std::int64_t classes = 0;                                 // of records with labels; 0: texts
  model::Documents documents = model::Documents::together;  // without spans and classes

  // How far the next window of an epoch is.
  std::int64_t window_tokens() const {
    return spans ? model::span_lengths(spans->rule, sequence).text : sequence;
  }
};

class Sampler {
 public:
  // Text too short for one training and one validation window is an error that says how long it
  // must be. check() says so before there is a token file; `path` is for the message.
  static Status check(std::int64_t token_count, const SamplerOptions& options,
                      const std::string& path);
  // The same once there is one; a packed file has a `sequence` of its own, and any other is an
  // error that says it.
  static Status check(const TokenFile& tokens, const SamplerOptions& options);
  static Result<Sampler> make(const TokenFile* tokens, const SamplerOptions& options);

  // Training windows number [position, position + batch), counted through all epochs, each with a
  // key of its own for what is dropped of it; the returned spans live until the next call. Errors:
  // those of TokenFile::read().
  Result<model::TokenBatch> train_batch(std::uint64_t position);
  // TokenBatch::divisor for a mean over all targets of `batches` training batches from `position`
  // on: what one of them has in the mean. Reads the marks of their tokens alone.
  Result<double> train_divisor(std::uint64_t position, std::int64_t batches);
  // The i-th validation batch, in order of the text; count is how many there are. All are full (a
  // rest is left out), so that the mean of their losses is a mean over tokens; only a text that
  // holds less than one batch for validation gives one smaller batch.
  std::int64_t validation_batch_count() const;
  std::int64_t validation_rows() const;  // windows of each
  Result<model::TokenBatch> validation_batch(std::int64_t index);
  // The same of the first `batches` of these.
  Result<double> validation_divisor(std::int64_t batches);

 private:
  // What a batch's spans look at; empty where a batch has none.
  struct BatchRoom {
    std::vector<std::int32_t> inputs;
    std::vector<std::int32_t> targets;
    std::vector<std::int32_t> decoder_inputs;
    std::vector<std::uint32_t> drop_keys;
    std::vector<std::int32_t> document_begins;
    std::vector<std::int32_t> segments;
  };
  // Tokens [first_token, first_token + window tokens + 1), and the stream of chance that hides
  // them.
  struct Window {
    std::int64_t first_token = 0;
    std::uint64_t chance = 0;
  };
  Sampler(const TokenFile* tokens, const SamplerOptions& options);
  void split(std::int64_t train_tokens, std::int64_t validation_tokens);
  void split_windows();
  Window train_window(std::uint64_t number) const;
  Window validation_window(std::int64_t number) const;
  Status copy_window(const Window& window, std::int64_t row);
  Status copy_spans(const Window& window, std::int64_t row);
  Status copy_record(const Window& window, std::int64_t row);
  std::int64_t target_columns() const { return spans_.targets; }
  // Targets of a batch of `rows` windows, in the mean over so many; `window_of` gives each.
  template <typename WindowOf>
  Result<double> mean_targets(std::int64_t batches, std::int64_t rows, WindowOf window_of);
  bool is_apart() const;
  bool is_of_records() const { return options_.classes > 0; }
  bool has_all_targets() const;
  Result<std::int64_t> count_targets(const Window& window);
  Status read_marks(const Window& window);
  void copy_document_begins(std::int64_t row);
  bool is_target(const Window& window, std::int64_t column) const;
  model::TokenBatch filled_batch(std::int64_t rows) const;
  std::int64_t epoch_offset(std::uint64_t epoch) const;

  const TokenFile* tokens_;
  SamplerOptions options_;
  std::int64_t window_tokens_;
  model::SpanLengths spans_;  // without corrupted spans as many targets as inputs, or a label
  std::int64_t windows_per_epoch_ = 0;
  std::int64_t largest_offset_ = 0;    // of an epoch's first window
  std::int64_t validation_first_ = 0;  // token
  std::int64_t validation_window_count_ = 0;
  // The window that is being copied, and the marks of its tokens. The last one is only a target; of
  // a packed file it is not read, and not learnt.
  std::vector<std::int32_t> window_;
  std::vector<std::uint8_t> marks_;
  std::size_t read_tokens_;
  BatchRoom room_;
};

}  // namespace sluice::data
