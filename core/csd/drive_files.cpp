#include "core/csd/drive_files.h"

#include <filesystem>

namespace sluice::csd {

Status DriveFiles::make_scratch(stages::DriveFile which, const std::string& folder,
                                io::Caching caching, std::int64_t size_bytes) {
  const std::string path =
      (std::filesystem::path(folder) / stages::drive_file_name(which)).string();
  std::error_code ignored;
  std::filesystem::remove(path, ignored);  // create_new says if it is still there
  ASSIGN_OR_RETURN(io::File file, io::File::open(path, {io::FileAccess::create_new, caching}));
  if (size_bytes > 0) RETURN_IF_ERROR(file.allocate(size_bytes));  // 0: a device with no share
  scratch_[at(which)] = std::move(file);
  files_[at(which)] = &*scratch_[at(which)];
  return ok_status();
}

Status DriveFiles::make_unnamed(stages::DriveFile which, const std::string& folder,
                                io::Caching caching, std::int64_t size_bytes) {
  RETURN_IF_ERROR(make_scratch(which, folder, caching, 0));
  const io::File& file = *files_[at(which)];
  std::error_code error;
  std::filesystem::remove(file.path(), error);
  if (error) {
    return make_error(ErrorCode::io, "{}: cannot be unlinked: {}", file.path(), error.message());
  }
  return size_bytes > 0 ? file.allocate(size_bytes) : ok_status();
}

}  // namespace sluice::csd
