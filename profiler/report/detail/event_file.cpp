#include "profiler/report/detail/event_file.h"

#include <array>
#include <bit>

namespace sluice::report::detail {
namespace {

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  constexpr std::uint32_t kReversedPolynomial = 0x82f63b78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReversedPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

// TensorFlow's masking: a checksum of bytes that hold checksums is a weak one.
std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8;
}

template <typename Unsigned>
void add_fixed(std::string& to, Unsigned value) {
  for (std::size_t byte = 0; byte < sizeof value; ++byte)
    to += static_cast<char>(value >> (8 * byte) & 0xff);
}

void add_varint(std::string& to, std::uint64_t value) {
  while (value >= 0x80) {
    to += static_cast<char>((value & 0x7f) | 0x80);
    value >>= 7;
  }
  to += static_cast<char>(value);
}

// Protocol buffers' kinds of a field on the wire.
enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void add_key(std::string& to, unsigned field, Wire wire) {
  add_varint(to, field << 3 | static_cast<unsigned>(wire));
}

void add_bytes(std::string& to, unsigned field, std::string_view bytes) {
  add_key(to, field, Wire::bytes);
  add_varint(to, bytes.size());
  to += bytes;
}

std::string record_of(std::string_view event) {
  std::string record;
  add_fixed(record, static_cast<std::uint64_t>(event.size()));
  add_fixed(record, masked_crc32c(record));
  record += event;
  add_fixed(record, masked_crc32c(event));
  return record;
}

// Event: wall_time = 1, step = 2, file_version = 3, summary = 5.
std::string event_at(double wall_time_s) {
  std::string event;
  add_key(event, 1, Wire::fixed64);
  add_fixed(event, std::bit_cast<std::uint64_t>(wall_time_s));
  return event;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> kTable = make_crc_table();
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes)
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

std::string event_file_version(double wall_time_s) {
  std::string event = event_at(wall_time_s);
  add_bytes(event, 3, "brain.Event:2");
  return record_of(event);
}

// Summary: value = 1, whose tag = 1 and simple_value = 2.
std::string scalar_event(double wall_time_s, std::int64_t step, std::string_view tag, float value) {
  std::string scalar;
  add_bytes(scalar, 1, tag);
  add_key(scalar, 2, Wire::fixed32);
  add_fixed(scalar, std::bit_cast<std::uint32_t>(value));
  std::string summary;
  add_bytes(summary, 1, scalar);
  std::string event = event_at(wall_time_s);
  add_key(event, 2, Wire::varint);
  add_varint(event, static_cast<std::uint64_t>(step));
  add_bytes(event, 5, summary);
  return record_of(event);
}

}  // namespace sluice::report::detail
