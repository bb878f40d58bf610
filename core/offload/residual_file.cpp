#include "core/offload/residual_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

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

// `use` gets each piece of a residual, in order.
Status for_each_piece(std::int64_t element_count,
                      const std::function<Status(std::int64_t first, std::span<float>)>& use) {
  std::vector<float> memory(
      static_cast<std::size_t>(std::min(element_count, kResidualPieceElements)));
  for (std::int64_t first = 0; first < element_count; first += kResidualPieceElements) {
    const std::int64_t count = std::min(kResidualPieceElements, element_count - first);
    RETURN_IF_ERROR(use(first, std::span(memory).first(static_cast<std::size_t>(count))));
  }
  return ok_status();
}

std::int64_t offset_bytes_of(std::int64_t element) { return kPageBytes + element * 4; }

Status write_all(const std::string& path, Header& header, const ResidualPlace& residual) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);  // of a run that was cut off
  ASSIGN_OR_RETURN(const io::File file,
                   io::File::open(path, {io::FileAccess::create_new, io::Caching::buffered}));
  RETURN_IF_ERROR(file.allocate(offset_bytes_of(residual.element_count)));
  state::Checksummer checksummer;
  const auto write = [&](std::int64_t first, std::span<float> piece) -> Status {
    RETURN_IF_ERROR(residual.read(first, piece));
    checksummer.add(std::as_bytes(piece));
    return file.write_exactly(offset_bytes_of(first), std::as_bytes(piece));
  };
  RETURN_IF_ERROR(for_each_piece(residual.element_count, write));
  header.data_checksum = checksummer.digest();
  header.header_checksum = checksum_of(header);
  RETURN_IF_ERROR(file.write_exactly(0, std::as_bytes(std::span(&header, 1))));
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

ResidualPlace residual_in_memory(std::span<float> residual) {
  const auto part = [residual](std::int64_t first, std::size_t count) {
    return residual.subspan(static_cast<std::size_t>(first), count);
  };
  return {.element_count = std::ssize(residual),
          .read =
              [part](std::int64_t first, std::span<float> piece) {
                std::ranges::copy(part(first, piece.size()), piece.begin());
                return ok_status();
              },
          .write =
              [part](std::int64_t first, std::span<const float> piece) {
                std::ranges::copy(piece, part(first, piece.size()).begin());
                return ok_status();
              }};
}

Status save_residual(const std::string& path, std::int64_t step, const ResidualPlace& residual) {
  Header header;
  header.step = step;
  header.parameter_count = residual.element_count;
  const std::string fresh = path + ".new";
  RETURN_IF_ERROR(write_all(fresh, header, residual));
  std::error_code error;
  std::filesystem::rename(fresh, path, error);
  if (!error) return ok_status();
  return make_error(ErrorCode::io, "{}: cannot be put in its place: {}", fresh, error.message());
}

Result<bool> load_residual(const std::string& path, std::int64_t step,
                           const ResidualPlace& residual) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return true;
  ASSIGN_OR_RETURN(const io::File file,
                   io::File::open(path, {io::FileAccess::read_only, io::Caching::buffered}));
  Header header;
  RETURN_IF_ERROR(file.read_exactly(0, std::as_writable_bytes(std::span(&header, 1))));
  RETURN_IF_ERROR(check_header(path, header, residual.element_count));
  if (header.step != step) return false;
  if (header.parameter_count == 0) return true;
  state::Checksummer checksummer;
  const auto read = [&](std::int64_t first, std::span<float> piece) -> Status {
    RETURN_IF_ERROR(file.read_exactly(offset_bytes_of(first), std::as_writable_bytes(piece)));
    checksummer.add(std::as_bytes(piece));
    return residual.write(first, piece);
  };
  RETURN_IF_ERROR(for_each_piece(residual.element_count, read));
  if (checksummer.digest() == header.data_checksum) return true;
  return make_error(ErrorCode::corrupt,
                    "{}: the residual at offset {} is not what was written; move the file away to "
                    "go on without it",
                    path, kPageBytes);
}

bool has_residual(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size_bytes = std::filesystem::file_size(path, error);
  return !error && size_bytes > static_cast<std::uintmax_t>(offset_bytes_of(0));
}

}  // namespace sluice::offload
