#include "core/data/token_file.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/fnv.h"
#include "core/data/token_header.h"
#include "core/data/token_values.h"
#include "core/data/whole_file.h"

namespace sluice::data {
namespace {

constexpr std::size_t kWindowPieceBytes = 4096;                   // of a window, on the stack
constexpr std::int64_t kCheckPieceBytes = std::int64_t{1} << 20;  // whole tokens of any width

// Spots of a file that is larger than all of them together; docs/tokens.md says where they lie.
constexpr std::int64_t kSpotCount = 256;
constexpr std::int64_t kSpotBytes = 4096;

}  // namespace

struct TokenFile::Opened {
  std::string path;
  FileDescriptor file;
  TokenLayout layout;
  std::int64_t model_vocabulary = 0;
  TextFacts facts = {};
  std::int64_t label_count = 0;

  std::int64_t payload_bytes() const { return layout.token_count * layout.bytes_per_token; }
  std::int64_t mark_bytes() const {
    return layout.has_marks ? packed_mark_bytes(layout.token_count) : 0;
  }
  std::int64_t first_label_byte() const { return payload_bytes() + mark_bytes(); }
  std::int64_t label_bytes() const {
    return layout.has_labels ? layout.token_count / layout.window_tokens * kLabelBytes : 0;
  }
  std::int64_t vocabulary() const {
    return model_vocabulary == 0 ? layout.vocabulary
                                 : std::min(layout.vocabulary, model_vocabulary);
  }
  Status read_bytes(std::int64_t first_byte, std::span<std::byte> bytes) const;
  Status check_values(std::int64_t first_byte, std::span<const std::byte> bytes) const;
  Error outside(std::int64_t first_byte, OutsideToken token) const;
  Status check_whole(const Stops& stops);
  Result<std::int64_t> count_labels(std::uint64_t& checksum) const;
  Error no_label(std::int64_t record, std::int32_t label) const;
  Result<std::int64_t> count_learnt(std::uint64_t& checksum, const Stops& stops) const;
  Status check_rest() const;
  Result<std::uint64_t> check_spots() const;
};

// Bytes of the tokens and the marks behind them, counted from token 0: all of them, or an error.
Status TokenFile::Opened::read_bytes(std::int64_t first_byte, std::span<std::byte> bytes) const {
  const std::int64_t offset = layout.first_offset + first_byte;
  ASSIGN_OR_RETURN(const std::size_t got, read_at(file, bytes, offset, path));
  if (got == bytes.size()) return ok_status();
  return make_error(ErrorCode::corrupt,
                    "{}: there is nothing from offset {} on, and what lies up to offset {} is "
                    "wanted: it was cut while it was in use",
                    path, offset + static_cast<std::int64_t>(got), offset + std::ssize(bytes));
}

// One of no vocabulary would be looked up outside of a table.
Status TokenFile::Opened::check_values(std::int64_t first_byte,
                                       std::span<const std::byte> bytes) const {
  const auto token = first_outside(bytes, layout.bytes_per_token, vocabulary());
  return token ? Status(outside(first_byte, *token)) : ok_status();
}

Error TokenFile::Opened::outside(std::int64_t first_byte, OutsideToken token) const {
  const std::int64_t at_byte =
      first_byte + static_cast<std::int64_t>(token.index) * layout.bytes_per_token;
  const std::int64_t number = at_byte / layout.bytes_per_token;
  const std::int64_t offset = layout.first_offset + at_byte;
  if (token.value >= layout.vocabulary) {
    return make_error(ErrorCode::corrupt,
                      "{}: token {}, at offset {}, is {}: that lies outside the file's own "
                      "vocabulary of {}; make the file again",
                      path, number, offset, token.value, layout.vocabulary);
  }
  return make_error(ErrorCode::config,
                    "{}: token {}, at offset {}, is {}, and the model's vocabulary is {}: the "
                    "tokens (read as {}'s) are those of another tokenizer, or the file holds "
                    "something else; take the model's own, or a model with a larger vocabulary",
                    path, number, offset, token.value, model_vocabulary, name_of(layout.format));
}

// In pieces: a token file may be larger than the memory a run is given. A damaged file is called
// so before one of its tokens is.
Status TokenFile::Opened::check_whole(const Stops& stops) {
  std::vector<std::byte> piece(
      static_cast<std::size_t>(std::min(kCheckPieceBytes, payload_bytes())));
  std::uint64_t checksum = kFnvOffset;
  Status values = ok_status();
  for (std::int64_t at = 0; at < payload_bytes(); at += kCheckPieceBytes) {
    RETURN_IF_ERROR(unless_stopped(stops, "reading " + path));
    const auto bytes = std::span(piece).first(
        static_cast<std::size_t>(std::min(kCheckPieceBytes, payload_bytes() - at)));
    RETURN_IF_ERROR(read_bytes(at, bytes));
    if (values.ok()) values = check_values(at, bytes);
    if (!layout.checksum) {
      RETURN_IF_ERROR(values);
    } else {
      checksum = fnv1a(bytes, checksum);
    }
  }
  ASSIGN_OR_RETURN(const std::int64_t learnt, count_learnt(checksum, stops));
  const Result<std::int64_t> labels = count_labels(checksum);
  if (layout.checksum && checksum != *layout.checksum) {
    return make_error(
        ErrorCode::corrupt,
        "{}: the tokens from offset {} on{} are damaged (checksum {:016x}, the header "
        "says {:016x}); make the file again from its text",
        path, layout.first_offset,
        layout.has_labels  ? ", or their marks or labels,"
        : layout.has_marks ? ", or their marks,"
                           : "",
        checksum, *layout.checksum);
  }
  RETURN_IF_ERROR(std::move(values));
  RETURN_IF_ERROR(check_rest());
  ASSIGN_OR_RETURN(label_count, labels);
  if (!layout.has_marks || learnt > 0) return ok_status();
  return make_error(ErrorCode::config,
                    "{}: none of its {} tokens is marked as learnt (the marks begin at offset {}), "
                    "so nothing would be trained; make the tokens of conversations with answers",
                    path, layout.token_count, layout.first_offset + payload_bytes());
}

// Takes the marks, where there are any, into the checksum.
Result<std::int64_t> TokenFile::Opened::count_learnt(std::uint64_t& checksum,
                                                     const Stops& stops) const {
  std::int64_t learnt = 0;
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min(kCheckPieceBytes, mark_bytes())));
  for (std::int64_t at = 0; at < mark_bytes(); at += kCheckPieceBytes) {
    RETURN_IF_ERROR(unless_stopped(stops, "reading " + path));
    const auto bytes = std::span(piece).first(
        static_cast<std::size_t>(std::min(kCheckPieceBytes, mark_bytes() - at)));
    RETURN_IF_ERROR(read_bytes(payload_bytes() + at, bytes));
    checksum = fnv1a(bytes, checksum);
    learnt += learnt_count(bytes);
  }
  return learnt;
}

