#include "base/refusal.h"

#include <unistd.h>

#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "base/process_limits.h"

namespace sluice {
namespace {

constexpr std::string_view kBare =
    "memory was refused, and more of it even to say which limit counted";

const char* speaker = "";
std::terminate_handler ends_otherwise = nullptr;

std::string memory_text() {
  return fmt::format(
      "memory was refused: this process may have {}; raise that limit, end what else takes memory, "
      "or ask for less (batch, sequence, buffers, subgroup_elements, state_cache)",
      memory_limit_text());
}

std::string thread_text(std::string_view why) {
  const ProcessLimit limit = thread_limit(process_facts());
  const std::string threads =
      limit.is_limited() ? fmt::format("{} ({})", limit.count, limit.what) : "any number";
  return fmt::format(
      "a thread was refused: {}; this process may have {} of them, and {} of memory, of which each "
      "takes some for its stack; raise what is too low, or ask for fewer (threads, worker_threads)",
      why, threads, memory_limit_text());
}

void write_whole(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(STDERR_FILENO, text.data(), text.size());
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

void say(std::string_view text) {
  write_whole(speaker);
  write_whole(text);
  write_whole("\n");
}

// In a handler of terminate(): nothing may leave it.
bool is_said(const std::exception& exception) noexcept {
  try {
    const std::optional<std::string> text = refusal_text(exception);
    if (text) say(*text);
    return text.has_value();
  } catch (const std::exception&) {
    say(kBare);
    return true;
  }
}

void end_program() noexcept {
  if (const std::exception_ptr cause = std::current_exception()) {
    try {
      std::rethrow_exception(cause);
    } catch (const std::exception& exception) {
      // Destructors would wait for threads, of which one is this. What is committed is on drives.
      if (is_said(exception)) _exit(1);
    } catch (...) {
    }
  }
  if (ends_otherwise != nullptr) ends_otherwise();
  std::abort();
}

}  // namespace

std::optional<std::string> refusal_text(const std::exception& exception) {
  const bool is_memory = dynamic_cast<const std::bad_alloc*>(&exception) != nullptr ||
                         dynamic_cast<const std::length_error*>(&exception) != nullptr;
  if (is_memory) return memory_text();
  const auto* error = dynamic_cast<const std::system_error*>(&exception);
  if (error == nullptr) return std::nullopt;
  if (error->code() == std::errc::not_enough_memory) return memory_text();
  if (error->code() == std::errc::resource_unavailable_try_again) {
    return thread_text(error->code().message());
  }
  return std::nullopt;
}

void say_uncaught_refusals(const char* from) {
  speaker = from;
  ends_otherwise = std::set_terminate(end_program);
}

}  // namespace sluice
