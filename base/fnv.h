#pragma once
// FNV-1a with 64 bits: for fingerprints of names and shapes, and for file headers that other
// programs should be able to write without a library. It notices every single changed byte (each
// step is a bijection of the state), and is no protection against intent.
//
// Thread contract: free functions, any thread.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice {

inline constexpr std::uint64_t kFnvOffset = 0xcbf29ce484222325u;

constexpr std::uint64_t fnv1a_byte(std::uint64_t hash, std::uint8_t byte) {
  return (hash ^ byte) * 0x100000001b3u;
}

// All of them continue from `hash`, so that a long input may come in pieces.
inline std::uint64_t fnv1a(std::span<const std::byte> bytes, std::uint64_t hash = kFnvOffset) {
  for (const std::byte byte : bytes) hash = fnv1a_byte(hash, static_cast<std::uint8_t>(byte));
  return hash;
}

constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t hash = kFnvOffset) {
  for (const char c : text) hash = fnv1a_byte(hash, static_cast<std::uint8_t>(c));
  return hash;
}

// The eight bytes of a number, lowest first, on any machine.
constexpr std::uint64_t fnv1a(std::uint64_t number, std::uint64_t hash) {
  for (int shift = 0; shift < 64; shift += 8) {
    hash = fnv1a_byte(hash, static_cast<std::uint8_t>(number >> shift));
  }
  return hash;
}

}  // namespace sluice
