#include "core/weights/checkpoint_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/float16.h"
#include "core/weights/checkpoint_index.h"
#include "core/weights/tensor_names.h"

namespace sluice::weights {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t kBufferBytes = std::size_t{4} << 20;

// The tensors of one file: consecutive ones of the layout, and so consecutive elements.
struct PieceOfModel {
  std::string name;
  std::span<const model::TensorInfo> tensors;

  std::int64_t first() const { return tensors.front().first; }
  std::int64_t count() const { return tensors.back().first + tensors.back().count - first(); }
};

std::vector<PieceOfModel> pieces_of(const model::FlatLayout& layout, std::int64_t element_bytes,
                                    std::int64_t piece_bytes) {
  std::vector<PieceOfModel> pieces;
  std::int64_t used_bytes = 0;
  for (std::size_t t = 0; t < layout.tensors.size(); ++t) {
    const std::int64_t size_bytes = layout.tensors[t].count * element_bytes;
    if (pieces.empty() || used_bytes + size_bytes > piece_bytes) {
      pieces.push_back({"", std::span(layout.tensors).subspan(t, 0)});
      used_bytes = 0;
    }
    std::span<const model::TensorInfo>& tensors = pieces.back().tensors;
    tensors = {tensors.data(), tensors.size() + 1};
    used_bytes += size_bytes;
  }
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    pieces[p].name = pieces.size() == 1
                         ? kWeightsFile
                         : fmt::format("model-{:05}-of-{:05}.safetensors", p + 1, pieces.size());
  }
  return pieces;
}

