#pragma once
// How a dataflow region is written, so that v++ sees plain calls in sequence under its pragma and
// g++ can run each as a thread (hls/sim/processes.h):
//
//   HLS_BEGIN();
//   hls::stream<Word, 8> words("words");
//   HLS_PROCESS(load_words(from, count, words));
//   HLS_PROCESS(store_words(words, count, to));
//   HLS_END();
//
// Thread contract: a region belongs to the thread that runs it.

#include <hls_stream.h>

#ifdef __SYNTHESIS__

#define HLS_BEGIN()
#define HLS_PROCESS(...) __VA_ARGS__
#define HLS_END()
#define HLS_NAME(streams, name)

#else

#include "hls/sim/processes.h"

#define HLS_BEGIN() sluice::hls_sim::Processes hls_processes
#define HLS_PROCESS(...) hls_processes.run(#__VA_ARGS__, [&] { __VA_ARGS__; })
#define HLS_END() hls_processes.join()
// A stream of an array has no constructor of its own to be named by.
#define HLS_NAME(streams, name) \
  for (auto& hls_stream : streams) hls_stream.set_name(name)

#endif
