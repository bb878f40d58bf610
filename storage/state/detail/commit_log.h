#pragma once
// commit.slc: the header and the two record areas. docs/state_format.md, "Commit log".
// Thread contract: used by one thread at a time.

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "storage/io/file.h"
#include "storage/io/page_aligned_buffer.h"
#include "storage/state/detail/commit_codec.h"
#include "storage/state/detail/disk.h"
#include "storage/state/detail/file_header.h"

namespace sluice::state::detail {

std::int64_t log_bytes(const Geometry& geometry);  // of the whole file

// Header page of a log or device file that is open.
Result<FileHeader> read_header(const io::File& file, bool is_log);

class CommitLog {
 public:
  static Result<CommitLog> open(const std::string& path, const io::File::Options& options);

  const FileHeader& header() const { return header_; }
  const io::File& file() const { return file_; }
  const std::string& path() const { return file_.path(); }

  // The current commit; ErrorCode::not_found if there never was one, ErrorCode::corrupt if none is
  // whole. May run beside a process that appends.
  Result<CommitRecord> read_newest();

  // The commit before the current one becomes the current one again, durably, if it is of `step`.
  // ErrorCode::not_found if it is of another step or not whole, with what there is.
  Status return_to(Disk& disk, std::int64_t step);

  // Makes `record` current and durable, or says why it is not: then a later read_newest sees what
  // it would have seen before. Allocates nothing.
  Status append(Disk& disk, const CommitRecord& record);

 private:
  struct Areas;

  CommitLog(io::File file, FileHeader header, io::PageAlignedBuffer area)
      : file_(std::move(file)), header_(std::move(header)), area_(std::move(area)) {}
  std::int64_t area_offset(std::uint64_t sequence) const;
  Result<Areas> read_areas();
  Status clear(Disk& disk, std::int64_t offset_bytes);
  Status withdraw(Disk& disk, std::int64_t offset_bytes, const Error& cause);

  io::File file_;
  FileHeader header_;
  io::PageAlignedBuffer area_;     // one area: for reading and for writing
  std::uint64_t sequence_ = 0;     // of the current commit; 0: none yet
  std::optional<Error> in_doubt_;  // a failed commit that could not be withdrawn
};

}  // namespace sluice::state::detail
