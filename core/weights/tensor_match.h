#pragma once
// The tensors of a checkpoint's files that are those of a model's layout: each once, none missing,
// none left over, and of the layout's shapes. A model that classifies may begin with the weights of
// one that was pretrained, which has no classifier, and maybe no pooler.
//
// Thread contract: free functions.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/model/model_shape.h"
#include "core/weights/safetensors.h"

namespace sluice::weights {

struct TensorPlace {
  const SafetensorsFile* file = nullptr;
  const StoredTensor* tensor = nullptr;
  bool is_there() const { return tensor != nullptr; }
};

using PlacesByName = std::map<std::string, TensorPlace>;

struct TensorMatch {
  // In the order of the layout's tensors; those of a new head are not there.
  std::vector<TensorPlace> places;
  // An output table of a model whose output table is the token table; it must be the same.
  TensorPlace tied_copy;
};

// The files outlive the match. Errors (ErrorCode::config; unsupported for a dtype that is no
// weights') name up to five tensors of each kind, with the nearest names.
Result<TensorMatch> match_tensors(std::span<const SafetensorsFile> files,
                                  const model::ModelShape& shape, const model::FlatLayout& layout,
                                  const std::string& folder);

// How the names that were found differ from the wanted ones, as a text; empty: they do not.
std::string name_difference(const PlacesByName& found, std::span<const std::string> wanted);

// Flat elements [first, first + out.size()) of tensors that lie at `places`, in the layout's order,
// widened to fp32; those of tensors that are not there stay as they are. Takes no memory beside
// `out`. Errors: those of the files.
Status read_elements(const model::FlatLayout& layout, std::span<const TensorPlace> places,
                     std::int64_t first, std::span<float> out);

}  // namespace sluice::weights
