#pragma once
// Records into a Sluice run database from C (C11) or C++, with Sluice's rings and collector:
// `sluice show`, `report` and `export` open what it writes, also while it writes.
// docs/recording.md has an example.
//
// A recording is a file, a level and a thread that writes. What is recorded goes into a ring of the
// calling thread: no lock, no system call, some tens of nanoseconds. A full ring drops what comes
// and counts it; nothing here ever waits for the file but start, flush, stop, and the first time
// that a device, a link or a stage is named.
//
// Errors: what can fail returns NULL or -1, and sluice_record_error() says why, in a sentence. What
// records cannot fail. A file that can no longer be written (a full drive) ends the recording, not
// the program: flush and stop say so.
//
// Thread contract: every function from any thread, stop excepted: nobody uses a recording during it
// or after it. A span may begin on one thread and end on another.

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SLUICE_RECORD_API __attribute__((visibility("default")))
#else
#define SLUICE_RECORD_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sluice_recording sluice_recording;
typedef uint32_t sluice_track;
typedef uint32_t sluice_name;
typedef uint64_t sluice_span_ref;
typedef int32_t sluice_device;
typedef int32_t sluice_link;

#define SLUICE_NO_TRACK ((sluice_track) - 1)
#define SLUICE_NO_NAME ((sluice_name) - 1)
#define SLUICE_NO_DEVICE ((sluice_device) - 1)
#define SLUICE_NO_LINK ((sluice_link) - 1)
#define SLUICE_NO_SPAN ((sluice_span_ref) - 1)

// The records that each level adds to the one before.
enum {
  SLUICE_OFF,
  SLUICE_STEPS,      // steps
  SLUICE_TRANSFERS,  // spans and instants
  SLUICE_ALL         // counters and flows
};
// One of these. An integer, so that a value that is none can be passed, and refused.
typedef int32_t sluice_level;

// What was there when the program was compiled, and what is there now: MAJOR * 1000 + MINOR. Minor
// versions add; a program may use a library of its own major version and at least its minor one.
#define SLUICE_RECORD_VERSION 1001
SLUICE_RECORD_API int32_t sluice_record_version(void);

// Why the last call that failed on this thread did; "" if none has.
SLUICE_RECORD_API const char* sluice_record_error(void);

// Begins a recording into `path`, whose folder exists. A run database that lies there is replaced;
// any other file is left alone, and the call fails. `name` is the run's, for people.
SLUICE_RECORD_API sluice_recording* sluice_record_start(const char* path, const char* name,
                                                        sluice_level level);

// Writes what is left, closes the file and frees the recording, also where it fails: -1 if the
// recording had ended before. NULL is fine.
SLUICE_RECORD_API int sluice_record_stop(sluice_recording* recording);

// Returns when all that was recorded before is in the file.
SLUICE_RECORD_API int sluice_record_flush(sluice_recording* recording);

// Takes effect at once; the file says when, from which level, and that `who` asked ("user").
SLUICE_RECORD_API void sluice_record_set_level(sluice_recording* recording, sluice_level level,
                                               const char* who);
SLUICE_RECORD_API sluice_level sluice_record_level(const sluice_recording* recording);

// Records that were lost until now: dropped by full rings, not to be written, or of tracks and
// names that this recording does not know.
SLUICE_RECORD_API uint64_t sluice_record_lost_count(const sluice_recording* recording);

// Set-up, under a lock: make each once and keep it. The same parent and name, or text, is the same.
SLUICE_RECORD_API sluice_track sluice_record_track(sluice_recording* recording, sluice_track parent,
                                                   const char* name);
// A number over time; its name says the unit: "queue depth (requests)".
SLUICE_RECORD_API sluice_track sluice_record_counter_track(sluice_recording* recording,
                                                           sluice_track parent, const char* name);
SLUICE_RECORD_API sluice_name sluice_record_name(sluice_recording* recording, const char* text);

