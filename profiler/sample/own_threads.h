#pragma once
// The threads of this process, as /proc has them.
//
// Thread contract: free functions, any thread.

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::sample {

struct OwnThread {
  std::uint32_t tid = 0;
  std::string name = {};  // "" where it has ended meanwhile
};
std::vector<OwnThread> own_threads();  // by tid

}  // namespace sluice::sample
