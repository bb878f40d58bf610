#pragma once
// Hugging Face's config.json as the model that it tells of. Whatever would make another model than
// the one that is trained here is refused by its field's name (docs/weights.md).
//
// Thread contract: free functions.

#include <string>
#include <string_view>
#include <vector>

#include "core/model/model_shape.h"

namespace sluice::weights {

struct HuggingFaceConfig {
  model::ModelShape shape;
  // A sentence for each field that asks for what training does not do, though the model is the
  // same: dropout.
  std::vector<std::string> notes;
};

// `path` is the file's. The shape's name is that of the file's folder.
Result<HuggingFaceConfig> load_config(const std::string& path);
Result<HuggingFaceConfig> parse_config(std::string_view json, const std::string& path,
                                       const std::string& name);

// The reverse, for a model that was not begun from a folder. Errors (ErrorCode::unsupported): no
// class of Hugging Face's that is read here has this shape. `dtype` is torch's word: "bfloat16".
Result<std::string> config_text(const model::ModelShape& shape, std::string_view dtype);
// The text of a config.json with its dtype changed.
Result<std::string> with_dtype(std::string_view json, const std::string& path,
                               std::string_view dtype);

}  // namespace sluice::weights
