#pragma once
// The marks of tokens (docs/token_format.md): 2 bits a token, which say whether it is learnt and
// whether a document begins with it; of records with labels, whether it is of the record and of
// which of its texts. In a file four of them share a byte, the first in its lowest bits; in memory
// each has a byte of its own.
//
// Thread contract: free functions.

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::data {

inline constexpr std::uint8_t kLearnt = 1;          // counts in the loss, as a target
inline constexpr std::uint8_t kDocumentBegins = 2;  // the first token of its document
// The same bits of a record's window.
inline constexpr std::uint8_t kOfRecord = 1;      // and does not fill the window behind it
inline constexpr std::uint8_t kOfSecondText = 2;  // of a pair

inline constexpr std::int64_t kLabelBytes = 4;  // signed, of a record

inline constexpr std::int64_t kMarksPerByte = 4;

constexpr std::int64_t packed_mark_bytes(std::int64_t token_count) {
  return token_count / kMarksPerByte + (token_count % kMarksPerByte != 0 ? 1 : 0);
}

// The marks from number `first` of `packed` on, each 0..3. `packed` has as many.
void unpack_marks(std::span<const std::byte> packed, std::int64_t first,
                  std::span<std::uint8_t> marks);

// Tokens that are learnt, of all marks in `packed`.
std::int64_t learnt_count(std::span<const std::byte> packed);

// Whether `last`, the last byte of the marks of so many tokens, has nothing behind the last mark.
bool is_rest_clear(std::byte last, std::int64_t token_count);

}  // namespace sluice::data
