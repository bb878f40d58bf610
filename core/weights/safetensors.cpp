#include "core/weights/safetensors.h"

#include <array>
#include <cstring>

#include "base/check.h"
#include "base/float16.h"

namespace sluice::weights {
namespace {

// Fields are little-endian, as this machine's numbers are (docs/state_format.md has the same
// limit).
Result<std::string> read_header(const io::File& file, std::int64_t file_bytes) {
  if (file_bytes < kLengthBytes) {
    return make_error(ErrorCode::corrupt,
                      "{}: has {} bytes, and a safetensors file begins with {} that say how long "
                      "its header is",
                      file.path(), file_bytes, kLengthBytes);
  }
  std::uint64_t size = 0;
  RETURN_IF_ERROR(file.read_exactly(0, std::as_writable_bytes(std::span(&size, 1))));
  if (size > static_cast<std::uint64_t>(kHeaderMaxBytes)) {
    return make_error(ErrorCode::corrupt,
                      "{}: byte 0: says that its header has {} bytes, and it may have {}; it is "
                      "no safetensors file, or damaged",
                      file.path(), size, kHeaderMaxBytes);
  }
  if (static_cast<std::int64_t>(size) > file_bytes - kLengthBytes) {
    return make_error(ErrorCode::corrupt,
                      "{}: byte 0: says that its header has {} bytes, and {} follow; the file is "
                      "cut short",
                      file.path(), size, file_bytes - kLengthBytes);
  }
  std::string text(size, '\0');
  if (size > 0) {
    RETURN_IF_ERROR(file.read_exactly(kLengthBytes, std::as_writable_bytes(std::span(text))));
  }
  return text;
}

// The 16-bit numbers in the second half of `values` are widened from the front on: what is written
// never reaches what is still to be read.
void widen_in_place(Float16Kind kind, std::span<float> values) {
  std::byte* const out = reinterpret_cast<std::byte*>(values.data());
  const std::byte* const in = out + values.size() * 2;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, in + i * 2, 2);
    const float value = float_from_float16(kind, bits);
    std::memcpy(out + i * 4, &value, 4);
  }
}

}  // namespace

std::int64_t bytes_of(ElementType type) { return type == ElementType::fp32 ? 4 : 2; }

const char* dtype_name(ElementType type) {
  constexpr std::array kNames = {"BF16", "F16", "F32"};
  return kNames[static_cast<std::size_t>(type)];
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  ASSIGN_OR_RETURN(io::File file, io::File::open(path, {.access = io::FileAccess::read_only,
                                                        .caching = io::Caching::buffered}));
  ASSIGN_OR_RETURN(const std::int64_t file_bytes, file.size_bytes());
  ASSIGN_OR_RETURN(const std::string text, read_header(file, file_bytes));
  ASSIGN_OR_RETURN(Header header,
                   parse_header(text, kLengthBytes + std::ssize(text), file_bytes, path));
  return SafetensorsFile(std::move(file), std::move(header));
}

Result<ElementType> SafetensorsFile::type_of(const StoredTensor& tensor) const {
  for (const ElementType type : {ElementType::bf16, ElementType::fp16, ElementType::fp32}) {
    if (tensor.dtype == dtype_name(type)) return type;
  }
  return make_error(ErrorCode::unsupported,
                    "{}: tensor {} has the dtype {}; weights may have BF16, F16 and F32, so save "
                    "the model in one of these, without quantisation",
                    path(), tensor.name, tensor.dtype);
}

Status SafetensorsFile::read(const StoredTensor& tensor, std::int64_t first,
                             std::span<float> out) const {
  CHECK_GE(first, 0);
  CHECK_LE(first + std::ssize(out), tensor.element_count());
  ASSIGN_OR_RETURN(const ElementType type, type_of(tensor));
  if (out.empty()) return ok_status();
  const std::int64_t offset_bytes = tensor.offset_bytes + first * bytes_of(type);
  const std::span<std::byte> bytes = std::as_writable_bytes(out);
  if (type == ElementType::fp32) return file_.read_exactly(offset_bytes, bytes);
  RETURN_IF_ERROR(file_.read_exactly(offset_bytes, bytes.subspan(bytes.size() / 2)));
  widen_in_place(type == ElementType::bf16 ? Float16Kind::bf16 : Float16Kind::fp16, out);
  return ok_status();
}

}  // namespace sluice::weights
