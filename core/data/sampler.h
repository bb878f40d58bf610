#pragma once
// Which windows of the text a step sees: a deterministic order that resumes from a position.
//
// The tokens are split: the last `validation_fraction` is held out. Training windows of sequence +
// 1 tokens start at every multiple of `sequence` (plus a per-epoch offset below `sequence`, from
// the seed); each epoch visits all of them in an order that is a keyed permutation of their
// indices, so position p names one window without any table.
//
// Thread contract: one thread.

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/model/trainable_model.h"

namespace sluice::data {

class TokenFile;

struct SamplerOptions {
  std::int64_t batch = 8;
  std::int64_t sequence = 128;
  double validation_fraction = 0.05;
  std::uint64_t seed = 0;
};

class Sampler {
 public:
  // Text too short for one training and one validation window is an error that says how long it
  // must be. check() says so before there is a token file; `path` is for the message.
  static Status check(std::int64_t token_count, const SamplerOptions& options,
                      const std::string& path);
  static Result<Sampler> make(const TokenFile* tokens, const SamplerOptions& options);

  // Training windows number [position, position + batch), counted through all epochs; the returned
  // spans live until the next call. Errors: those of TokenFile::read().
  Result<model::TokenBatch> train_batch(std::uint64_t position);
  // The i-th validation batch, in order of the text; count is how many there are. All are full (a
  // rest is left out), so that the mean of their losses is a mean over tokens; only a text that
  // holds less than one batch for validation gives one smaller batch.
  std::int64_t validation_batch_count() const;
  Result<model::TokenBatch> validation_batch(std::int64_t index);

 private:
  Sampler(const TokenFile* tokens, const SamplerOptions& options, std::int64_t train_tokens,
          std::int64_t validation_tokens);
  Status copy_window(std::int64_t first_token, std::int64_t row);
  model::TokenBatch filled_batch(std::int64_t rows) const;
  std::int64_t epoch_offset(std::uint64_t epoch) const;

  const TokenFile* tokens_;
  SamplerOptions options_;
  std::int64_t windows_per_epoch_;
  std::int64_t largest_offset_;    // of an epoch's first window
  std::int64_t validation_first_;  // token
  std::int64_t validation_window_count_;
  std::vector<std::int32_t> window_;  // that is being copied
  std::vector<std::int32_t> inputs_;
  std::vector<std::int32_t> targets_;
};

}  // namespace sluice::data
