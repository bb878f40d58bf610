#pragma once
// A file for other programs: under another name until it is whole, so that nobody
// opens half of it, and never over what is there unless that was asked for.
//
// Thread contract: one thread at a time.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::report {

enum class IfExists : std::uint8_t { refuse, replace };
enum class Compression : std::uint8_t { none, gzip };

// How much of a long export is done, 0 to 1.
using OnProgress = std::function<void(double share)>;

// ErrorCode::config or not_found: something is there that may not be replaced, or no folder is.
Status check_output_file(const std::string& path, IfExists if_exists);
// A folder for files: made if it is not there. One that holds anything is refused, unless its files
// may be replaced.
Status take_output_folder(const std::string& folder, IfExists if_exists);
// Where the file is written until it is whole.
std::string unfinished_path(const std::string& path);
// Gives what was written there its name.
Status finish_file(const std::string& path);

// The compression that a file's name asks for: gzip where it ends in ".gz".
Compression compression_of(std::string_view path);

class OutputFile {
 public:
  static Result<OutputFile> create(const std::string& path, IfExists if_exists,
                                   Compression compression = Compression::none);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // what was not closed is removed

  Status write(std::string_view bytes);
  Status close();

 private:
  struct Stream;  // keeps zlib out of this header
  OutputFile(std::string path, std::unique_ptr<Stream> stream);

  std::string path_;
  std::unique_ptr<Stream> stream_;  // null: closed
};

}  // namespace sluice::report
