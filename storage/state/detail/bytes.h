#pragma once
// Fields at fixed offsets of a page or record. The format is little-endian, and so is every machine
// that Sluice builds for: fields are copied as they are.
// Thread contract: free functions without state.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace sluice::state::detail {

static_assert(std::endian::native == std::endian::little);

// A field outside its page is a mistake of the program.
void check_field(std::size_t offset, std::size_t size, std::size_t page_size);

template <typename T>
void store(std::span<std::byte> bytes, std::size_t offset, T value) {
  static_assert(std::is_arithmetic_v<T>);
  check_field(offset, sizeof(T), bytes.size());
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

template <typename T>
T load(std::span<const std::byte> bytes, std::size_t offset) {
  static_assert(std::is_arithmetic_v<T>);
  check_field(offset, sizeof(T), bytes.size());
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

inline void store_text(std::span<std::byte> field, std::string_view text) {
  check_field(0, text.size(), field.size());
  std::memcpy(field.data(), text.data(), text.size());
}

// Up to the first zero byte.
inline std::string load_text(std::span<const std::byte> field) {
  const auto* text = reinterpret_cast<const char*>(field.data());
  return std::string(text, strnlen(text, field.size()));
}

inline bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace sluice::state::detail
