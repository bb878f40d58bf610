#pragma once
// Event files of TensorBoard: records framed as TensorFlow's TFRecord, each an Event message with a
// file version or one scalar. The two messages have six fields in all, so that they are written
// here, without a library for protocol buffers.
//
// A record is the length (8 bytes, little-endian), its masked CRC-32C, the bytes, their masked
// CRC-32C.
//
// Thread contract: free functions.

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::report::detail {

// CRC-32C (Castagnoli, RFC 3720, B.4).
std::uint32_t crc32c(std::string_view bytes);

// The record that begins a file.
std::string event_file_version(double wall_time_s);
// A record of one scalar. `step` may not be negative.
std::string scalar_event(double wall_time_s, std::int64_t step, std::string_view tag, float value);

}  // namespace sluice::report::detail
