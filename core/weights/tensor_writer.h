#pragma once
// Writes tensors that are read piece by piece into safetensors files, in bounded memory.
//
// Thread contract: one thread; blocks on the drives.

#include <functional>
#include <span>
#include <string>

#include "core/weights/tensor_set.h"

namespace sluice::weights {

// Hands flat elements [first, first + count) to `take`, piece by piece in order.
using TakeElements = std::function<Status(std::span<const float>)>;
using ReadElements =
    std::function<Status(std::int64_t first, std::int64_t count, const TakeElements& take)>;
// Told of bytes of tensors that are written, of all; an error ends the writing.
using OnWritten = std::function<Status(std::int64_t done_bytes, std::int64_t total_bytes)>;

class TensorWriter {
 public:
  // `total_bytes` of all sets that it will write, into `folder`, which is there.
  TensorWriter(std::string folder, std::int64_t piece_bytes, std::int64_t total_bytes,
               const OnWritten& on_written)
      : folder_(std::move(folder)),
        piece_bytes_(piece_bytes),
        total_bytes_(total_bytes),
        on_written_(on_written) {}

  // The number of files that hold tensors. Errors: ErrorCode::config where a number is too large
  // for the set's type; those of `read`, of whoever is told, and of the drive.
  Result<std::size_t> write(const TensorSet& set, const ReadElements& read);
  // A file that holds a text alone.
  Status write_text(const std::string& name, std::string_view text) const;

 private:
  class File;

  Status write_piece(const TensorSet& set, const PieceOfSet& piece, const ReadElements& read);
  Status take(const TensorSet& set, std::span<const float> values, File& file);
  Status narrow(const TensorSet& set, std::span<const float> values);
  Error too_large(const TensorSet& set, float value, std::int64_t element) const;

  std::string folder_;
  std::int64_t piece_bytes_;
  std::int64_t total_bytes_;
  const OnWritten& on_written_;
  std::vector<std::uint16_t> narrowed_;
  std::int64_t done_elements_ = 0;  // of the set
  std::int64_t done_bytes_ = 0;     // of all sets
};

}  // namespace sluice::weights
