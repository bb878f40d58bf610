#pragma once

#include <cstddef>
#include <vector>

// Which sanitizer watches this build. g++ says it in a macro of its own, clang in a feature.

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLUICE_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define SLUICE_THREAD_SANITIZER 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__)
#define SLUICE_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define SLUICE_THREAD_SANITIZER 1
#endif

#if defined(SLUICE_ADDRESS_SANITIZER) || defined(SLUICE_THREAD_SANITIZER)
#define SLUICE_SANITIZED 1
#endif

namespace sluice {

#if defined(SLUICE_ADDRESS_SANITIZER)
inline constexpr bool kIsAddressSanitized = true;
#else
inline constexpr bool kIsAddressSanitized = false;
#endif

#if defined(SLUICE_THREAD_SANITIZER)
inline constexpr bool kIsThreadSanitized = true;
#else
inline constexpr bool kIsThreadSanitized = false;
#endif

// Code takes ten times as long, and more memory.
inline constexpr bool kIsSanitized = kIsAddressSanitized || kIsThreadSanitized;

// All of them, or, under a sanitizer, every fifth.
template <typename T>
std::vector<T> some_of(const std::vector<T>& all) {
  std::vector<T> some;
  for (std::size_t i = 0; i < all.size(); i += kIsSanitized ? 5 : 1) some.push_back(all[i]);
  return some;
}

}  // namespace sluice