// Padded with spaces, so that the tensors begin at a multiple of eight bytes.
std::string header_of(const PieceOfModel& piece, model::Family family, ElementType type) {
  ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  std::int64_t begin = 0;
  for (const model::TensorInfo& info : piece.tensors) {
    const std::int64_t end = begin + info.count * bytes_of(type);
    ordered_json& entry = header[name_in_files(family, info.name)];
    entry["dtype"] = dtype_name(type);
    entry["shape"] = info.shape;
    entry["data_offsets"] = {begin, end};
    begin = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t size = text.size();
  std::string bytes(sizeof size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes + text;
}

std::string index_of(const std::vector<PieceOfModel>& pieces, model::Family family,
                     std::int64_t parameters, std::int64_t size_bytes) {
  json index;
  index["metadata"] = {{"total_parameters", parameters}, {"total_size", size_bytes}};
  for (const PieceOfModel& piece : pieces) {
    for (const model::TensorInfo& info : piece.tensors) {
      index["weight_map"][name_in_files(family, info.name)] = piece.name;
    }
  }
  return index.dump(2) + "\n";
}

// Bytes one after the other into a new file, through a buffer.
class Appender {
 public:
  static Result<Appender> create(const std::string& path) {
    ASSIGN_OR_RETURN(io::File file, io::File::open(path, {.access = io::FileAccess::create_new,
                                                          .caching = io::Caching::buffered}));
    return Appender(std::move(file));
  }

  Status add(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const std::size_t count = std::min(bytes.size(), kBufferBytes - buffer_.size());
      buffer_.insert(buffer_.end(), bytes.begin(),
                     bytes.begin() + static_cast<std::ptrdiff_t>(count));
      bytes = bytes.subspan(count);
      if (buffer_.size() == kBufferBytes) RETURN_IF_ERROR(flush());
    }
    return ok_status();
  }
  Status add(std::string_view text) { return add(std::as_bytes(std::span(text))); }

  Status finish() {
    RETURN_IF_ERROR(flush());
    return file_.sync_data();
  }

 private:
  explicit Appender(io::File file) : file_(std::move(file)) { buffer_.reserve(kBufferBytes); }

  Status flush() {
    if (buffer_.empty()) return ok_status();
    RETURN_IF_ERROR(file_.write_exactly(written_bytes_, buffer_));
    written_bytes_ += std::ssize(buffer_);
    buffer_.clear();
    return ok_status();
  }

  io::File file_;
  std::vector<std::byte> buffer_;
  std::int64_t written_bytes_ = 0;
};

Status write_text(const std::string& path, std::string_view text) {
  ASSIGN_OR_RETURN(Appender file, Appender::create(path));
  RETURN_IF_ERROR(file.add(text));
  return file.finish();
}

class Writing {
 public:
  Writing(const CheckpointFiles& files, const model::ModelShape& shape, const ReadElements& read,
          const OnWritten& on_written)
      : files_(files),
        shape_(shape),
        read_(read),
        on_written_(on_written),
        layout_(shape.flat_layout()) {}

  // Into a folder that is empty.
  Result<WrittenCheckpoint> run(const std::string& folder) {
    const auto pieces = pieces_of(layout_, bytes_of(files_.type), files_.piece_bytes);
    for (const PieceOfModel& piece : pieces) {
      RETURN_IF_ERROR(write_piece(piece, folder + "/" + piece.name));
    }
    const std::int64_t size_bytes = total_bytes();
    if (pieces.size() > 1) {
      RETURN_IF_ERROR(
          write_text(folder + "/" + kIndexFile,
                     index_of(pieces, shape_.family, layout_.parameter_count, size_bytes)));
    }
    RETURN_IF_ERROR(write_text(folder + "/" + kConfigFile, files_.config));
    for (const std::string& path : files_.carried) RETURN_IF_ERROR(carry(path, folder));
    return WrittenCheckpoint{size_bytes, pieces.size()};
  }

 private:
  std::int64_t total_bytes() const { return layout_.parameter_count * bytes_of(files_.type); }

  Status write_piece(const PieceOfModel& piece, const std::string& path) {
    ASSIGN_OR_RETURN(Appender file, Appender::create(path));
    RETURN_IF_ERROR(file.add(header_of(piece, shape_.family, files_.type)));
    RETURN_IF_ERROR(read_(piece.first(), piece.count(),
                          [&](std::span<const float> values) { return take(values, file); }));
    CHECK_EQ(done_elements_, piece.first() + piece.count());
    return file.finish();
  }

  Status take(std::span<const float> values, Appender& file) {
    if (files_.type == ElementType::fp32) {
      RETURN_IF_ERROR(file.add(std::as_bytes(values)));
    } else {
      RETURN_IF_ERROR(narrow(values));
      RETURN_IF_ERROR(file.add(std::as_bytes(std::span(narrowed_))));
    }
    done_elements_ += std::ssize(values);
    return on_written_(done_elements_ * bytes_of(files_.type), total_bytes());
  }

  Status narrow(std::span<const float> values) {
    const Float16Kind kind =
        files_.type == ElementType::bf16 ? Float16Kind::bf16 : Float16Kind::fp16;
    narrowed_.resize(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      narrowed_[i] = float16_from_float(kind, values[i]);
      if (std::isfinite(values[i]) && !std::isfinite(float_from_float16(kind, narrowed_[i]))) {
        return too_large(values[i], done_elements_ + static_cast<std::int64_t>(i));
      }
    }
    return ok_status();
  }

  Error too_large(float value, std::int64_t element) const {
    std::size_t t = 0;
    while (layout_.tensors[t].first + layout_.tensors[t].count <= element) ++t;
    return make_error(ErrorCode::config,
                      "tensor {} has {:g} in element {}, which {} cannot hold; export as fp32",
                      layout_.tensors[t].name, value, element - layout_.tensors[t].first,
                      dtype_name(files_.type));
  }

  static Status carry(const std::string& path, const std::string& folder) {
    std::error_code error;
    const fs::path to = fs::path(folder) / fs::path(path).filename();
    if (fs::copy_file(path, to, error)) return ok_status();
    return make_error(ErrorCode::io, "{}: cannot be copied to {}: {}", path, to.string(),
                      error.message());
  }

  const CheckpointFiles& files_;
  const model::ModelShape& shape_;
  const ReadElements& read_;
  const OnWritten& on_written_;
  model::FlatLayout layout_;
  std::vector<std::uint16_t> narrowed_;
  std::int64_t done_elements_ = 0;
};

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
      Writing(files, shape, read, on_written).run(unfinished.string());
  Status whole = written.ok() ? ok_status() : Status(written.error());
  if (whole.ok()) whole = sync_folder(unfinished.string());
  if (whole.ok()) whole = put_in_place(unfinished.string(), folder.string());
  if (whole.ok()) whole = sync_folder(folder.parent_path().string());
  if (whole.ok()) return written;
  fs::remove_all(unfinished, error);
  return whole.error();
}

}  // namespace sluice::weights