// One more than the largest. Takes all of them into the checksum.
Result<std::int64_t> TokenFile::Opened::count_labels(std::uint64_t& checksum) const {
  std::int64_t count = 0;
  std::optional<Error> wrong;
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min(kCheckPieceBytes, label_bytes())));
  for (std::int64_t at = 0; at < label_bytes(); at += kCheckPieceBytes) {
    const auto bytes = std::span(piece).first(
        static_cast<std::size_t>(std::min(kCheckPieceBytes, label_bytes() - at)));
    RETURN_IF_ERROR(read_bytes(first_label_byte() + at, bytes));
    checksum = fnv1a(bytes, checksum);
    for (std::size_t i = 0; i < bytes.size(); i += kLabelBytes) {
      std::int32_t label = 0;
      std::memcpy(&label, bytes.data() + i, sizeof label);
      if (label < 0 && !wrong)
        wrong = no_label((at + static_cast<std::int64_t>(i)) / kLabelBytes, label);
      count = std::max(count, std::int64_t{label} + 1);
    }
  }
  if (wrong) return *wrong;
  return count;
}

Error TokenFile::Opened::no_label(std::int64_t record, std::int32_t label) const {
  return make_error(ErrorCode::corrupt,
                    "{}: the label of record {}, at offset {}, is {}, and labels count from 0; "
                    "make the file again",
                    path, record, layout.first_offset + first_label_byte() + record * kLabelBytes,
                    label);
}

// The last byte of the marks: bits behind the last mark are of another format, or of a mistake.
Status TokenFile::Opened::check_rest() const {
  if (mark_bytes() == 0) return ok_status();
  const std::int64_t at = payload_bytes() + mark_bytes() - 1;
  std::byte last{};
  RETURN_IF_ERROR(read_bytes(at, std::span(&last, 1)));
  if (is_rest_clear(last, layout.token_count)) return ok_status();
  return make_error(ErrorCode::corrupt,
                    "{}: the last byte of the marks, at offset {}, is {:#04x}, and bits behind the "
                    "mark of the last token have to be 0; make the file again",
                    path, layout.first_offset + at, std::to_integer<unsigned>(last));
}

// The checksum of the spots: all of a small file, else pieces of which the first begins and the
// last ends with the tokens.
Result<std::uint64_t> TokenFile::Opened::check_spots() const {
  RETURN_IF_ERROR(check_rest());
  std::uint64_t checksum = kFnvOffset;
  const std::int64_t all_bytes = kSpotCount * kSpotBytes;
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min(all_bytes, payload_bytes())));
  if (payload_bytes() <= all_bytes) {
    RETURN_IF_ERROR(read_bytes(0, piece));
    RETURN_IF_ERROR(check_values(0, piece));
    return fnv1a(piece, checksum);
  }
  const std::int64_t last = payload_bytes() - kSpotBytes;
  for (std::int64_t spot = 0; spot < kSpotCount; ++spot) {
    // In this order, and not a product of both, which might not fit into 64 bits.
    const std::int64_t at_byte =
        last / (kSpotCount - 1) * spot + last % (kSpotCount - 1) * spot / (kSpotCount - 1);
    const std::int64_t at = at_byte - at_byte % layout.bytes_per_token;
    const auto bytes = std::span(piece).first(static_cast<std::size_t>(kSpotBytes));
    RETURN_IF_ERROR(read_bytes(at, bytes));
    RETURN_IF_ERROR(check_values(at, bytes));
    checksum = fnv1a(bytes, checksum);
  }
  return checksum;
}

