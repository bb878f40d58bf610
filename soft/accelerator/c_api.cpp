// soft_accelerator.h for C: no exception passes.

#include <c10/core/DeviceType.h>
#include <c10/util/Exception.h>

#include <cstdlib>
#include <exception>
#include <string>
#include <utility>

#include "soft/accelerator/accelerator.h"
#include "soft/accelerator/torch_parts.h"

namespace {

using sluice::soft_accelerator::Accelerator;
using sluice::soft_accelerator::parse_settings;

const char* kept_text(std::string text) {
  thread_local std::string kept;
  kept = std::move(text);
  return kept.empty() ? nullptr : kept.c_str();
}

// The result of `function`, or its exception, as a text.
template <typename Function>
const char* text_of(Function&& function) {
  try {
    return kept_text(function());
  } catch (const c10::Error& error) {
    return kept_text(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return kept_text(error.what());
  }
}

const char* or_environment(const char* settings) {
  if (settings == nullptr) settings = std::getenv(SLUICE_SOFT_ACCELERATOR_VARIABLE);
  return settings == nullptr ? "" : settings;
}

void register_all() {
  using namespace sluice::soft_accelerator;
  c10::register_privateuse1_backend("soft");
  register_allocator();
  register_guard();
  register_hooks();
  register_kernels();
  register_copies();
  register_attention();
  register_fallback();
  replace_cpu_allocator();
  catch_touches();
}

}  // namespace

extern "C" {

const char* sluice_soft_accelerator_open(const char* settings) {
  return text_of([&]() -> std::string {
    const auto parsed = parse_settings(or_environment(settings));
    if (!parsed) return parsed.error().message();
    Accelerator::instance().open(*parsed);
    register_all();
    return {};
  });
}

const char* sluice_soft_accelerator_set(const char* settings) {
  return text_of([&]() -> std::string {
    const auto parsed = parse_settings(or_environment(settings));
    if (!parsed) return parsed.error().message();
    Accelerator::instance().reset(*parsed);
    return {};
  });
}

void sluice_soft_accelerator_set_cap(int device, int64_t bytes) {
  text_of([&] { return Accelerator::instance().set_cap(device, bytes), std::string(); });
}

void sluice_soft_accelerator_set_threads(int threads) {
  Accelerator::instance().set_threads(threads);
}

void sluice_soft_accelerator_name_stream(int device, int64_t stream, const char* name) {
  text_of([&] { return Accelerator::instance().name_stream(device, stream, name), std::string(); });
}

void sluice_soft_accelerator_name_block(const void* address, const char* name) {
  Accelerator::instance().name_block(address, name);
}

const char* sluice_soft_accelerator_host_access(const void* address, int64_t bytes, int is_write) {
  using namespace sluice::soft_accelerator;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  return kept_text(
      Accelerator::instance().host_access({begin, begin + static_cast<std::uintptr_t>(bytes)},
                                          is_write != 0 ? AccessKind::write : AccessKind::read));
}

const char* sluice_soft_accelerator_take_error(void) {
  return kept_text(Accelerator::instance().take_error());
}

const char* sluice_soft_accelerator_pending(void) {
  const char* const text = kept_text(Accelerator::instance().pending());
  return text == nullptr ? "" : text;
}

const char* sluice_soft_accelerator_blocking_jobs(void) {
  const char* const text = kept_text(Accelerator::instance().blocking_jobs());
  return text == nullptr ? "" : text;
}

void sluice_soft_accelerator_counters(int device, SluiceSoftAcceleratorCounters* counters) {
  *counters = {};
  text_of([&] { return *counters = Accelerator::instance().counters(device), std::string(); });
}

int64_t sluice_soft_accelerator_stream_jobs(int device, int64_t stream) {
  return Accelerator::instance().stream_jobs(device, stream);
}

}  // extern "C"
