#pragma once
// A callable kept by value inside an operation, so that starting a kernel takes no memory. Captures
// are trivially copyable (pointers, spans, numbers) and small; what does not fit does not compile.
//
// Thread contract: a plain value; called by one thread at a time.

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include "base/status.h"

namespace sluice::runtime {

template <std::size_t CapacityBytes, typename... Arguments>
class InlineCall {
 public:
  InlineCall() = default;
  template <typename F>
    requires(!std::is_same_v<std::decay_t<F>, InlineCall>)
  InlineCall(const F& function)  // NOLINT(google-explicit-constructor): reads as the lambda
      : call_([](void* storage, Arguments... arguments) -> Status {
          return (*static_cast<F*>(storage))(std::move(arguments)...);
        }) {
    static_assert(sizeof(F) <= CapacityBytes, "capture less, or capture a pointer to it");
    static_assert(std::is_trivially_copyable_v<F>, "capture pointers and numbers, not owners");
    new (storage_) F(function);
  }

  explicit operator bool() const { return call_ != nullptr; }
  Status operator()(Arguments... arguments) { return call_(storage_, std::move(arguments)...); }

 private:
  Status (*call_)(void*, Arguments...) = nullptr;
  alignas(16) std::byte storage_[CapacityBytes] = {};
};

// The function that a worker runs.
using InlineFunction = InlineCall<256>;

}  // namespace sluice::runtime
