#pragma once
// Tensors that lie in files together: one file, or pieces with an index where it would be too
// large, with the bytes of each header.
//
// Thread contract: plain data and free functions.

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/weights/safetensors.h"

namespace sluice::weights {

struct TensorOfSet {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t first = 0;  // element among all of the set's
  std::int64_t count = 0;
};

struct TensorSet {
  std::string stem;  // "model": model.safetensors, or model-00001-of-00003.safetensors
  std::vector<std::pair<std::string, std::string>> metadata;  // of every file
  ElementType type = ElementType::fp32;
  std::int64_t parameter_count = 0;  // of the model
  std::vector<TensorOfSet> tensors;  // one behind the other

  std::int64_t element_count() const;
  std::int64_t size_bytes() const { return element_count() * bytes_of(type); }
};

// The tensors of one file: consecutive ones of the set, and so consecutive elements.
struct PieceOfSet {
  std::string file;  // its name
  std::span<const TensorOfSet> tensors;

  std::int64_t first() const { return tensors.front().first; }
  std::int64_t count() const { return tensors.back().first + tensors.back().count - first(); }
};

// A tensor that is larger than `piece_bytes` is a piece of its own. The set outlives the pieces.
std::vector<PieceOfSet> pieces_of(const TensorSet& set, std::int64_t piece_bytes);
// What a file has before its tensors.
std::string header_of(const TensorSet& set, const PieceOfSet& piece);
// The text of the index.
std::string index_of(const TensorSet& set, std::span<const PieceOfSet> pieces);

}  // namespace sluice::weights