// What the analysis is to know of spans with a name. Values of 0 are what is taken of other names.
enum { SLUICE_KERNEL, SLUICE_TRANSFER };  // kind
// place: where it runs, or what it lies between.
enum {
  SLUICE_ON_HOST,
  SLUICE_ON_COMPUTE,      // what does forward and backward
  SLUICE_ON_DEVICE,       // a drive, or the engine beside it
  SLUICE_AT_ACCELERATOR,  // host memory and an accelerator's
  SLUICE_BETWEEN_ACCELERATORS,
  SLUICE_BETWEEN_RANKS
};
// phase: the part of a step that ends with it.
enum { SLUICE_NO_PHASE, SLUICE_FORWARD, SLUICE_BACKWARD, SLUICE_PARAMETERS };
// cause: what a verdict counts its time for. By place: a kernel for where it runs, a transfer for
// its fullest link.
enum {
  SLUICE_BY_PLACE,
  SLUICE_COMPRESSION,
  SLUICE_COMMIT,
  SLUICE_RANKS,
  SLUICE_PROGRAM  // data, logging and other own work
};
typedef struct sluice_stage {
  int32_t kind, place, phase, cause;
} sluice_stage;

// The first meaning of a name stands. SLUICE_NO_NAME: a value that is none of these, or the
// recording has ended.
SLUICE_RECORD_API sluice_name sluice_record_stage(sluice_recording* recording, const char* name,
                                                  sluice_stage meaning);

// A drive, with a link of its own. Rates are what it can do at most, in bytes a second; 0: nobody
// knows. The same name is the same device. SLUICE_NO_DEVICE: the recording has ended.
SLUICE_RECORD_API sluice_device sluice_record_device(sluice_recording* recording, const char* name,
                                                     double read_bytes_per_s,
                                                     double write_bytes_per_s);
// A link that several devices share, or to an accelerator ("accelerator0.link").
SLUICE_RECORD_API sluice_link sluice_record_link(sluice_recording* recording, const char* name,
                                                 double read_bytes_per_s, double write_bytes_per_s);

// A track whose spans cross links in one direction, so that their bytes count there: the device's
// own, if there is a device, and `link`, if there is one.
enum { SLUICE_OUT_OF_DRIVE, SLUICE_INTO_DRIVE };  // an accelerator is a drive here
SLUICE_RECORD_API sluice_track sluice_record_transfer_track(sluice_recording* recording,
                                                            sluice_track parent, const char* name,
                                                            sluice_device device, sluice_link link,
                                                            int32_t direction);

// Nanoseconds of the clock that everything is recorded with: CLOCK_MONOTONIC.
SLUICE_RECORD_API int64_t sluice_record_now(void);

// A span under way: a value, which is copied and needs no release. One that began below
// SLUICE_TRANSFERS is not recorded.
typedef struct sluice_span {
  int64_t begin_ts;
  sluice_track track;
  sluice_name name;
} sluice_span;

SLUICE_RECORD_API sluice_span sluice_span_begin(sluice_recording* recording, sluice_track track,
                                                sluice_name name);
// `bytes`: what moved; 0 if nothing did. The span's reference, for flows, or SLUICE_NO_SPAN where
// it was not recorded.
SLUICE_RECORD_API sluice_span_ref sluice_span_end(sluice_recording* recording, sluice_span span,
                                                  int64_t bytes);
// One whose times are known: `submit_ts`, when it was asked for; it waited until `begin_ts`.
SLUICE_RECORD_API sluice_span_ref sluice_span_at(sluice_recording* recording, sluice_track track,
                                                 sluice_name name, int64_t submit_ts,
                                                 int64_t begin_ts, int64_t end_ts, int64_t bytes);
// A point in time.
SLUICE_RECORD_API sluice_span_ref sluice_instant(sluice_recording* recording, sluice_track track,
                                                 sluice_name name);
// From here until the next sample of this counter.
SLUICE_RECORD_API void sluice_counter(sluice_recording* recording, sluice_track counter,
                                      double value);
// `from` is a cause of `to`. Both are references that spans gave not long ago: the latest hundred
// thousand of each thread.
SLUICE_RECORD_API void sluice_flow(sluice_recording* recording, sluice_span_ref from,
                                   sluice_span_ref to);

// Steps are what `show` and `report` look at one by one. One is under way at a time, and spans that
// end in it, on any thread, belong to it. Numbers begin at 0 and grow.
SLUICE_RECORD_API void sluice_step_begin(sluice_recording* recording, int32_t number);
SLUICE_RECORD_API void sluice_step_end(sluice_recording* recording);
// The same of a training step.
SLUICE_RECORD_API void sluice_step_end_trained(sluice_recording* recording, int64_t tokens,
                                               double loss);

#ifdef __cplusplus
}
#endif
