#pragma once
// What the tests of the software accelerator share: it is open, each case has settings of its own,
// and an error that a case does not look at fails it.
//
// Thread contract: a test's main thread.

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>

#include "soft/accelerator/soft_accelerator.h"

namespace sluice::soft_accelerator {

inline constexpr std::chrono::milliseconds kLong{20000};

inline const c10::Device kSoft{c10::kPrivateUse1, 0};

class Soft {
 public:
  explicit Soft(const char* settings = "") {
    static const char* const problem = sluice_soft_accelerator_open("devices=2");
    REQUIRE(problem == nullptr);
    set(settings);
  }
  Soft(const Soft&) = delete;
  Soft& operator=(const Soft&) = delete;
  ~Soft() {
    const std::string left = error();
    CHECK(left == "");
    sluice_soft_accelerator_set("");
  }

  void set(const char* settings) const {
    const char* const problem = sluice_soft_accelerator_set(settings);
    REQUIRE(std::string(problem == nullptr ? "" : problem) == "");
  }
  // The oldest kept error, or nothing.
  std::string error() const {
    const char* const text = sluice_soft_accelerator_take_error();
    return text == nullptr ? "" : text;
  }
  SluiceSoftAcceleratorCounters counters() const {
    SluiceSoftAcceleratorCounters counters;
    sluice_soft_accelerator_counters(0, &counters);
    return counters;
  }
  c10::Stream stream(std::int64_t id) const { return c10::Stream(c10::Stream::UNSAFE, kSoft, id); }
  c10::Stream compute() const { return stream(0); }
  c10::Stream in() const { return stream(1); }
  c10::Stream out() const { return stream(2); }
  void synchronize() const { c10::impl::VirtualGuardImpl(kSoft.type()).synchronizeDevice(0); }
};

inline at::Tensor on_soft(at::IntArrayRef size, at::ScalarType dtype = at::kFloat) {
  return at::empty(size, at::TensorOptions(kSoft).dtype(dtype));
}

inline at::Tensor pinned(at::IntArrayRef size, float value) {
  at::Tensor tensor = at::empty(size, at::TensorOptions(at::kFloat).pinned_memory(true));
  return tensor.fill_(value);
}

inline void use_on(const at::Tensor& tensor, const c10::Stream& stream) {
  c10::impl::VirtualGuardImpl(kSoft.type())
      .recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
}

template <typename Condition>
bool eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + kLong;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// The text of what `function` throws; nothing if it does not.
template <typename Function>
std::string thrown(Function&& function) {
  try {
    function();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return {};
}

}  // namespace sluice::soft_accelerator
