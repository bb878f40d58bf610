#include "storage/state/state_store.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/check.h"
#include "storage/state/detail/commit_log.h"
#include "storage/state/detail/create_files.h"
#include "storage/state/detail/device_files.h"
#include "storage/state/detail/disk.h"
#include "storage/state/detail/file_names.h"
#include "storage/state/detail/kept_files.h"
#include "storage/state/detail/open_store.h"
#include "storage/state/detail/parallel_sync.h"
#include "storage/state/detail/state_lock.h"

namespace sluice::state {
namespace {

using detail::CommitLog;
using detail::Disk;
using detail::KeptFile;
using detail::StateLock;

// The parts of an open state. Without a lock and a disk it is read-only.
struct Parts {
  StateStore::Options options;
  std::optional<StateLock> lock;
  std::unique_ptr<Disk> disk;
  CommitLog log;
  std::vector<io::File> files;  // a device
};

class FileStateStore final : public StateStore {
 public:
  FileStateStore(Parts parts, Layout layout, CommitRecord committed, std::vector<KeptFile> kept)
      : parts_(std::move(parts)),
        layout_(std::move(layout)),
        committed_(std::move(committed)),
        kept_(std::move(kept)) {
    if (parts_.disk != nullptr) device_syncs_.emplace(*parts_.disk, parts_.files);
  }

  const StateIdentity& identity() const override { return parts_.log.header().identity; }
  Layout& layout() override { return layout_; }
  const CommitRecord& committed() const override { return committed_; }
  const io::File& file(DeviceId device) const override {
    CHECK(index_of(device) >= 0 && index_of(device) < layout_.geometry().device_count);
    return parts_.files[index_of(device)];
  }
  std::int64_t file_offset(const Extent& extent) const override {
    return detail::kHeaderBytes + extent.offset_bytes;
  }
  Status reserve() override;
  Status reserve(const DeviceMap& device_map) override;
  Status fit() override;
  Status write_commit(const CommitRecord& record) override;
  void finish_commit(const CommitRecord& record) override;
  Result<CommitId> keep(const std::string& keeper) override;
  Status release(const CommitId& id) override;
  std::vector<KeptCommit> kept() const override;
  Status check_files() const override;

 private:
  std::vector<KeptFile>::iterator find_kept(const CommitId& id);
  void check_record(const CommitRecord& record) const;
  Status check_file(const io::File& file) const;

