#pragma once
// Task<T>: a coroutine that runs when awaited and hands its value to the one who awaits it. The
// whole schedule is made of these, on one owner thread.
//
// Give each co_await a statement of its own: g++ 12 mishandles temporaries inside larger
// expressions. Exceptions do not cross a Task (errors are Status); one that escapes ends the
// program.
//
// Thread contract: the owner thread of the runtime.

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "base/check.h"
#include "core/runtime/frame_pool.h"

namespace sluice::runtime {

namespace detail {

struct PooledFrame {
  static void* operator new(std::size_t size_bytes) { return take_frame(size_bytes); }
  static void operator delete(void* frame, std::size_t size_bytes) noexcept {
    give_frame(frame, size_bytes);
  }
};

struct TaskPromiseBase : PooledFrame {
  std::coroutine_handle<> continuation = std::noop_coroutine();

  std::suspend_always initial_suspend() noexcept { return {}; }
  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <typename Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> done) noexcept {
      return done.promise().continuation;
    }
    void await_resume() noexcept {}
  };
  FinalAwaiter final_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { std::terminate(); }
};

// A coroutine nobody awaits: starts at once and frees itself at its end.
struct Detached {
  struct promise_type : PooledFrame {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

}  // namespace detail

template <typename T>
class [[nodiscard]] Task {
 public:
  struct promise_type : detail::TaskPromiseBase {
    std::optional<T> value;
    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    template <typename U>
    void return_value(U&& result) {
      value.emplace(std::forward<U>(result));
    }
  };

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      if (handle_) handle_.destroy();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
    handle_.promise().continuation = awaiting;
    return handle_;
  }
  T await_resume() {
    CHECK_EQ(handle_.promise().value.has_value(), true);
    return std::move(*handle_.promise().value);
  }

 private:
  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace sluice::runtime
