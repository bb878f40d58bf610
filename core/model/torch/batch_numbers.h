#pragma once
// The tokens of a micro-batch as the model's tensors: inputs, targets, in which order the rows of
// the embedding's gradient are summed, the keys of dropout, the documents' numbers and the
// segments. One flat array of numbers of 64 bits (batch_bytes() of core/model/compute_device.h), so
// that it goes to an accelerator as one copy. A decoder's inputs are looked up as well, and stand
// behind the others.
//
// A token that stands at several positions has one row of the table, whose gradient is the sum over
// them, first position to last. So the positions are sorted into rounds: round 0 holds the first
// position of each distinct token, round 1 the second of each that has one, and so on. Within a
// round no row comes twice, so a round can be added all at once, and the order of each row's sum,
// and with it the bits, are the same on every device.
//
// Thread contract: plain data.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/model/torch/dropout.h"
#include "core/model/torch/head_loss.h"
#include "core/model/trainable_model.h"
#include "core/model/window_shape.h"

namespace sluice::model {

class BatchNumbers {
 public:
  // `array`: int64, room for batch_bytes() in host memory.
  void fill(const TokenBatch& batch, const at::Tensor& array);
  // Where the numbers are that the views show: that array, or a copy on a device.
  void look_at(const at::Tensor& array) { array_ = array; }

  at::Tensor inputs() const { return part(0).narrow(0, 0, input_count_); }
  at::Tensor decoder_inputs() const {
    return part(0).narrow(0, input_count_, looked_up_count_ - input_count_);
  }
  Targets targets() const {
    return {array_.narrow(0, 4 * looked_up_count_, target_count_), some_ignored_};
  }
  double loss_divisor() const { return loss_divisor_; }  // TokenBatch::loss_divisor()
  Dropout dropout() const {                              // by TokenBatch::drop_keys
    return has_drop_keys_
               ? Dropout(array_.narrow(0, 4 * looked_up_count_ + target_count_, window_count_))
               : Dropout();
  }
  at::Tensor distinct() const { return part(3).narrow(0, 0, round_counts_.front()); }

  // The same number for tokens of one document of a window; not defined: documents are together.
  at::Tensor documents() const {
    if (pieces_.empty()) return {};
    return array_.narrow(0, first_document(), input_count_);
  }
  // The documents, in order; none where they are together.
  const std::vector<DocumentPiece>& document_pieces() const { return pieces_; }
  // TokenBatch::segments; not defined: all are 0.
  at::Tensor segments() const {
    if (!has_segments_) return {};
    return array_.narrow(0, first_document() + input_count_, input_count_);
  }

  // For each distinct token, the sum of its positions' rows; `rows` is fp32, those of the inputs
  // and then those of a decoder's, and may be changed.
  at::Tensor sum_by_token(const at::Tensor& rows) const;

 private:
  at::Tensor part(std::int64_t index) const {
    return array_.narrow(0, index * looked_up_count_, looked_up_count_);
  }
  std::int64_t first_document() const {
    return 4 * looked_up_count_ + target_count_ + window_count_;
  }
  void fill_documents(const TokenBatch& batch, std::int64_t* documents);
  void fill_drop_keys(const TokenBatch& batch, std::int64_t* keys);
  at::Tensor sum_in_host_memory(const at::Tensor& rows, const at::Tensor& sums) const;

  at::Tensor array_;
  std::int64_t input_count_ = 0;
  std::int64_t looked_up_count_ = 0;
  std::int64_t target_count_ = 0;
  std::int64_t window_count_ = 0;
  bool has_drop_keys_ = false;
  bool some_ignored_ = false;  // of the targets
  bool has_segments_ = false;
  double loss_divisor_ = 1;
  std::vector<std::int64_t> round_counts_;  // positions in each round
  std::vector<DocumentPiece> pieces_;
};

}  // namespace sluice::model
