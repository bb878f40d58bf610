#pragma once
// The software accelerator: a libtorch device "soft" whose memory no host access can reach, whose
// streams are threads, and whose mistakes of order are found by reckoning, not by luck. Kernels are
// libtorch's own for the CPU, so that its results are the CPU's, bit for bit.
//
// It lives in libsluice_soft_accelerator.so, which a program opens with dlopen():
//
//   const char* error = sluice_soft_accelerator_open("seed=1;delay_us=200;cap=256MiB");
//
// Settings: keys and values, "key=value;key=value". An unknown key is an error.
//   devices=N      devices, 1 to 8 (1); only at open
//   cap=SIZE       bytes of each device's memory, with or without KiB, MiB, GiB (1GiB)
//   in_rate=X      bytes per second from host to device; 0: as fast as it goes (0)
//   out_rate=X     bytes per second from device to host; 0: as fast as it goes (0)
//   seed=N         of the delays (1)
//   delay_us=N     the longest pause before a job or a copy, in microseconds; 0: none (0)
//   threads=N      with which each stream computes; 0: as many as the caller of open has (0)
//   fault=WHAT@N   may be repeated. oom@N: allocation N fails. copy@N: copy N between host and
//                  device fails. lost@N: at job N the device is lost. stuck@N: job N never ends.
//                  Events are counted on each device from 1; WHAT@N/deviceK keeps it to one.
//
//   counters=PATH  a file that the first device's bytes, copies and jobs are written to as the
//                  program ends: "in_bytes=N", a line each
//
// The accelerator reports, beside the errors of libtorch's own kernels:
//   - a job whose access to device or pinned memory no event orders after an earlier one. Thrown
//     by the call that enqueues it, and kept: the next synchronize throws it again
//   - memory that is freed while a stream may still use it (a missing record_stream): kept
//   - a failed copy, and an exception of a kernel: kept
//   - a host access to device memory: SIGSEGV, with a line on stderr that names the block
// Memory of the device is NaN (bytes of 0xFF) before its first use and after its last.
//
// The host is one actor to the reckoning: what one thread has waited for, all know. It waits by
// synchronizing, and by queries that returned true. Accesses are known to the byte, of a tensor
// with gaps as the whole from its first byte to its last.
//
// Thread contract: any thread. open() comes once, before the program's first backward pass: until
// then libtorch has no thread for the device's gradients.
// Errors: functions that can fail return NULL or a text, which is good until the calling thread's
// next call of one that returns a text.

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_SOFT_ACCELERATOR_VARIABLE "SLUICE_SOFT_ACCELERATOR"
#define SLUICE_SOFT_ACCELERATOR_API __attribute__((visibility("default")))

// Registers the device with libtorch. NULL settings: those of the environment's
// SLUICE_SOFT_ACCELERATOR. A second call is an error.
SLUICE_SOFT_ACCELERATOR_API const char* sluice_soft_accelerator_open(const char* settings);

// Waits for all jobs, then starts over with other settings: events of faults are counted anew,
// counters are 0, the peak is what is in use, kept errors are gone, a lost device is back. Jobs
// that are stuck end here.
SLUICE_SOFT_ACCELERATOR_API const char* sluice_soft_accelerator_set(const char* settings);

// Holds from the next allocation on, also below what is in use.
SLUICE_SOFT_ACCELERATOR_API void sluice_soft_accelerator_set_cap(int device, int64_t bytes);

// Holds from each stream's next job on.
SLUICE_SOFT_ACCELERATOR_API void sluice_soft_accelerator_set_threads(int threads);

// Names for messages. Streams 0, 1 and 2 are 'compute', 'in' and 'out' until they are named. The
// block is the one that `address` lies in, of a device or of pinned memory.
SLUICE_SOFT_ACCELERATOR_API void sluice_soft_accelerator_name_stream(int device, int64_t stream,
                                                                     const char* name);
SLUICE_SOFT_ACCELERATOR_API void sluice_soft_accelerator_name_block(const void* address,
                                                                    const char* name);

// Says that the host reads or writes pinned memory now, which the device cannot see. NULL where all
// that streams do there is known to be over; else the error, which is kept, too. Memory that is not
// pinned is never wrong.
SLUICE_SOFT_ACCELERATOR_API const char* sluice_soft_accelerator_host_access(const void* address,
                                                                            int64_t bytes,
                                                                            int is_write);

// The oldest kept error, which is kept no longer; NULL if there is none.
SLUICE_SOFT_ACCELERATOR_API const char* sluice_soft_accelerator_take_error(void);

// One line for each stream with unfinished jobs: its name, what runs, what waits.
SLUICE_SOFT_ACCELERATOR_API const char* sluice_soft_accelerator_pending(void);

typedef struct SluiceSoftAcceleratorCounters {
  int64_t in_bytes;  // from host to device
  int64_t in_copies;
  int64_t out_bytes;  // from device to host
  int64_t out_copies;
  int64_t jobs;         // kernels and copies of all streams
  int64_t used_bytes;   // in blocks of 512 bytes, those that wait for a stream included
  int64_t peak_bytes;   // the most that was used
  int64_t live_bytes;   // without those that wait for a stream
  int64_t cap_bytes;    // the most that can be
  int64_t allocations;  // since open() or set()
  // Sums over all devices:
  int64_t pinned_blocks;  // now
  int64_t pinned_bytes;   // now
  int64_t outputs;        // tensors that kernels returned
  int64_t moved_outputs;  // of these, which a kernel made elsewhere, so that they were copied
  int64_t blocking_jobs;  // kernels whose shape of output is only known afterwards
} SluiceSoftAcceleratorCounters;

SLUICE_SOFT_ACCELERATOR_API void sluice_soft_accelerator_counters(
    int device, SluiceSoftAcceleratorCounters* counters);

// "aten::nonzero 2, aten::equal 1": what is counted as blocking_jobs; empty if there is nothing.
SLUICE_SOFT_ACCELERATOR_API const char* sluice_soft_accelerator_blocking_jobs(void);

// Kernels and copies that were given to a stream; -1 for a stream that is not there.
SLUICE_SOFT_ACCELERATOR_API int64_t sluice_soft_accelerator_stream_jobs(int device, int64_t stream);

#ifdef __cplusplus
}
#endif
