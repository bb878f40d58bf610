#include "profiler/report/output.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/safe_file.h"

namespace sluice::report {
namespace {

// "T" is zlib's word for a file as it is. Level 4 is twice as fast as the usual 6, and a trace
// becomes about a tenth larger.
constexpr const char* kAsItIs = "wbT";
constexpr const char* kGzip = "wb4";
constexpr unsigned kBufferBytes = 1 << 18;
constexpr std::size_t kWriteBytesMax = std::size_t{1} << 30;  // zlib counts with 32 bits

Error write_error(const std::string& path, int error = errno) {
  const bool is_full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return make_error(is_full ? ErrorCode::no_space : ErrorCode::io, "{}: cannot be written: {}{}",
                    path, std::strerror(error), file_limit_advice(error));
}

// A file that was not there: what lay under its name, of a program that was killed or of somebody
// else, is removed and not written through.
Result<int> create_anew(const std::string& path) {
  std::error_code ignored;  // what cannot be removed is in the way, which is said below
  std::filesystem::remove(path, ignored);
  return open_regular_file(path, O_WRONLY | O_CREAT | O_EXCL, FileTrust::own,
                           [&](int error) { return write_error(path, error); });
}

}  // namespace

Status check_output_file(const std::string& path, IfExists if_exists) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return make_error(ErrorCode::config, "{}: is a folder; name a file to write", path);
  if (std::filesystem::exists(path, error)) {
    if (if_exists == IfExists::replace) return ok_status();
    return make_error(ErrorCode::config,
                      "{}: exists already; name another file, or write over it with --force", path);
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, error)) {
    return make_error(ErrorCode::not_found, "{}: there is no folder {}; make it first", path,
                      folder.string());
  }
  return ok_status();
}

Status take_output_folder(const std::string& folder, IfExists if_exists) {
  std::error_code error;
  if (std::filesystem::exists(folder, error) && !std::filesystem::is_directory(folder, error)) {
    return make_error(ErrorCode::config, "{}: is a file; this format needs a folder", folder);
  }
  if (if_exists == IfExists::refuse && std::filesystem::is_directory(folder, error) &&
      !std::filesystem::is_empty(folder, error)) {
    return make_error(ErrorCode::config,
                      "{}: holds files already; name another folder, or write over them with "
                      "--force",
                      folder);
  }
  const std::filesystem::path parent = std::filesystem::path(folder).parent_path();
  if (!parent.empty() && !std::filesystem::is_directory(parent, error)) {
    return make_error(ErrorCode::not_found, "{}: there is no folder {}; make it first", folder,
                      parent.string());
  }
  std::filesystem::create_directory(folder, error);
  if (error) return make_error(ErrorCode::io, "{}: cannot be made: {}", folder, error.message());
  return ok_status();
}

std::string unfinished_path(const std::string& path) { return path + ".part"; }

Status finish_file(const std::string& path) {
  std::error_code error;
  std::filesystem::rename(unfinished_path(path), path, error);
  if (!error) return ok_status();
  return make_error(ErrorCode::io, "{}: cannot be renamed to {}: {}", unfinished_path(path), path,
                    error.message());
}

Compression compression_of(std::string_view path) {
  return path.ends_with(".gz") ? Compression::gzip : Compression::none;
}

struct OutputFile::Stream {
  struct Close {
    void operator()(gzFile handle) const { (void)gzclose(handle); }  // close() looks
  };
  std::unique_ptr<gzFile_s, Close> file;
};

OutputFile::OutputFile(std::string path, std::unique_ptr<Stream> stream)
    : path_(std::move(path)), stream_(std::move(stream)) {}

Result<OutputFile> OutputFile::create(const std::string& path, IfExists if_exists,
                                      Compression compression) {
  RETURN_IF_ERROR(check_output_file(path, if_exists));
  ASSIGN_OR_RETURN(const int descriptor, create_anew(unfinished_path(path)));
  auto stream = std::make_unique<Stream>();
  stream->file.reset(gzdopen(descriptor, compression == Compression::gzip ? kGzip : kAsItIs));
  if (stream->file == nullptr) {  // no memory
    ::close(descriptor);
    return write_error(unfinished_path(path), ENOMEM);
  }
  (void)gzbuffer(stream->file.get(), kBufferBytes);  // refused once anything is written
  return OutputFile(path, std::move(stream));
}

OutputFile::OutputFile(OutputFile&& other) noexcept = default;

OutputFile::~OutputFile() {
  if (stream_ == nullptr) return;
  stream_.reset();
  std::error_code error;
  std::filesystem::remove(unfinished_path(path_), error);
}

Status OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, kWriteBytesMax);
    if (gzwrite(stream_->file.get(), part.data(), static_cast<unsigned>(part.size())) == 0)
      return write_error(unfinished_path(path_));
    bytes.remove_prefix(part.size());
  }
  return ok_status();
}

Status OutputFile::close() {
  const std::unique_ptr<Stream> stream = std::move(stream_);
  if (gzclose(stream->file.release()) != Z_OK) {
    const Error error = write_error(unfinished_path(path_));
    std::error_code ignored;
    std::filesystem::remove(unfinished_path(path_), ignored);
    return error;
  }
  return finish_file(path_);
}

}  // namespace sluice::report
