#include "base/state_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace sluice {
namespace {

std::span<const ArrayCode> used(const StoredArrays& stored) {
  return std::span(stored.codes).first(static_cast<std::size_t>(stored.count));
}

bool is_remainder(ArrayCode code) {
  return code == ArrayCode::low16 || code == ArrayCode::low16_with_ties || code == ArrayCode::low8;
}

bool has(const StoredArrays& stored, ArrayCode code) {
  return std::ranges::find(used(stored), code) != used(stored).end();
}

}  // namespace

bool makes_sense(const StoredArrays& stored) {
  const std::span<const ArrayCode> codes = used(stored);
  if (!stored.is_split()) {
    return std::ranges::all_of(codes, [](ArrayCode code) { return code == ArrayCode::fp32; });
  }
  return codes.size() >= 2 && is_remainder(codes[1]) &&
         std::ranges::none_of(codes.subspan(2), [](ArrayCode code) {
           return code == ArrayCode::high || is_remainder(code) ||
                  static_cast<int>(code) >= kArrayCodeCount;
         });
}

StateFormat format_of(const StoredArrays& stored) {
  if (!stored.is_split()) return {};
  if (has(stored, ArrayCode::fp32_with_ties) || has(stored, ArrayCode::low16_with_ties)) {
    return {.kind = StateFormatKind::exact};
  }
  return {.kind = StateFormatKind::compact,
          .remainder_bits = has(stored, ArrayCode::low8) ? 8 : 16};
}

std::string format_text(const StateFormat& format) {
  switch (format.kind) {
    case StateFormatKind::fp32:
      break;
    case StateFormatKind::exact:
      return "exact";
    case StateFormatKind::compact:
      return fmt::format("compact, with remainders of {} bits", format.remainder_bits);
  }
  return "fp32";
}

}  // namespace sluice
