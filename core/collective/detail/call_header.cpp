#include "core/collective/detail/call_header.h"

#include <algorithm>
#include <cstring>

namespace sluice::collective::detail {

CallHeader header_of(const Call& call, std::int64_t call_number) {
  CallHeader header;
  header.call_number = call_number;
  header.element_count = element_count(call);
  header.unit = call.unit;
  header.kind = static_cast<std::int32_t>(call.kind);
  header.type = static_cast<std::int32_t>(call.type);
  header.root = call.kind == Kind::broadcast ? call.root : 0;
  header.layer = index_of(call.label.layer);
  header.step = call.label.step;
  const std::size_t length = std::min(std::strlen(call.label.what), header.what.size() - 1);
  std::memcpy(header.what.data(), call.label.what, length);
  if (call.kind == Kind::minimum || call.kind == Kind::maximum) {
    std::memcpy(&header.value, call.in.data(), sizeof header.value);
  }
  return header;
}

std::string header_text(const CallHeader& header) {
  // Only the sizes of the spans are looked at.
  const auto type = static_cast<ElementType>(header.type);
  const auto size = static_cast<std::size_t>(header.element_count * element_bytes(type));
  Call call;
  call.kind = static_cast<Kind>(header.kind);
  call.type = type;
  call.in = {static_cast<const std::byte*>(nullptr), size};
  call.out = {static_cast<std::byte*>(nullptr), size};
  call.root = header.root;
  call.unit = header.unit;
  call.label = {header.what.data(), LayerId{header.layer}, header.step};
  return call_text(call);
}

std::optional<std::size_t> first_difference(std::span<const CallHeader> headers) {
  const auto without_value = [](CallHeader header) {
    header.value = 0;
    return header;
  };
  const CallHeader first = without_value(headers[0]);
  for (std::size_t i = 1; i < headers.size(); ++i) {
    const CallHeader other = without_value(headers[i]);
    if (std::memcmp(&first, &other, sizeof first) != 0) return i;
  }
  return std::nullopt;
}

}  // namespace sluice::collective::detail
