#include "profiler/report/output.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace sluice::report {
namespace {

Error write_error(const std::string& path) {
  const int error = errno;
  return make_error(error == ENOSPC || error == EDQUOT ? ErrorCode::no_space : ErrorCode::io,
                    "{}: cannot be written: {}", path, std::strerror(error));
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

std::string unfinished_path(const std::string& path) { return path + ".part"; }

Status finish_file(const std::string& path) {
  std::error_code error;
  std::filesystem::rename(unfinished_path(path), path, error);
  if (!error) return ok_status();
  return make_error(ErrorCode::io, "{}: cannot be renamed to {}: {}", unfinished_path(path), path,
                    error.message());
}

Result<OutputFile> OutputFile::create(const std::string& path, IfExists if_exists) {
  RETURN_IF_ERROR(check_output_file(path, if_exists));
  std::FILE* file = std::fopen(unfinished_path(path).c_str(), "wb");
  if (file == nullptr) return write_error(unfinished_path(path));
  return OutputFile(path, file);
}

OutputFile::~OutputFile() {
  if (file_ == nullptr) return;
  file_.reset();
  std::error_code error;
  std::filesystem::remove(unfinished_path(path_), error);
}

Status OutputFile::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size())
    return write_error(unfinished_path(path_));
  return ok_status();
}

Status OutputFile::close() {
  if (std::fflush(file_.get()) != 0) return write_error(unfinished_path(path_));
  if (std::fclose(file_.release()) != 0) return write_error(unfinished_path(path_));
  return finish_file(path_);
}

}  // namespace sluice::report
