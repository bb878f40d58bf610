#pragma once
// The adapters of a folder in PEFT's layout, adapter_model.safetensors, as the flat parameters of a
// shape that has adapters (docs/lora.md).
//
// Thread contract: immutable after open; fill() may be called from any number of threads.

#include <span>
#include <string>
#include <vector>

#include "core/model/model_shape.h"
#include "core/weights/tensor_match.h"

namespace sluice::weights {

class AdapterCheckpoint {
 public:
  // Reads headers alone. Errors: those of load_adapter_config(); ErrorCode::config where rank,
  // alpha or linear layers are not the shape's, with what to set; tensors that are missing or left
  // over, and other shapes.
  static Result<AdapterCheckpoint> open(const std::string& folder, const model::ModelShape& shape);

  // Flat elements [first, first + out.size()), widened to fp32.
  Status fill(std::int64_t first, std::span<float> out) const;

  const std::string& folder() const { return folder_; }
  std::string description() const;  // "8 tensors of F32"
  std::span<const std::string> notes() const { return notes_; }

 private:
  AdapterCheckpoint(std::string folder, model::FlatLayout layout,
                    std::vector<SafetensorsFile> files)
      : folder_(std::move(folder)), layout_(std::move(layout)), files_(std::move(files)) {}
  Status match(const model::ModelShape& shape);

  std::string folder_;
  model::FlatLayout layout_;
  std::vector<SafetensorsFile> files_;
  std::vector<TensorPlace> places_;  // of files_, which stay where they are when the owner moves
  std::vector<std::string> notes_;
};

}  // namespace sluice::weights
