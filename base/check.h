#pragma once
// Programmer errors: a CHECK that fails prints both values and the place, and aborts. Never
// reachable from user input.
//
// Thread contract: any thread; a failed check aborts the process.

#include <fmt/format.h>

#include <concepts>
#include <type_traits>

namespace sluice {

[[noreturn]] void check_failed(const char* file, int line, const char* expression,
                               const std::string& values);

namespace detail {
template <typename T>
auto printable(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return static_cast<std::underlying_type_t<T>>(value);
  } else if constexpr (std::is_pointer_v<T> || std::is_null_pointer_v<T>) {
    return static_cast<const void*>(value);
  } else {
    return value;
  }
}
}  // namespace detail

}  // namespace sluice

// Catch2 has a CHECK of its own: a test that includes it first keeps that one. Hence headers use
// the comparing forms only, so that an inline function is the same in every program.
#ifndef CHECK
#define CHECK(condition)                                                     \
  do {                                                                       \
    if (!(condition)) [[unlikely]]                                           \
      ::sluice::check_failed(__FILE__, __LINE__, #condition, std::string()); \
  } while (false)
#endif

#define SLUICE_CHECK_OP(a, op, b)                                                                  \
  do {                                                                                             \
    const auto& check_a = (a);                                                                     \
    const auto& check_b = (b);                                                                     \
    if (!(check_a op check_b)) [[unlikely]]                                                        \
      ::sluice::check_failed(__FILE__, __LINE__, #a " " #op " " #b,                                \
                             fmt::format(" ({} against {})", ::sluice::detail::printable(check_a), \
                                         ::sluice::detail::printable(check_b)));                   \
  } while (false)

#define CHECK_EQ(a, b) SLUICE_CHECK_OP(a, ==, b)
#define CHECK_NE(a, b) SLUICE_CHECK_OP(a, !=, b)
#define CHECK_LT(a, b) SLUICE_CHECK_OP(a, <, b)
#define CHECK_LE(a, b) SLUICE_CHECK_OP(a, <=, b)
#define CHECK_GT(a, b) SLUICE_CHECK_OP(a, >, b)
#define CHECK_GE(a, b) SLUICE_CHECK_OP(a, >=, b)
