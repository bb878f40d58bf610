#include "storage/state/kept_commits.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>

#include "storage/state/detail/commit_log.h"
#include "storage/state/detail/create_files.h"
#include "storage/state/detail/file_names.h"
#include "storage/state/detail/kept_files.h"
#include "storage/state/replacement.h"

namespace sluice::state {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kEnding = ".slc";
constexpr std::size_t kVersionDigits = 16;

std::string folder_of(const std::string& state_directory) { return state_directory + "/kept"; }

std::string path_of(const std::string& state_directory, const CommitId& id) {
  return path_beside_kept(state_directory, id, std::string(kEnding));
}
std::string keeper_path(const std::string& state_directory, const CommitId& id) {
  return path_beside_kept(state_directory, id, ".txt");
}

// None: a file of another kind.
std::optional<CommitId> id_in(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kEnding)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kEnding.size());
  CommitId id;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id.step);
  name.remove_prefix(static_cast<std::size_t>(end - name.data()));
  if (error != std::errc() || name.size() != kVersionDigits + 1 || name.front() != '-') {
    return std::nullopt;
  }
  id.version = name.substr(1);
  return id;
}

std::string line_in(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// All names in the folder, sorted.
Result<std::vector<std::string>> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  if (!fs::exists(folder, error)) return names;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) return make_error(ErrorCode::io, "{}: cannot be read: {}", folder, error.message());
  std::ranges::sort(names);
  return names;
}

Error damaged(const std::string& path, const std::string& why) {
  return make_error(ErrorCode::corrupt,
                    "{}: is not a kept commit of this state: {}; nobody knows which slots it "
                    "holds. Remove the file to go on without that commit",
                    path, why);
}

}  // namespace

CommitId id_of(const CommitRecord& record, std::int64_t variable_count) {
  Checksummer checksummer;
  const auto add = [&](const auto& number) {
    checksummer.add(std::as_bytes(std::span(&number, 1)));
  };
  add(record.position.step);
  add(record.position.optimizer_step);
  for (const SubgroupVersion& version : record.subgroups) {
    for (std::int64_t v = 0; v < variable_count; ++v) {
      add(version.checksums[static_cast<std::size_t>(v)]);
    }
  }
  return {record.position.step, fmt::format("{:016x}", checksummer.digest())};
}

std::string path_beside_kept(const std::string& state_directory, const CommitId& id,
                             const std::string& ending) {
  return fmt::format("{}/step-{:06}-{}{}", folder_of(state_directory), id.step, id.version, ending);
}

Result<std::vector<KeptCommit>> kept_commits(const std::string& state_directory) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, names_in(folder_of(state_directory)));
  std::vector<KeptCommit> kept;
  for (const std::string& name : names) {
    if (const auto id = id_in(name))
      kept.push_back({*id, line_in(keeper_path(state_directory, *id))});
  }
  std::ranges::stable_sort(kept, {}, [](const KeptCommit& commit) { return commit.id.step; });
  return kept;
}

namespace detail {

Result<KeptFile> read_kept_file(const StateStore::Options& options, const FileHeader& log_header,
                                const CommitId& id) {
  const std::string path = path_of(options.directory, id);
  Result<CommitLog> log = CommitLog::open(path, {io::FileAccess::read_only, options.caching});
  if (!log.ok() && log.error().code() == ErrorCode::not_found) return log.error();
  if (!log.ok()) return damaged(path, log.error().message());
  if (log->header().state_id != log_header.state_id) {
    return damaged(path, "its header says state " + to_hex(log->header().state_id));
  }
  Result<CommitRecord> record = log->read_newest();
  if (!record.ok()) return damaged(path, record.error().message());
  const std::int32_t variable_count = log_header.geometry.variable_count;
  if (std::ssize(record->subgroups) != log_header.geometry.subgroup_count() ||
      log->header().geometry.variable_count != variable_count ||
      id_of(*record, variable_count) != id) {
    return damaged(path, "its content is not what its name says");
  }
  return KeptFile{{id, line_in(keeper_path(options.directory, id))}, *std::move(record)};
}

Result<std::vector<KeptFile>> read_kept_files(const StateStore::Options& options,
                                              const FileHeader& log_header) {
  ASSIGN_OR_RETURN(const std::vector<KeptCommit> names, kept_commits(options.directory));
  std::vector<KeptFile> files;
  for (const KeptCommit& name : names) {
    ASSIGN_OR_RETURN(KeptFile file, read_kept_file(options, log_header, name.id));
    files.push_back(std::move(file));
  }
  return files;
}

Status write_kept_file(Disk& disk, const StateStore::Options& options, const FileHeader& log_header,
                       const KeptFile& kept) {
  const std::string path = path_of(options.directory, kept.kept.id);
  const std::string new_path = unfinished(path);
  RETURN_IF_ERROR(disk.make_directory(folder_of(options.directory)));
  RETURN_IF_ERROR(write_keeper(options, kept.kept));
  std::error_code ignored;
  if (fs::exists(new_path, ignored)) RETURN_IF_ERROR(disk.remove(new_path));  // cut off
  RETURN_IF_ERROR(
      make_file(disk, new_path, log_bytes(log_header.geometry), log_header, options.caching));
  ASSIGN_OR_RETURN(CommitLog log,
                   CommitLog::open(new_path, {io::FileAccess::read_write, options.caching}));
  RETURN_IF_ERROR(log.append(disk, kept.record));
  RETURN_IF_ERROR(disk.rename(new_path, path));
  return disk.sync_directory(folder_of(options.directory));
}

Status write_keeper(const StateStore::Options& options, const KeptCommit& kept) {
  return keep_note(options, keeper_path(options.directory, kept.id), kept.keeper + "\n");
}

Status remove_kept_file(Disk& disk, const std::string& state_directory, const CommitId& id) {
  const std::string folder = folder_of(state_directory);
  const std::string path = path_of(state_directory, id);
  std::error_code ignored;
  if (fs::exists(path, ignored)) {
    RETURN_IF_ERROR(disk.remove(path));
    RETURN_IF_ERROR(disk.sync_directory(folder));
  }
  const std::string stem = fs::path(path).stem().string();
  ASSIGN_OR_RETURN(const std::vector<std::string> names, names_in(folder));
  for (const std::string& name : names) {
    if (name.starts_with(stem)) RETURN_IF_ERROR(disk.remove(folder + "/" + name));
  }
  return ok_status();
}

Status remove_all_kept(Disk& disk, const std::string& state_directory) {
  const std::string folder = folder_of(state_directory);
  ASSIGN_OR_RETURN(const std::vector<std::string> names, names_in(folder));
  for (const std::string& name : names) {
    if (name.starts_with(kPrefix)) RETURN_IF_ERROR(disk.remove(folder + "/" + name));
  }
  std::error_code ignored;
  fs::remove(folder, ignored);  // with something else in it, it stays
  return ok_status();
}

std::vector<SlotId> slots_of(const CommitRecord& record) {
  std::vector<SlotId> slots;
  for (const SubgroupVersion& version : record.subgroups) slots.push_back(version.slot);
  return slots;
}

}  // namespace detail
}  // namespace sluice::state
