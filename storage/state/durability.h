#pragma once
// When a state is forced to its drives.
//
// Thread contract: plain data.

namespace sluice::state {

// never: no fsync or fdatasync at all, so a crash of the machine may lose or mix commits (the
// checksums tell); for benchmarks of the rest.
enum class Durability { every_commit, never };

}  // namespace sluice::state