  Parts parts_;
  Layout layout_;
  CommitRecord committed_;
  std::vector<KeptFile> kept_;  // by step
  std::optional<detail::ParallelSync> device_syncs_;
  std::optional<Error> lost_data_;  // a device's fdatasync failed
};

Status FileStateStore::reserve() {
  CHECK(parts_.disk != nullptr);  // opened read-only
  for (const io::File& file : parts_.files) {
    const DeviceId device{static_cast<std::int32_t>(&file - parts_.files.data())};
    const std::int64_t wanted_bytes = detail::kHeaderBytes + layout_.data_bytes(device);
    ASSIGN_OR_RETURN(const std::int64_t size_bytes, file.size_bytes());
    if (size_bytes < wanted_bytes) RETURN_IF_ERROR(parts_.disk->allocate(file, wanted_bytes));
  }
  return ok_status();
}

Status FileStateStore::reserve(const DeviceMap& device_map) {
  CHECK(parts_.disk != nullptr);  // opened read-only
  const Geometry& geometry = layout_.geometry();
  CHECK_EQ(std::ssize(device_map), geometry.subgroup_count());
  for (std::int32_t d = 0; d < geometry.device_count; ++d) {
    const io::File& file = parts_.files[static_cast<std::size_t>(d)];
    const std::int64_t wanted_bytes =
        device_file_bytes(geometry, std::ranges::count(device_map, DeviceId{d}));
    ASSIGN_OR_RETURN(const std::int64_t size_bytes, file.size_bytes());
    if (size_bytes >= wanted_bytes) continue;
    const Status reserved = parts_.disk->allocate(file, wanted_bytes);
    if (reserved.ok()) continue;
    if (const Status restored = fit(); !restored.ok()) {
      return reserved.error().with_context("what others have reserved could not be given back");
    }
    return reserved;
  }
  return ok_status();
}

Status FileStateStore::fit() {
  CHECK(parts_.disk != nullptr);  // opened read-only
  layout_.fit();
  for (std::int32_t d = 0; d < layout_.geometry().device_count; ++d) {
    const io::File& file = parts_.files[static_cast<std::size_t>(d)];
    const std::int64_t wanted_bytes = detail::kHeaderBytes + layout_.data_bytes(DeviceId{d});
    ASSIGN_OR_RETURN(const std::int64_t size_bytes, file.size_bytes());
    if (size_bytes != wanted_bytes) RETURN_IF_ERROR(parts_.disk->allocate(file, wanted_bytes));
  }
  return ok_status();
}

// A record that does not say where the data were written would lose them without a sign.
void FileStateStore::check_record(const CommitRecord& record) const {
  CHECK_EQ(record.subgroups.size(), static_cast<std::size_t>(layout_.geometry().subgroup_count()));
  for (std::size_t s = 0; s < record.subgroups.size(); ++s) {
    const SubgroupId subgroup{static_cast<std::int32_t>(s)};
    const bool is_rewritten = layout_.next(subgroup) != kNoSlot;
    CHECK(record.subgroups[s].slot ==
          (is_rewritten ? layout_.next(subgroup) : layout_.current(subgroup)));
    if (!is_rewritten && !committed_.subgroups.empty())
      CHECK(record.subgroups[s].checksums == committed_.subgroups[s].checksums);
  }
}

Status FileStateStore::write_commit(const CommitRecord& record) {
  CHECK(parts_.disk != nullptr);  // opened read-only
  check_record(record);
  if (lost_data_) return *lost_data_;
  if (Status synced = device_syncs_->sync_all(); !synced.ok()) {
    // The kernel reports a lost write once: a second fdatasync would succeed without the data.
    lost_data_ = synced.error().with_context(
        "the commit failed and the one before it is current; end this run, since the drive may "
        "have lost what was written");
    return *lost_data_;
  }
  RETURN_IF_ERROR(check_files());
  return parts_.log.append(*parts_.disk, record);
}

void FileStateStore::finish_commit(const CommitRecord& record) {
  layout_.commit();
  committed_ = record;
}

std::vector<KeptFile>::iterator FileStateStore::find_kept(const CommitId& id) {
  return std::ranges::find(kept_, id, [](const KeptFile& file) { return file.kept.id; });
}

Result<CommitId> FileStateStore::keep(const std::string& keeper) {
  CHECK(parts_.disk != nullptr);         // opened read-only
  CHECK(!committed_.subgroups.empty());  // nothing is committed yet
  if (lost_data_) return *lost_data_;
  KeptFile wanted{{id_of(committed_, layout_.geometry().variable_count), keeper}, committed_};
  if (const auto found = find_kept(wanted.kept.id); found != kept_.end()) {
    if (found->kept.keeper == keeper) return wanted.kept.id;
    RETURN_IF_ERROR(detail::write_keeper(parts_.options, wanted.kept));
    found->kept.keeper = keeper;
    return wanted.kept.id;
  }
  layout_.keep();
  Status written = reserve();
  if (written.ok()) {
    written = detail::write_kept_file(*parts_.disk, parts_.options, parts_.log.header(), wanted);
  }
  if (!written.ok()) {
    layout_.release(detail::slots_of(committed_));
    const Status restored = fit();
    static_cast<void>(restored);  // files that are larger than they need be do no harm
    return written.error().with_context(
        fmt::format("step {} cannot be kept", committed_.position.step));
  }
  const CommitId id = wanted.kept.id;
  const auto place = std::ranges::upper_bound(
      kept_, id.step, {}, [](const KeptFile& file) { return file.kept.id.step; });
  kept_.insert(place, std::move(wanted));
  return id;
}

Status FileStateStore::release(const CommitId& id) {
  CHECK(parts_.disk != nullptr);  // opened read-only
  const auto found = find_kept(id);
  if (found == kept_.end()) {
    return make_error(ErrorCode::not_found, "{}: step {} of version {} is not kept",
                      parts_.options.directory, id.step, id.version);
  }
  RETURN_IF_ERROR(detail::remove_kept_file(*parts_.disk, parts_.options.directory, id));
  layout_.release(detail::slots_of(found->record));
  kept_.erase(found);
  return fit();
}

std::vector<KeptCommit> FileStateStore::kept() const {
  std::vector<KeptCommit> kept;
  for (const KeptFile& file : kept_) kept.push_back(file.kept);
  return kept;
}

Status FileStateStore::check_file(const io::File& file) const {
  const std::string why = file.why_name_is_lost();
  if (why.empty()) return ok_status();
  return make_error(
      ErrorCode::io,
      "the state's file {} is no longer there: {}; the last commit, of step {}, is in "
      "that file, and where its name leads a resume would not find it",
      file.path(), why, committed_.position.step);
}

Status FileStateStore::check_files() const {
  for (const io::File& file : parts_.files) RETURN_IF_ERROR(check_file(file));
  return check_file(parts_.log.file());
}

Status check_directory(const std::string& directory) {
  if (StateStore::exists(directory)) return ok_status();
  std::error_code ignored;
  if (!std::filesystem::is_directory(directory, ignored))
    return make_error(ErrorCode::not_found, "{}: there is no such folder", directory);
  return make_error(ErrorCode::not_found, "{}: holds no optimizer state (no commit.slc)",
                    directory);
}

Result<Parts> open_parts(const StateStore::Options& options, io::FileAccess access,
                         std::optional<StateLock> lock, std::unique_ptr<Disk> disk) {
  ASSIGN_OR_RETURN(CommitLog log,
                   CommitLog::open(detail::log_path(options.directory), {access, options.caching}));
  ASSIGN_OR_RETURN(std::vector<io::File> files,
                   detail::open_device_files(options, access, log.header()));
  return Parts{options, std::move(lock), std::move(disk), std::move(log), std::move(files)};
}

Result<std::unique_ptr<FileStateStore>> open_at_last_commit(Parts parts) {
  ASSIGN_OR_RETURN(CommitRecord committed, parts.log.read_newest());
  const Geometry& geometry = parts.log.header().geometry;
  RETURN_IF_ERROR(detail::check_slots(committed, geometry, parts.files, parts.log.path()));
  std::vector<KeptFile> kept;
  std::vector<SlotId> held;
  if (parts.disk != nullptr) {  // else nobody writes, and a live run may release them meanwhile
    ASSIGN_OR_RETURN(kept, detail::read_kept_files(parts.options, parts.log.header()));
    for (const KeptFile& file : kept) {
      RETURN_IF_ERROR(detail::check_slots(file.record, geometry, parts.files, parts.log.path()));
      std::ranges::copy(detail::slots_of(file.record), std::back_inserter(held));
    }
  }
  Layout layout(geometry, detail::slots_of(committed), held);
  return std::make_unique<FileStateStore>(std::move(parts), std::move(layout), std::move(committed),
                                          std::move(kept));
}

}  // namespace

namespace detail {

Result<std::unique_ptr<StateStore>> create_store(const StateStore::Options& options,
                                                 const StateIdentity& identity,
                                                 const Geometry& geometry,
                                                 const DeviceMap& device_map,
                                                 std::unique_ptr<Disk> disk) {
  RETURN_IF_ERROR(check_representable(identity, geometry));
  Layout layout(geometry, device_map);
  RETURN_IF_ERROR(disk->make_directory(options.directory));
  ASSIGN_OR_RETURN(StateLock lock, StateLock::take(options.directory));
  RETURN_IF_ERROR(create_files(*disk, options, identity, layout));
  ASSIGN_OR_RETURN(Parts parts, open_parts(options, io::FileAccess::read_write, std::move(lock),
                                           std::move(disk)));
  return std::make_unique<FileStateStore>(std::move(parts), std::move(layout), CommitRecord{},
                                          std::vector<KeptFile>());
}

Result<std::unique_ptr<StateStore>> open_store(const StateStore::Options& options,
                                               std::unique_ptr<Disk> disk) {
  RETURN_IF_ERROR(check_directory(options.directory));
  ASSIGN_OR_RETURN(StateLock lock, StateLock::take(options.directory));
  ASSIGN_OR_RETURN(Parts parts, open_parts(options, io::FileAccess::read_write, std::move(lock),
                                           std::move(disk)));
  ASSIGN_OR_RETURN(std::unique_ptr<FileStateStore> store, open_at_last_commit(std::move(parts)));
  RETURN_IF_ERROR(store->reserve());
  return store;
}

}  // namespace detail

Result<std::unique_ptr<StateStore>> StateStore::create(const Options& options,
                                                       const StateIdentity& identity,
                                                       const Geometry& geometry,
                                                       const DeviceMap& device_map) {
  return detail::create_store(options, identity, geometry, device_map,
                              std::make_unique<Disk>(options.durability));
}

Result<std::unique_ptr<StateStore>> StateStore::open(const Options& options) {
  return detail::open_store(options, std::make_unique<Disk>(options.durability));
}

Result<std::unique_ptr<StateStore>> StateStore::open_read_only(const Options& options) {
  RETURN_IF_ERROR(check_directory(options.directory));
  ASSIGN_OR_RETURN(Parts parts,
                   open_parts(options, io::FileAccess::read_only, std::nullopt, nullptr));
  ASSIGN_OR_RETURN(std::unique_ptr<FileStateStore> store, open_at_last_commit(std::move(parts)));
  return store;
}

Status StateStore::commit(const CommitRecord& record) {
  RETURN_IF_ERROR(write_commit(record));
  finish_commit(record);
  return ok_status();
}

CommitId last_commit_of(const StateStore& store) {
  return id_of(store.committed(), std::ssize(store.identity().variable_names));
}

std::int64_t device_file_bytes(const Geometry& geometry, std::int64_t subgroup_count) {
  return detail::kHeaderBytes + 2 * subgroup_count * geometry.slot_bytes();
}

bool StateStore::exists(const std::string& directory) {
  std::error_code ignored;
  return std::filesystem::exists(detail::log_path(directory), ignored);
}

}  // namespace sluice::state
