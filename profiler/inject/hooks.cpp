// What hooks in the program's language call: profiler/inject/python/sitecustomize.py, and
// sluice.span() of the Python package.
//
// Thread contract: any thread.

#include <cstdint>

#include "profiler/inject/process_recording.h"

#define SLUICE_FOR_HOOKS extern "C" __attribute__((visibility("default")))

SLUICE_FOR_HOOKS int sluice_inject_stage(const char* name, int kind, int place, int phase,
                                         int cause) {
  return sluice::inject::stage_of(name, kind, place, phase, cause);
}
SLUICE_FOR_HOOKS void sluice_inject_span(int stage, std::int64_t begin_ns, std::int64_t end_ns) {
  sluice::inject::note_span(stage, begin_ns, end_ns);
}
SLUICE_FOR_HOOKS void sluice_inject_begin_step(std::int32_t number) {
  sluice::inject::begin_step(number);
}
SLUICE_FOR_HOOKS void sluice_inject_end_step() { sluice::inject::end_step(); }
SLUICE_FOR_HOOKS void sluice_inject_step_is_whole() { sluice::inject::step_is_whole(); }
SLUICE_FOR_HOOKS void sluice_inject_module_ends(const char* name, std::int64_t begin_ns) {
  sluice::inject::module_ends(name, begin_ns);
}
SLUICE_FOR_HOOKS std::int64_t sluice_inject_range_begins(const char* name) {
  return sluice::inject::range_begins(name);
}
SLUICE_FOR_HOOKS void sluice_inject_range_ends(const char* name, std::int64_t begin_ns) {
  sluice::inject::range_ends(name, begin_ns);
}
