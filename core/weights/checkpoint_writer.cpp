#include "core/weights/checkpoint_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "core/weights/adapter_config.h"
#include "core/weights/checkpoint_index.h"
#include "core/weights/optimizer_names.h"
#include "core/weights/tensor_names.h"

namespace sluice::weights {
namespace {

namespace fs = std::filesystem;

TensorSet weights_of(const model::ModelShape& shape, ElementType type) {
  const model::FlatLayout layout = shape.flat_layout();
  TensorSet set{shape.has_adapters() ? kAdapterStem : kWeightsStem,
                {{"format", "pt"}},
                type,
                layout.parameter_count,
                {}};
  for (const model::TensorInfo& info : layout.tensors) {
    set.tensors.push_back(
        {trained_name_in_files(shape, info.name), info.shape, info.first, info.count});
  }
  return set;
}

// Array by array, as the state has them: so each is read from its first element to its last.
TensorSet moments_of(const model::ModelShape& shape, const OptimizerArrays& optimizer) {
  const model::FlatLayout layout = shape.flat_layout();
  TensorSet set{kOptimizerStem,
                {{kFormatKey, kOptimizerFormat},
                 {kOptimizerKey, optimizer.optimizer},
                 {kStepKey, fmt::format("{}", optimizer.step)}},
                ElementType::fp32,
                layout.parameter_count,
                {}};
  std::int64_t first = 0;
  for (const std::string& array : optimizer.arrays) {
    for (const model::TensorInfo& info : layout.tensors) {
      set.tensors.push_back({moment_name(array, trained_name_in_files(shape, info.name)),
                             info.shape, first + info.first, info.count});
    }
    first += layout.parameter_count;
  }
  return set;
}

Status carry(const std::string& path, const std::string& folder) {
  std::error_code error;
  const fs::path to = fs::path(folder) / fs::path(path).filename();
  if (fs::copy_file(path, to, error)) return ok_status();
  return make_error(ErrorCode::io, "{}: cannot be copied to {}: {}", path, to.string(),
                    error.message());
}

// Into a folder that is empty.
Result<WrittenCheckpoint> write_files(const CheckpointFiles& files, const model::ModelShape& shape,
                                      const ReadElements& read, const OnWritten& on_written,
                                      const std::string& folder) {
  const TensorSet weights = weights_of(shape, files.type);
  TensorSet moments;
  if (files.optimizer) moments = moments_of(shape, *files.optimizer);
  WrittenCheckpoint written{.size_bytes = weights.size_bytes(),
                            .optimizer_bytes = moments.size_bytes()};
  TensorWriter writer(folder, files.piece_bytes, written.size_bytes + written.optimizer_bytes,
                      on_written);
  ASSIGN_OR_RETURN(written.file_count, writer.write(weights, read));
  if (files.optimizer) {
    ASSIGN_OR_RETURN(written.optimizer_file_count, writer.write(moments, files.optimizer->read));
  }
  RETURN_IF_ERROR(
      writer.write_text(shape.has_adapters() ? kAdapterConfigFile : kConfigFile, files.config));
  for (const std::string& path : files.carried) RETURN_IF_ERROR(carry(path, folder));
  return written;
}

Error failed(const std::string& path, std::string_view what, int error_number) {
  return make_error(error_number == ENOSPC ? ErrorCode::no_space : ErrorCode::io, "{}: {}: {}",
                    path, what, std::strerror(error_number));
}

Status sync_folder(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return failed(path, "cannot be opened", errno);
  const int synced = fsync(descriptor);
  const int error_number = errno;
  close(descriptor);
  return synced == 0 ? ok_status() : Status(failed(path, "cannot be made durable", error_number));
}

Error already_there(const std::string& folder) {
  return make_error(ErrorCode::config, "{}: is there already; name a folder that is not", folder);
}

// Never over another folder, not even an empty one that came meanwhile.
Status put_in_place(const std::string& from, const std::string& folder) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, folder.c_str(), RENAME_NOREPLACE) == 0) {
    return ok_status();
  }
  if (errno == EEXIST) return already_there(folder);
  // Some file systems have no such flag; theirs refuse a folder that is not empty.
  if (errno == EINVAL && rename(from.c_str(), folder.c_str()) == 0) return ok_status();
  return failed(folder, "cannot be given its name", errno);
}

}  // namespace

Result<WrittenCheckpoint> write_checkpoint(const CheckpointFiles& files,
                                           const model::ModelShape& shape, const ReadElements& read,
                                           const OnWritten& on_written) {
  const fs::path place = fs::absolute(files.folder).lexically_normal();
  const fs::path folder = place.has_filename() ? place : place.parent_path();
  std::error_code error;
  if (fs::exists(fs::symlink_status(folder, error))) return already_there(files.folder);
  fs::create_directories(folder.parent_path(), error);
  const fs::path unfinished =
      folder.parent_path() / fmt::format(".{}.unfinished-{}", folder.filename().string(), getpid());
  if (error || !fs::create_directory(unfinished, error)) {
    return make_error(ErrorCode::io, "{}: cannot be made: {}", unfinished.string(),
                      error ? error.message() : "it is there already");
  }
  Result<WrittenCheckpoint> written =
      write_files(files, shape, read, on_written, unfinished.string());
  Status whole = written.ok() ? ok_status() : Status(written.error());
  if (whole.ok()) whole = sync_folder(unfinished.string());
  if (whole.ok()) whole = put_in_place(unfinished.string(), folder.string());
  if (whole.ok()) whole = sync_folder(folder.parent_path().string());
  if (whole.ok()) return written;
  fs::remove_all(unfinished, error);
  return whole.error();
}

}  // namespace sluice::weights
