#pragma once
// A callable kept by value inside an operation, so that starting a kernel takes no memory. Captures
// are trivially copyable (pointers, spans, numbers) and small; what does not fit does not compile.

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>

#include "base/status.h"

namespace sluice::runtime {

class InlineFunction {
 public:
  static constexpr std::size_t kCapacityBytes = 256;

  InlineFunction() = default;
  template <typename F>
    requires(!std::is_same_v<std::decay_t<F>, InlineFunction>)
  InlineFunction(const F& function)  // NOLINT(google-explicit-constructor): reads as the lambda
      : call_([](void* storage) -> Status { return (*static_cast<F*>(storage))(); }) {
    static_assert(sizeof(F) <= kCapacityBytes, "capture less, or capture a pointer to it");
    static_assert(std::is_trivially_copyable_v<F>, "capture pointers and numbers, not owners");
    new (storage_) F(function);
  }

  explicit operator bool() const { return call_ != nullptr; }
  Status operator()() { return call_(storage_); }

 private:
  Status (*call_)(void*) = nullptr;
  alignas(16) std::byte storage_[kCapacityBytes] = {};
};

}  // namespace sluice::runtime
