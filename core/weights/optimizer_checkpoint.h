#pragma once
// The arrays of an optimizer's state in a folder, optimizer.safetensors or its pieces, as the flat
// arrays of a model's state (docs/weights.md).
//
// Thread contract: immutable after open; fill() may be called from any number of threads.

#include <span>
#include <string>
#include <vector>

#include "core/model/model_shape.h"
#include "core/weights/tensor_match.h"

namespace sluice::weights {

class OptimizerCheckpoint {
 public:
  struct Wanted {
    const model::ModelShape& shape;
    std::string optimizer;                // the run's: "adamw"
    std::span<const char* const> arrays;  // of its state, but for the master weights
  };
  // Reads headers alone. Errors: ErrorCode::not_found where the folder has no such file;
  // ErrorCode::config for another optimizer or format, tensors that are missing or left over (up
  // to five of each are named, with the nearest name), other shapes, and dtypes but F32.
  static Result<OptimizerCheckpoint> open(const std::string& folder, const Wanted& wanted);

  // Flat elements [first, first + out.size()) of an array, which counts from 0. Takes no memory
  // beside `out`. Errors: ErrorCode::config for a NaN, and in sums of squares for what is below 0.
  Status fill(std::size_t array, std::int64_t first, std::span<float> out) const;

  std::int64_t step() const { return step_; }  // updates that were made
  const std::string& folder() const { return folder_; }
  std::string description() const;  // "adamw after 300 updates, 42 tensors in 1 file"

 private:
  OptimizerCheckpoint(std::string folder, model::FlatLayout layout,
                      std::vector<SafetensorsFile> files)
      : folder_(std::move(folder)), layout_(std::move(layout)), files_(std::move(files)) {}
  Status read_metadata(const std::string& optimizer);
  Status match(const Wanted& wanted);
  Status check_values(std::size_t array, std::int64_t first, std::span<const float> values) const;

  struct Array {
    bool is_squares = false;
    std::vector<TensorPlace> places;  // in the order of the layout's tensors
  };

  std::string folder_;
  model::FlatLayout layout_;
  std::vector<SafetensorsFile> files_;
  std::string optimizer_;
  std::int64_t step_ = 0;
  std::vector<Array> arrays_;  // of files_, which stay where they are when the owner moves
};

}  // namespace sluice::weights
