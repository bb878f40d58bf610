#pragma once
// The message that ranks send each other about a call before its bytes move: that all ask for the
// same, and the number of an agreement.
//
// Thread contract: plain data and free functions, any thread.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "core/collective/call.h"

namespace sluice::collective::detail {

// Goes over the wire as it stands: all ranks run one program on machines of one kind.
struct CallHeader {
  std::int64_t call_number = 0;  // of the group, from 1
  std::int64_t element_count = 0;
  std::int64_t unit = 1;
  std::int64_t value = 0;  // minimum, maximum
  std::int32_t kind = 0;
  std::int32_t type = 0;
  std::int32_t root = 0;  // 0 where the kind has none
  std::int32_t layer = 0;
  std::int32_t step = 0;
  std::array<char, 28> what{};  // cut
};
static_assert(sizeof(CallHeader) == 80 && std::is_trivially_copyable_v<CallHeader>);

CallHeader header_of(const Call& call, std::int64_t call_number);
// The call that a header speaks of, without its spans: for messages.
std::string header_text(const CallHeader& header);
// The first of `headers` that asks for something else than headers[0]; empty: none does.
std::optional<std::size_t> first_difference(std::span<const CallHeader> headers);

}  // namespace sluice::collective::detail
