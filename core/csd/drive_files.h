#pragma once
// The files on one device's drive, by what they hold (stages::DriveFile): the state's, which the
// state store has opened, and scratch files, which belong to the run and are worth nothing after
// it. Without payload there are none.
//
// Thread contract: the schedule's thread; a file outlives the transfers that use it.

#include <array>
#include <optional>
#include <string>

#include "base/status.h"
#include "core/stages/stage.h"
#include "storage/io/file.h"

namespace sluice::csd {

class DriveFiles {
 public:
  // Uses a file that somebody else keeps open.
  void lend(stages::DriveFile which, const io::File* file) { files_[at(which)] = file; }
  // Makes a scratch file of `size_bytes` in `folder`, in place of what an earlier run left there.
  Status make_scratch(stages::DriveFile which, const std::string& folder, io::Caching caching,
                      std::int64_t size_bytes);
  // The same without a name in the folder, so that it goes with the program, however that ends.
  Status make_unnamed(stages::DriveFile which, const std::string& folder, io::Caching caching,
                      std::int64_t size_bytes);
  // Null: no payload.
  const io::File* find(stages::DriveFile which) const { return files_[at(which)]; }

 private:
  static std::size_t at(stages::DriveFile which) { return static_cast<std::size_t>(which); }

  std::array<const io::File*, stages::kDriveFileCount> files_{};
  std::array<std::optional<io::File>, stages::kDriveFileCount> scratch_;
};

}  // namespace sluice::csd
