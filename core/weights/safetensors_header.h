#pragma once
// The header of a safetensors file: a u64 (little-endian) length, JSON of that length, then the
// bytes of the tensors.
//
//   {"__metadata__": {"format": "pt"},
//    "model.norm.weight": {"dtype": "BF16", "shape": [4096], "data_offsets": [0, 8192]}, ...}
//
// The offsets count from the first byte behind the JSON. The tensors cover all of the rest, without
// overlap and without a hole.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sluice::weights {

inline constexpr std::int64_t kLengthBytes = 8;
inline constexpr std::int64_t kHeaderMaxBytes = 100'000'000;  // the reference library's limit

struct StoredTensor {
  std::string name;
  std::string dtype;  // in the file's words: "BF16"
  std::vector<std::int64_t> shape;
  std::int64_t offset_bytes = 0;  // in the file
  std::int64_t size_bytes = 0;

  std::int64_t element_count() const;
};

struct Header {
  std::vector<StoredTensor> tensors;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
};

// `data_begin` is the offset of the first of them in the
// file, and the file ends at `file_bytes`. Errors (ErrorCode::corrupt) name the byte or the tensor.
Result<Header> parse_header(std::string_view json, std::int64_t data_begin, std::int64_t file_bytes,
                            const std::string& path);

// "[48, 16]".
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace sluice::weights
