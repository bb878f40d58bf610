#pragma once
// Where a software xclbin's checksum stands, for its writer and its reader.
//
// Thread contract: free functions.

#include <xclbin.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

#include "base/fnv.h"

namespace sluice::hls_link {

inline constexpr std::string_view kXclbinMagic{"xclbin2\0", 8};
inline constexpr std::string_view kSealMark{"sluice-fnv1a-64\0", 16};
inline constexpr std::size_t kSealOffset = offsetof(axlf, m_keyBlock);
inline constexpr std::size_t kSealHashOffset = kSealOffset + kSealMark.size();
inline constexpr std::size_t kSectionTableOffset = offsetof(axlf, m_sections);

// `file` is at least as long as a header.
inline std::uint64_t seal_of(std::span<const std::byte> file) {
  const std::byte zeros[8] = {};
  std::uint64_t hash = fnv1a(file.first(kSealHashOffset));
  hash = fnv1a(std::span<const std::byte>(zeros), hash);
  return fnv1a(file.subspan(kSealHashOffset + sizeof zeros), hash);
}

}  // namespace sluice::hls_link
