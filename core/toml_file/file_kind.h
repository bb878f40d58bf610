#pragma once
// Which of the three kinds of TOML file one is, by its keys: so that a model given for a run is
// told as that, and not by the first key that a run does not have.
//
// Thread contract: free functions.

#include <toml++/toml.h>

#include <cstdint>
#include <string>

#include "base/status.h"

namespace sluice::toml_file {

enum class FileKind : std::uint8_t { run, model, platform };

// ErrorCode::config if `table` has what another kind of file has, and nothing of the wanted kind;
// whatever else is wrong with it is for its reader.
Status check_kind(const toml::table& table, FileKind wanted, const std::string& path);

}  // namespace sluice::toml_file
