#pragma once
// A place for all ranks' records as one database (profiler/report/merged_record.h) that is this
// process's own: beside nobody's data, and gone with the object. What a process that was killed
// left is removed when the next one makes such a place.
//
// Thread contract: one thread at a time; any.

#include <string>

#include "base/status.h"

namespace sluice::report {

// ${XDG_CACHE_HOME:-~/.cache}/sluice/merged: on a disk, since the file is as long as all ranks'.
std::string merged_folder();

class MergedFile {
 public:
  // In a new folder below `folder`, locked for as long as the object lives.
  static Result<MergedFile> create(const std::string& folder = merged_folder());
  MergedFile(MergedFile&& other) noexcept;
  MergedFile& operator=(MergedFile&&) = delete;
  ~MergedFile();

  // Where merge_records() is to write; nothing is there at first.
  const std::string& path() const { return path_; }

 private:
  MergedFile(std::string folder, int lock_fd);

  std::string folder_;
  std::string path_;
  int lock_fd_;  // -1: moved from
};

}  // namespace sluice::report
