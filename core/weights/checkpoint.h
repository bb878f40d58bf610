#pragma once
// The weights of a folder of Hugging Face's, as the flat parameters of a model.
//
// Thread contract: immutable after open; fill() may be called from any number of threads.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/model/model_shape.h"
#include "core/weights/tensor_match.h"

namespace sluice::weights {

class Checkpoint {
 public:
  // Nothing: the folder has no weights, and its configuration alone is a model. Reads headers, and
  // of a tied output table that is in the file all of it. Errors: those of open_weights() and
  // match_tensors(); ErrorCode::config for an output table that is tied and another one.
  static Result<std::optional<Checkpoint>> open(const std::string& folder,
                                                const model::ModelShape& shape);

  // Flat elements [first, first + out.size()), widened to fp32; those of new tensors stay as they
  // are. Takes no memory beside `out`.
  Status fill(std::int64_t first, std::span<float> out) const;
  // Names of the tensors that a run begins anew, since the folder has none: of a classifier's head.
  std::vector<std::string> new_tensors() const;

  const std::string& folder() const { return folder_; }
  std::string description() const;    // "26 tensors of BF16 in 3 files", and which are new
  std::uint64_t fingerprint() const;  // of names, dtypes and shapes, not of what is in them
  // The same with some values of each tensor: at both of its ends and in the middle.
  Result<std::uint64_t> sample() const;

 private:
  Checkpoint(std::string folder, model::FlatLayout layout, std::vector<SafetensorsFile> files)
      : folder_(std::move(folder)), layout_(std::move(layout)), files_(std::move(files)) {}
  Status check_tied(const model::ModelShape& shape) const;

  std::string folder_;
  model::FlatLayout layout_;
  std::vector<SafetensorsFile> files_;
  TensorMatch match_;  // of files_, which stay where they are when the owner moves
};

// The weights of a model by its path (core/weights/model_folder.h); none: it has none, or is a
// model file.
Result<std::optional<Checkpoint>> open_checkpoint(const std::string& path,
                                                  const model::ModelShape& shape);

}  // namespace sluice::weights
