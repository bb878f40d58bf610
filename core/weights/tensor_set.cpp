#include "core/weights/tensor_set.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "core/weights/checkpoint_index.h"

namespace sluice::weights {

using nlohmann::json;
using nlohmann::ordered_json;

std::int64_t TensorSet::element_count() const {
  return tensors.empty() ? 0 : tensors.back().first + tensors.back().count;
}

std::vector<PieceOfSet> pieces_of(const TensorSet& set, std::int64_t piece_bytes) {
  std::vector<PieceOfSet> pieces;
  std::int64_t used_bytes = 0;
  for (std::size_t t = 0; t < set.tensors.size(); ++t) {
    const std::int64_t size_bytes = set.tensors[t].count * bytes_of(set.type);
    if (pieces.empty() || used_bytes + size_bytes > piece_bytes) {
      pieces.push_back({"", std::span(set.tensors).subspan(t, 0)});
      used_bytes = 0;
    }
    std::span<const TensorOfSet>& tensors = pieces.back().tensors;
    tensors = {tensors.data(), tensors.size() + 1};
    used_bytes += size_bytes;
  }
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    pieces[p].file = pieces.size() == 1 ? whole_file(set.stem)
                                        : fmt::format("{}-{:05}-of-{:05}.safetensors", set.stem,
                                                      p + 1, pieces.size());
  }
  return pieces;
}

// Padded with spaces, so that the tensors begin at a multiple of eight bytes.
std::string header_of(const TensorSet& set, const PieceOfSet& piece) {
  ordered_json header;
  for (const auto& [key, value] : set.metadata) header["__metadata__"][key] = value;
  std::int64_t begin = 0;
  for (const TensorOfSet& tensor : piece.tensors) {
    const std::int64_t end = begin + tensor.count * bytes_of(set.type);
    ordered_json& entry = header[tensor.name];
    entry["dtype"] = dtype_name(set.type);
    entry["shape"] = tensor.shape;
    entry["data_offsets"] = {begin, end};
    begin = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t size = text.size();
  std::string bytes(sizeof size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes + text;
}

std::string index_of(const TensorSet& set, std::span<const PieceOfSet> pieces) {
  json index;
  index["metadata"] = {{"total_parameters", set.parameter_count}, {"total_size", set.size_bytes()}};
  for (const PieceOfSet& piece : pieces) {
    for (const TensorOfSet& tensor : piece.tensors) index["weight_map"][tensor.name] = piece.file;
  }
  return index.dump(2) + "\n";
}

}  // namespace sluice::weights
