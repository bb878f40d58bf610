#pragma once
// Stands in for Vitis HLS's hls_stream.h where v++ is not there: `hls::stream<T, DEPTH>`, a FIFO
// between two processes of a dataflow region (UG1399, "HLS Stream Library"). The vendor's C model
// has no bound and shows no deadlock. This one has both: see hls/sim/processes.h for the two ways
// to run.
//
// Thread contract: one process writes and one reads.
// Errors: a FIFO that can never be read or written again throws sluice::hls_sim::StuckFifo.

#include <cstdint>

#include "hls/sim/fifo.h"

namespace hls {

template <typename T, int DEPTH = 2>
class stream {
 public:
  stream() : stream("") {}
  explicit stream(const char* name) : fifo_(name, DEPTH) {}
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;

  void write(const T& value) { fifo_.push(value); }
  T read() { return fifo_.pop(); }
  bool empty() const { return fifo_.empty(); }

  // The stand-in's alone; the kernels reach it by HLS_NAME (hls/kernels/dataflow.h).
  void set_name(const char* name) { fifo_.set_name(name); }

 private:
  sluice::hls_sim::Fifo<T> fifo_;
};

}  // namespace hls
