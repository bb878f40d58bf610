#pragma once
// JSON that others wrote, read within bounds: not deeper, and not of more values, than is asked
// for, no key twice, no byte behind it. Nothing of the text is trusted before.
//
// Thread contract: free functions, any thread.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::weights {

struct JsonPlace {
  std::string path;               // for messages
  std::int64_t offset_bytes = 0;  // of the text in that file
};

// The largest of a checkpoint with many experts has a hundred thousand tensors, and eight values of
// each.
inline constexpr std::size_t kJsonValuesMax = std::size_t{1} << 21;
inline constexpr std::size_t kJsonDepthMax = 16;

// An object. Errors (ErrorCode::corrupt) name the file and the byte, or the key.
Result<nlohmann::json> parse_json(std::string_view text, const JsonPlace& place);

// A whole file of at most `size_max_bytes`; `kind` is for messages: "configuration".
Result<std::string> read_text(const std::string& path, std::int64_t size_max_bytes,
                              std::string_view kind);

// A text of the file in a message: not longer than fits one.
std::string shortened(std::string_view text);

}  // namespace sluice::weights