Result<TokenFile> TokenFile::open(const std::string& path, const TokenFileOptions& options,
                                  const Stops& stops) {
  CHECK_GE(options.model_vocabulary, 0);
  ASSIGN_OR_RETURN(FileDescriptor file, open_for_reading(path));
  ASSIGN_OR_RETURN(const TokenLayout layout, token_layout(file, path, options.format));
  auto opened =
      std::make_unique<Opened>(Opened{path, std::move(file), layout, options.model_vocabulary});
  if (options.check == TokenCheck::whole) {
    RETURN_IF_ERROR(opened->check_whole(stops));
  } else {
    std::uint64_t of_labels = kFnvOffset;
    ASSIGN_OR_RETURN(opened->label_count, opened->count_labels(of_labels));
  }
  opened->facts.size_bytes =
      layout.first_offset + opened->first_label_byte() + opened->label_bytes();
  opened->facts.tokens_of = name_of(layout.format);
  if (layout.checksum) opened->facts.checksum = *layout.checksum;
  if (!layout.checksum || options.check == TokenCheck::spots) {
    ASSIGN_OR_RETURN(const std::uint64_t of_spots, opened->check_spots());
    if (!layout.checksum) opened->facts.checksum = of_spots;
  }
  // Windows are read in shuffled order: no readahead. Where it is not heard, it is only slower.
  ::posix_fadvise(opened->file.get(), 0, 0, POSIX_FADV_RANDOM);
  return TokenFile(std::move(opened));
}

TokenFile::TokenFile(std::unique_ptr<Opened> opened) : opened_(std::move(opened)) {}
TokenFile::TokenFile(TokenFile&&) noexcept = default;
TokenFile& TokenFile::operator=(TokenFile&&) noexcept = default;
TokenFile::~TokenFile() = default;

std::int64_t TokenFile::token_count() const { return opened_->layout.token_count; }
std::int64_t TokenFile::vocabulary() const { return opened_->layout.vocabulary; }
const std::string& TokenFile::path() const { return opened_->path; }
const TextFacts& TokenFile::facts() const { return opened_->facts; }
std::int64_t TokenFile::window_tokens() const { return opened_->layout.window_tokens; }
std::int64_t TokenFile::label_count() const { return opened_->label_count; }
bool TokenFile::has_marks() const { return opened_->layout.has_marks; }

Status TokenFile::read(std::int64_t first, std::span<std::int32_t> tokens) const {
  CHECK_GE(first, 0);
  CHECK_LE(first + std::ssize(tokens), token_count());
  std::array<std::byte, kWindowPieceBytes> piece;
  const std::int64_t width = opened_->layout.bytes_per_token;
  const std::size_t most = piece.size() / static_cast<std::size_t>(width);
  while (!tokens.empty()) {
    const auto part = tokens.first(std::min(most, tokens.size()));
    const auto bytes = std::span(piece).first(part.size() * static_cast<std::size_t>(width));
    RETURN_IF_ERROR(opened_->read_bytes(first * width, bytes));
    RETURN_IF_ERROR(opened_->check_values(first * width, bytes));
    widen_tokens(bytes, width, part);
    first += std::ssize(part);
    tokens = tokens.subspan(part.size());
  }
  return ok_status();
}

Result<std::int32_t> TokenFile::read_label(std::int64_t window) const {
  CHECK(opened_->layout.has_labels);
  CHECK_GE(window, 0);
  CHECK_LT(window, token_count() / window_tokens());
  std::int32_t label = 0;
  RETURN_IF_ERROR(opened_->read_bytes(opened_->first_label_byte() + window * kLabelBytes,
                                      std::as_writable_bytes(std::span(&label, 1))));
  if (label >= 0 && label < label_count()) return label;
  return opened_->no_label(window, label);
}

Status TokenFile::read_marks(std::int64_t first, std::span<std::uint8_t> marks) const {
  CHECK_GE(first, 0);
  CHECK_LE(first + std::ssize(marks), token_count());
  if (!has_marks()) {
    std::ranges::fill(marks, kLearnt);
    return ok_status();
  }
  std::array<std::byte, kWindowPieceBytes> piece;
  while (!marks.empty()) {
    const std::int64_t in_byte = first % kMarksPerByte;
    const auto most = static_cast<std::size_t>(std::ssize(piece) * kMarksPerByte - in_byte);
    const auto part = marks.first(std::min(most, marks.size()));
    const auto bytes = std::span(piece).first(
        static_cast<std::size_t>(packed_mark_bytes(in_byte + std::ssize(part))));
    RETURN_IF_ERROR(opened_->read_bytes(opened_->payload_bytes() + first / kMarksPerByte, bytes));
    unpack_marks(bytes, in_byte, part);
    first += std::ssize(part);
    marks = marks.subspan(part.size());
  }
  return ok_status();
}

}  // namespace sluice::data
