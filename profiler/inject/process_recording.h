#pragma once
// The recording of the process that this library was put into: begun by the first bytes that it
// moves, ended with the process. A fork or an exec begins another, in a file of its own.
//
// The databases are in SLUICE_RECORD_FOLDER, a process's in PID.db.
//
// Errors: a recording that cannot begin, or ends before the program, is said once on stderr; the
// program goes on.
//
// Thread contract: every function from any thread.

#include <cstdint>
#include <string>

#include "profiler/inject/file_table.h"

namespace sluice::inject {

enum class Direction : std::uint8_t { read, write };

// Whether this process is to be recorded.
bool is_recording();
std::int64_t now_ns();

// `call`: the name of the function, of static storage. `bytes`: what it returned; below 0: it
// failed. It keeps errno.
void note_transfer(const char* call, OpenFile file, Direction direction, std::int64_t begin_ns,
                   std::int64_t bytes);
// fsync and its like.
void note_flush(const char* call, OpenFile file, std::int64_t begin_ns, int result);

// For hooks in the program's language, which come with `sluice record`; meanings and errors are
// those of sluice_record.h. Without a recording they do nothing.
int stage_of(const char* name, int kind, int place, int phase, int cause);  // -1: none
void note_span(int stage, std::int64_t begin_ns, std::int64_t end_ns);
void begin_step(std::int32_t number);
void end_step();
// The step under way has done all that makes it a step: where the program ends, it has ended here.
void step_is_whole();

// A range that the program names, from where it begins until it ends: an operation, something to be
// seen, or a step, as the rules have it (rules.h). Where the rules have steps, begin_step() and
// end_step() do nothing. The begin is what range_ends() is to be given; the end may be on another
// thread.
std::int64_t range_begins(const std::string& name);
void range_ends(const std::string& name, std::int64_t begin_ns);

// A module of the program's model, whatever its name: beside the schedule.
void module_ends(const std::string& name, std::int64_t begin_ns);

// What the GPU does, from now on; before the first context of CUDA is made.
void record_gpu();

// Ahead of an exec. Where that fails and the program goes on, another recording begins.
void end_recording();
// Ahead of an exit that calls no handlers.
void end_recording_for_good();

}  // namespace sluice::inject
