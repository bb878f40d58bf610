#pragma once
// Arrays of a session's state as tensors of a safetensors file.
//
// Thread contract: a free function, called between two steps; blocks on the drives.

#include <string>
#include <vector>

#include "core/session/session.h"

namespace sluice::session {

struct StateFile {
  std::string folder;  // which is there
  std::string stem;    // the file is STEM.safetensors, and is not there yet
  std::string optimizer;
  struct Entry {
    std::string name;
    std::vector<std::int64_t> shape;
    std::size_t tensor = 0;  // of the session
    std::size_t array = 0;   // SessionState::arrays()
  };
  std::vector<Entry> entries = {};
};

// The file, durable; its metadata are those of weights/optimizer_names.h. Takes a few buffers of
// memory, whatever the size of the state. Errors: those of SessionState::read() and of the drive.
Status write_state_file(Session& session, const StateFile& file);

}  // namespace sluice::session
