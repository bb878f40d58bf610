#include "storage/state/detail/commit_log.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::state::detail {

std::int64_t log_bytes(const Geometry& geometry) { return kHeaderBytes + 2 * area_bytes(geometry); }

Result<FileHeader> read_header(const io::File& file, bool is_log) {
  ASSIGN_OR_RETURN(const std::int64_t size_bytes, file.size_bytes());
  if (size_bytes < kHeaderBytes)
    return make_error(ErrorCode::corrupt,
                      "{}: ends at offset {}, inside the header page of {} bytes: it was cut short "
                      "or is a foreign file",
                      file.path(), size_bytes, kHeaderBytes);
  ASSIGN_OR_RETURN(io::PageAlignedBuffer page, io::PageAlignedBuffer::allocate(kHeaderBytes));
  RETURN_IF_ERROR(file.read_exactly(0, page.bytes()));
  return decode_header(page.bytes(), is_log, file.path());
}

Result<CommitLog> CommitLog::open(const std::string& path, const io::File::Options& options) {
  ASSIGN_OR_RETURN(io::File file, io::File::open(path, options));
  ASSIGN_OR_RETURN(FileHeader header, read_header(file, true));
  ASSIGN_OR_RETURN(const std::int64_t size_bytes, file.size_bytes());
  if (size_bytes != log_bytes(header.geometry))
    return make_error(ErrorCode::corrupt,
                      "{}: ends at offset {}, and a log of {} subgroups ends at {}: it was {}",
                      path, size_bytes, header.geometry.subgroup_count(),
                      log_bytes(header.geometry),
                      size_bytes < log_bytes(header.geometry) ? "cut short" : "added to");
  ASSIGN_OR_RETURN(io::PageAlignedBuffer area,
                   io::PageAlignedBuffer::allocate(area_bytes(header.geometry)));
  return CommitLog(std::move(file), std::move(header), std::move(area));
}

std::int64_t CommitLog::area_offset(std::uint64_t sequence) const {
  return kHeaderBytes + static_cast<std::int64_t>(sequence % 2) * area_bytes(header_.geometry);
}

struct CommitLog::Areas {
  std::optional<SequencedRecord> newest;
  bool all_empty = true;
  std::array<std::string, 2> contents;  // in words
};

Result<CommitLog::Areas> CommitLog::read_areas() {
  Areas areas;
  for (int index = 0; index < 2; ++index) {
    RETURN_IF_ERROR(
        file_.read_exactly(area_offset(static_cast<std::uint64_t>(index)), area_.bytes()));
    if (is_empty_area(area_.bytes())) {
      areas.contents[index] = "empty";
      continue;
    }
    areas.all_empty = false;
    Result<SequencedRecord> found = decode_record(header_, index, area_.bytes());
    if (!found.ok()) {
      areas.contents[index] = "damaged: " + found.error().message();
    } else if (!areas.newest || areas.newest->sequence < found->sequence) {
      areas.newest = std::move(*found);
    }
  }
  return areas;
}

Result<CommitRecord> CommitLog::read_newest() {
  // A process that commits between our two reads can make both areas look torn. It does so once a
  // commit, so reading again settles it; a file that is really damaged stays so.
  constexpr int kAttempts = 3;
  Areas areas;
  for (int attempt = 0; attempt < kAttempts && !areas.newest; ++attempt) {
    ASSIGN_OR_RETURN(areas, read_areas());
  }
  if (areas.newest) {
    sequence_ = areas.newest->sequence;
    return std::move(areas.newest->record);
  }
  if (areas.all_empty)
    return make_error(ErrorCode::not_found,
                      "{}: this optimizer state was created and never committed: its run ended "
                      "before the initial values were written; leave out --resume to begin again",
                      path());
  return make_error(ErrorCode::corrupt,
                    "{}: no whole commit record: the one at offset {} is {}; the one at offset {} "
                    "is {}. The first commit was cut off, or the file was changed; use a copy, or "
                    "remove the state and start again",
                    path(), area_offset(0), areas.contents[0], area_offset(1), areas.contents[1]);
}

Status CommitLog::append(Disk& disk, const CommitRecord& record) {
  if (in_doubt_) return *in_doubt_;
  const std::uint64_t sequence = sequence_ + 1;
  const std::int64_t offset_bytes = area_offset(sequence);
  encode_record(header_, sequence, record, area_.bytes());
  Status durable = disk.write(file_, offset_bytes, area_.bytes());
  if (durable.ok()) durable = disk.sync(file_);
  if (!durable.ok()) return withdraw(disk, offset_bytes, durable.error());
  sequence_ = sequence;
  return ok_status();
}

Status CommitLog::clear(Disk& disk, std::int64_t offset_bytes) {
  const std::span<std::byte> page = area_.bytes().first(static_cast<std::size_t>(kPageBytes));
  std::fill(page.begin(), page.end(), std::byte{0});
  RETURN_IF_ERROR(disk.write(file_, offset_bytes, page));
  return disk.sync(file_);
}

Status CommitLog::return_to(Disk& disk, std::int64_t step) {
  ASSIGN_OR_RETURN(const CommitRecord newest, read_newest());
  if (newest.position.step == step) return ok_status();
  const std::uint64_t before = sequence_ - 1;
  RETURN_IF_ERROR(file_.read_exactly(area_offset(before), area_.bytes()));
  const auto older = decode_record(header_, static_cast<int>(before % 2), area_.bytes());
  if (!older.ok() || older->sequence != before || older->record.position.step != step) {
    return make_error(ErrorCode::not_found,
                      "{}: cannot go back to step {}: the last commit is of step {}, and the one "
                      "before it {}",
                      path(), step, newest.position.step,
                      !older.ok() || older->sequence != before
                          ? "is not there"
                          : fmt::format("of step {}", older->record.position.step));
  }
  RETURN_IF_ERROR(clear(disk, area_offset(sequence_)));
  sequence_ = before;
  return ok_status();
}

// The outcome of a failed write or sync is unknown: a later open must not find the record, since
// its slots will be written again.
Status CommitLog::withdraw(Disk& disk, std::int64_t offset_bytes, const Error& cause) {
  const Status withdrawn = clear(disk, offset_bytes);
  if (withdrawn.ok())
    return cause.with_context("the commit failed and the one before it is current");
  in_doubt_ = make_error(cause.code(),
                         "the commit failed ({}) and could not be withdrawn ({}): the drive may "
                         "hold either commit. End this run; opening the state again finds which",
                         cause.message(), withdrawn.error().message());
  return *in_doubt_;
}

}  // namespace sluice::state::detail
