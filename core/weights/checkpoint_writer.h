#pragma once
// Flat parameters as a folder that Hugging Face's AutoModel opens: safetensors, in pieces with an
// index where one file would be too large, config.json, and files that are carried along. With
// them, where asked for, the optimizer's arrays as optimizer.safetensors. Adapters are written, of
// a shape that has them, as PEFT does: adapter_model.safetensors and adapter_config.json.
//
// Thread contract: a free function; blocks on the drives.

#include <optional>
#include <string>
#include <vector>

#include "core/model/model_shape.h"
#include "core/weights/tensor_writer.h"

namespace sluice::weights {

// Hugging Face's own limit: pieces of 5 GB.
inline constexpr std::int64_t kPieceBytes = 5'000'000'000;

// The arrays of an optimizer's state but for the master weights.
struct OptimizerArrays {
  std::string optimizer;            // its name: "adamw"
  std::int64_t step = 0;            // updates that it has made
  std::vector<std::string> arrays;  // the state's names: "exp_avg"
  ReadElements read;                // of their elements, one array behind the other
};

struct CheckpointFiles {
  std::string folder;
  ElementType type = ElementType::fp32;
  std::string config;                // the text of config.json, or of adapter_config.json
  std::vector<std::string> carried;  // paths of files that are copied as they are
  std::int64_t piece_bytes = kPieceBytes;
  std::optional<OptimizerArrays> optimizer = std::nullopt;
};

struct WrittenCheckpoint {
  std::int64_t size_bytes = 0;  // of the weights
  std::size_t file_count = 0;   // that hold them
  std::int64_t optimizer_bytes = 0;
  std::size_t optimizer_file_count = 0;
};

// The folder appears as a whole, durable, or not at all: it is written beside its place and
// renamed. Errors: ErrorCode::config where it is there already, or a number is too large for the
// type; those of `read` and of the drive. What was written is removed then.
Result<WrittenCheckpoint> write_checkpoint(const CheckpointFiles& files,
                                           const model::ModelShape& shape, const ReadElements& read,
                                           const OnWritten& on_written);

}  // namespace sluice::weights
