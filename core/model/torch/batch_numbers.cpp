#include "core/model/torch/batch_numbers.h"

#include <algorithm>
#include <unordered_map>

#include "core/model/torch/check.h"

namespace sluice::model {
namespace {

struct Token {
  std::int64_t row;    // among the distinct
  std::int64_t round;  // of its next position
};

}  // namespace

void BatchNumbers::fill(const TokenBatch& batch, const at::Tensor& array) {
  input_count_ = std::ssize(batch.inputs);
  looked_up_count_ = input_count_ + std::ssize(batch.decoder_inputs);
  target_count_ = std::ssize(batch.targets);
  some_ignored_ = batch.counted_targets() < target_count_;
  loss_divisor_ = batch.loss_divisor();
  has_segments_ = !batch.segments.empty();
  CHECK_GE(array.numel(), 4 * looked_up_count_ + target_count_ + batch.batch + input_count_ +
                              std::ssize(batch.segments));
  std::int64_t* const inputs = array.mutable_data_ptr<std::int64_t>();
  std::int64_t* const positions = inputs + looked_up_count_;
  std::int64_t* const rows = inputs + 2 * looked_up_count_;
  std::int64_t* const distinct = inputs + 3 * looked_up_count_;
  std::ranges::copy(batch.inputs, inputs);
  std::ranges::copy(batch.decoder_inputs, inputs + input_count_);
  std::ranges::copy(batch.targets, inputs + 4 * looked_up_count_);
  std::fill(distinct, distinct + looked_up_count_, 0);
  fill_drop_keys(batch, inputs + 4 * looked_up_count_ + target_count_);
  fill_documents(batch, inputs + first_document());
  std::ranges::copy(batch.segments, inputs + first_document() + input_count_);

  std::unordered_map<std::int64_t, Token> tokens;
  std::vector<std::int64_t> round_of, row_of;  // each position's
  round_counts_.clear();
  for (std::int64_t i = 0; i < looked_up_count_; ++i) {
    const auto count = static_cast<std::int64_t>(tokens.size());
    Token& token = tokens.try_emplace(inputs[i], Token{count, 0}).first->second;
    if (token.round == 0) distinct[token.row] = inputs[i];
    if (token.round == static_cast<std::int64_t>(round_counts_.size())) round_counts_.push_back(0);
    ++round_counts_[static_cast<std::size_t>(token.round)];
    round_of.push_back(token.round++);
    row_of.push_back(token.row);
  }
  std::vector<std::int64_t> next(round_counts_.size(), 0);
  for (std::size_t r = 1; r < next.size(); ++r) next[r] = next[r - 1] + round_counts_[r - 1];
  for (std::int64_t i = 0; i < looked_up_count_; ++i) {
    const std::int64_t place = next[static_cast<std::size_t>(round_of[i])]++;
    positions[place] = i;
    rows[place] = row_of[i];
  }
  look_at(array);
}

// A document's number is that of its first token in the batch.
void BatchNumbers::fill_documents(const TokenBatch& batch, std::int64_t* documents) {
  std::fill(documents, documents + input_count_, 0);
  pieces_.clear();
  for (std::int64_t i = 0; i < std::ssize(batch.document_begins); ++i) {
    const std::int64_t column = i % batch.sequence;
    const std::int64_t begin = batch.document_begins[static_cast<std::size_t>(i)];
    documents[i] = i - column + begin;
    if (begin == column) {
      pieces_.push_back({i, 1});
    } else {
      CHECK(!pieces_.empty() && pieces_.back().first == documents[i]);
      ++pieces_.back().count;
    }
  }
}

void BatchNumbers::fill_drop_keys(const TokenBatch& batch, std::int64_t* keys) {
  window_count_ = batch.batch;
  has_drop_keys_ = !batch.drop_keys.empty();
  CHECK(!has_drop_keys_ || std::ssize(batch.drop_keys) == batch.batch);
  std::fill(keys, keys + window_count_, 0);
  std::ranges::copy(batch.drop_keys, keys);
}

// One row after the other: a device's way makes a call a round, of which a batch of bytes has
// hundreds.
at::Tensor BatchNumbers::sum_in_host_memory(const at::Tensor& rows, const at::Tensor& sums) const {
  const std::int64_t width = rows.size(1);
  const float* const values = rows.const_data_ptr<float>();
  float* const into = sums.mutable_data_ptr<float>();
  const std::int64_t* const positions = part(1).const_data_ptr<std::int64_t>();
  const std::int64_t* const row = part(2).const_data_ptr<std::int64_t>();
  for (std::int64_t place = round_counts_.front(); place < looked_up_count_; ++place) {
    float* const sum = into + row[place] * width;
    const float* const next = values + positions[place] * width;
    for (std::int64_t i = 0; i < width; ++i) sum[i] += next[i];
  }
  return sums;
}

at::Tensor BatchNumbers::sum_by_token(const at::Tensor& rows) const {
  at::Tensor sums = rows.index_select(0, part(1).narrow(0, 0, round_counts_.front()));
  if (rows.is_cpu()) return sum_in_host_memory(rows.contiguous(), sums);
  std::int64_t first = round_counts_.front();
  for (std::size_t round = 1; round < round_counts_.size(); ++round) {
    const std::int64_t count = round_counts_[round];
    sums.index_add_(0, part(2).narrow(0, first, count),
                    rows.index_select(0, part(1).narrow(0, first, count)));
    first += count;
  }
  return sums;
}

}  // namespace sluice::model
