#include "core/offload/residual_file.h"

#include <array>
#include <cstring>
#include <filesystem>

#include "base/units.h"
#include "storage/io/file.h"
#include "storage/state/checksum.h"

namespace sluice::offload {
namespace {

constexpr std::array<char, 8> kMagic = {'S', 'L', 'U', 'I', 'C', 'E', 'R', 'S'};
constexpr std::uint32_t kVersion = 2;  // 1 had no empty residuals

// The first page, as it lies: little-endian, no padding.
struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t reserved = 0;
  std::int64_t step = 0;
  std::int64_t parameter_count = 0;
  std::uint64_t data_checksum = 0;
  std::uint64_t header_checksum = 0;  // of all before it
};
static_assert(sizeof(Header) == 48);

std::uint64_t checksum_of(const Header& header) {
  return state::checksum(
      std::as_bytes(std::span(&header, 1)).first(offsetof(Header, header_checksum)));
}

Status write_all(const std::string& path, const Header& header, std::span<const float> residual) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);  // of a run that was cut off
  ASSIGN_OR_RETURN(const io::File file,
                   io::File::open(path, {io::FileAccess::create_new, io::Caching::buffered}));
  const std::span<const std::byte> data = std::as_bytes(residual);
  RETURN_IF_ERROR(file.allocate(kPageBytes + static_cast<std::int64_t>(data.size())));
  RETURN_IF_ERROR(file.write_exactly(0, std::as_bytes(std::span(&header, 1))));
  if (!data.empty()) RETURN_IF_ERROR(file.write_exactly(kPageBytes, data));
  return file.sync_data();
}

Status check_header(const std::string& path, const Header& header, std::int64_t parameter_count) {
  if (header.magic != kMagic || header.header_checksum != checksum_of(header)) {
    return make_error(ErrorCode::corrupt,
                      "{}: the header at offset 0 is damaged, or the file is not a residual; move "
                      "it away to go on without it",
                      path);
  }
  if (header.version < 1 || header.version > kVersion) {
    return make_error(ErrorCode::unsupported, "{}: version {} is newer than this Sluice's {}", path,
                      header.version, kVersion);
  }
  if (header.parameter_count == parameter_count || header.parameter_count == 0) return ok_status();
  return make_error(ErrorCode::corrupt, "{}: it has {} elements and the model {} parameters", path,
                    header.parameter_count, parameter_count);
}

}  // namespace

Status save_residual(const std::string& path, std::int64_t step, std::span<const float> residual) {
  Header header;
  header.step = step;
  header.parameter_count = static_cast<std::int64_t>(residual.size());
  header.data_checksum = state::checksum(std::as_bytes(residual));
  header.header_checksum = checksum_of(header);
  const std::string fresh = path + ".new";
  RETURN_IF_ERROR(write_all(fresh, header, residual));
  std::error_code error;
  std::filesystem::rename(fresh, path, error);
  if (!error) return ok_status();
  return make_error(ErrorCode::io, "{}: cannot be put in its place: {}", fresh, error.message());
}

Result<bool> load_residual(const std::string& path, std::int64_t step, std::span<float> residual) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return true;
  ASSIGN_OR_RETURN(const io::File file,
                   io::File::open(path, {io::FileAccess::read_only, io::Caching::buffered}));
  Header header;
  RETURN_IF_ERROR(file.read_exactly(0, std::as_writable_bytes(std::span(&header, 1))));
  RETURN_IF_ERROR(check_header(path, header, static_cast<std::int64_t>(residual.size())));
  if (header.step != step) return false;
  if (header.parameter_count == 0) return true;
  RETURN_IF_ERROR(file.read_exactly(kPageBytes, std::as_writable_bytes(residual)));
  if (state::checksum(std::as_bytes(residual)) == header.data_checksum) return true;
  return make_error(ErrorCode::corrupt,
                    "{}: the residual at offset {} is not what was written; move the file away to "
                    "go on without it",
                    path, kPageBytes);
}

}  // namespace sluice::offload
