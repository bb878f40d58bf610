#include "core/weights/tensor_writer.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/float16.h"
#include "core/weights/checkpoint_index.h"
#include "storage/io/file.h"

namespace sluice::weights {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{4} << 20;

}  // namespace

// Bytes one after the other into a new file, through a buffer.
class TensorWriter::File {
 public:
  static Result<File> create(const std::string& path) {
    ASSIGN_OR_RETURN(io::File file, io::File::open(path, {.access = io::FileAccess::create_new,
                                                          .caching = io::Caching::buffered}));
    return File(std::move(file));
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
  explicit File(io::File file) : file_(std::move(file)) { buffer_.reserve(kBufferBytes); }

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

Result<std::size_t> TensorWriter::write(const TensorSet& set, const ReadElements& read) {
  const std::vector<PieceOfSet> pieces = pieces_of(set, piece_bytes_);
  done_elements_ = 0;
  for (const PieceOfSet& piece : pieces) RETURN_IF_ERROR(write_piece(set, piece, read));
  if (pieces.size() > 1) {
    RETURN_IF_ERROR(write_text(index_file(set.stem), index_of(set, pieces)));
  }
  return pieces.size();
}

Status TensorWriter::write_text(const std::string& name, std::string_view text) const {
  ASSIGN_OR_RETURN(File file, File::create(folder_ + "/" + name));
  RETURN_IF_ERROR(file.add(text));
  return file.finish();
}

Status TensorWriter::write_piece(const TensorSet& set, const PieceOfSet& piece,
                                 const ReadElements& read) {
  ASSIGN_OR_RETURN(File file, File::create(folder_ + "/" + piece.file));
  RETURN_IF_ERROR(file.add(header_of(set, piece)));
  RETURN_IF_ERROR(read(piece.first(), piece.count(),
                       [&](std::span<const float> values) { return take(set, values, file); }));
  CHECK_EQ(done_elements_, piece.first() + piece.count());
  return file.finish();
}

Status TensorWriter::take(const TensorSet& set, std::span<const float> values, File& file) {
  if (set.type == ElementType::fp32) {
    RETURN_IF_ERROR(file.add(std::as_bytes(values)));
  } else {
    RETURN_IF_ERROR(narrow(set, values));
    RETURN_IF_ERROR(file.add(std::as_bytes(std::span(narrowed_))));
  }
  done_elements_ += std::ssize(values);
  done_bytes_ += std::ssize(values) * bytes_of(set.type);
  return on_written_(done_bytes_, total_bytes_);
}

Status TensorWriter::narrow(const TensorSet& set, std::span<const float> values) {
  const Float16Kind kind = set.type == ElementType::bf16 ? Float16Kind::bf16 : Float16Kind::fp16;
  narrowed_.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    narrowed_[i] = float16_from_float(kind, values[i]);
    if (std::isfinite(values[i]) && !std::isfinite(float_from_float16(kind, narrowed_[i]))) {
      return too_large(set, values[i], done_elements_ + static_cast<std::int64_t>(i));
    }
  }
  return ok_status();
}

Error TensorWriter::too_large(const TensorSet& set, float value, std::int64_t element) const {
  std::size_t t = 0;
  while (set.tensors[t].first + set.tensors[t].count <= element) ++t;
  return make_error(
      ErrorCode::config, "tensor {} has {:g} in element {}, which {} cannot hold; export as fp32",
      set.tensors[t].name, value, element - set.tensors[t].first, dtype_name(set.type));
}

}  // namespace sluice::weights
