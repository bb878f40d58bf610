#include "storage/state/snapshot.h"

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "storage/io/page_aligned_buffer.h"
#include "storage/state/checksum.h"
#include "storage/state/detail/disk.h"

namespace sluice::state {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kCopyBytes = std::int64_t{4} << 20;

class Copy {
 public:
  Copy(StateStore& from, StateStore& to, io::PageAlignedBuffer buffer, const Stops& stops)
      : from_(from), to_(to), buffer_(std::move(buffer)), stops_(stops) {}

  Result<SavedSnapshot> run() {
    CommitRecord record = from_.committed();
    const Geometry& geometry = from_.layout().geometry();
    for (std::int32_t s = 0; s < geometry.subgroup_count(); ++s) {
      SubgroupVersion& version = record.subgroups[static_cast<std::size_t>(s)];
      const SlotId to = to_.layout().current(SubgroupId{s});
      for (std::int32_t v = 0; v < geometry.variable_count; ++v) {
        RETURN_IF_ERROR(copy_array(SubgroupId{s}, v, version, to));
      }
      version.slot = to;
    }
    RETURN_IF_ERROR(to_.commit(record));
    return SavedSnapshot{record.position.step, copied_bytes_};
  }

 private:
  Status copy_array(SubgroupId subgroup, std::int32_t variable, const SubgroupVersion& version,
                    SlotId to) {
    const std::int64_t count = from_.layout().geometry().element_count(subgroup);
    const io::File& source = from_.file(version.slot.device);
    const io::File& target = to_.file(to.device);
    const std::int64_t source_bytes =
        from_.file_offset(from_.layout().extent(version.slot, variable, count));
    const std::int64_t target_bytes = to_.file_offset(to_.layout().extent(to, variable, count));
    const std::int64_t size_bytes = from_.layout().geometry().array_bytes(variable, count);
    Checksummer checksummer;
    for (std::int64_t done = 0; done < size_bytes;) {
      RETURN_IF_ERROR(unless_stopped(stops_, "keeping the snapshot"));
      const std::int64_t used = std::min(size_bytes - done, buffer_.size_bytes());
      const auto pages =
          buffer_.bytes().first(static_cast<std::size_t>(round_up(used, kPageBytes)));
      RETURN_IF_ERROR(source.read_exactly(source_bytes + done, pages));
      checksummer.add(pages.first(static_cast<std::size_t>(used)));
      RETURN_IF_ERROR(target.write_exactly(target_bytes + done, pages));
      done += used;
      copied_bytes_ += static_cast<std::int64_t>(pages.size());
    }
    if (checksummer.digest() == version.checksums[static_cast<std::size_t>(variable)]) {
      return ok_status();
    }
    return make_error(ErrorCode::corrupt,
                      "{}: {} of subgroup {} at offset {} is not what was committed; "
                      "`sluice state DIR --verify` lists all damage",
                      source.path(),
                      from_.identity().variable_names[static_cast<std::size_t>(variable)],
                      index_of(subgroup), source_bytes);
  }

  StateStore& from_;
  StateStore& to_;
  io::PageAlignedBuffer buffer_;
  const Stops& stops_;
  std::int64_t copied_bytes_ = 0;
};

DeviceMap devices_of(const StateStore& store) {
  DeviceMap map;
  for (const SubgroupVersion& version : store.committed().subgroups) {
    map.push_back(version.slot.device);
  }
  return map;
}

Result<SavedSnapshot> write_all(StateStore& store, const StateStore::Options& into,
                                const Stops& stops) {
  const Geometry& geometry = store.layout().geometry();
  ASSIGN_OR_RETURN(const std::unique_ptr<StateStore> copy,
                   StateStore::create(into, store.identity(), geometry, devices_of(store)));
  ASSIGN_OR_RETURN(io::PageAlignedBuffer buffer,
                   io::PageAlignedBuffer::allocate(std::min(kCopyBytes, geometry.slot_bytes())));
  return Copy(store, *copy, std::move(buffer), stops).run();
}

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

Result<SavedSnapshot> save_snapshot(StateStore& store, const StateStore::Options& into,
                                    const AddToSnapshot& add, const Stops& stops) {
  CHECK(!store.committed().subgroups.empty());  // nothing is committed yet
  std::error_code error;
  if (fs::exists(fs::symlink_status(into.directory, error))) {
    return make_error(ErrorCode::config,
                      "{}: is there already; move it away, or leave it if it is that step's",
                      into.directory);
  }
  StateStore::Options unfinished = into;
  unfinished.versions = Versions::one;
  unfinished.directory = into.directory + ".new";
  fs::remove_all(unfinished.directory, error);  // of one that was cut off
  detail::Disk disk(into.durability);
  Result<SavedSnapshot> saved = write_all(store, unfinished, stops);
  Status whole = saved.ok() ? ok_status() : Status(saved.error());
  if (whole.ok() && add) whole = add(unfinished.directory);
  if (whole.ok()) whole = disk.sync_directory(unfinished.directory);
  if (whole.ok()) whole = disk.rename(unfinished.directory, into.directory);
  if (whole.ok()) whole = disk.sync_directory(parent_of(into.directory));
  if (whole.ok()) return saved;
  fs::remove_all(unfinished.directory, error);
  return whole.error();
}

}  // namespace sluice::state
