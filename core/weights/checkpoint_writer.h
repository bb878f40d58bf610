#pragma once
// Flat parameters as a folder that Hugging Face's AutoModel opens: safetensors, in pieces with an
// index where one file would be too large, config.json, and files that are carried along.
//
// Thread contract: a free function; blocks on the drives.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/model/model_shape.h"
#include "core/weights/safetensors.h"

namespace sluice::weights {

// Hugging Face's own limit: pieces of 5 GB.
inline constexpr std::int64_t kPieceBytes = 5'000'000'000;

struct CheckpointFiles {
  std::string folder;
  ElementType type = ElementType::fp32;
  std::string config;                // the text of config.json
  std::vector<std::string> carried;  // paths of files that are copied as they are
  std::int64_t piece_bytes = kPieceBytes;
};

struct WrittenCheckpoint {
  std::int64_t size_bytes = 0;  // of the tensors
  std::size_t file_count = 0;   // that hold them
};

// Hands flat elements [first, first + count) to `take`, piece by piece in order.
using TakeElements = std::function<Status(std::span<const float>)>;
using ReadElements =
    std::function<Status(std::int64_t first, std::int64_t count, const TakeElements& take)>;
// Told of bytes of tensors that are written, of all; an error ends the writing.
using OnWritten = std::function<Status(std::int64_t done_bytes, std::int64_t total_bytes)>;

// The folder appears as a whole, durable, or not at all: it is written beside its place and
// renamed. Errors: ErrorCode::config where it is there already, or a number is too large for the
// type; those of `read` and of the drive. What was written is removed then.
Result<WrittenCheckpoint> write_checkpoint(const CheckpointFiles& files,
                                           const model::ModelShape& shape, const ReadElements& read,
                                           const OnWritten& on_written);

}  // namespace sluice::weights
