#pragma once
// sluice_record.h for C++11 and later: recordings and spans that end with their scope.
//
//   sluice_record::Recording run("run.db", "my program");
//   const sluice_track disk = run.track("disk");
//   const sluice_name read = run.name("read");
//   for (int i = 0; i < 10; ++i) {
//     sluice_record::Step step(run, i);
//     sluice_record::Span span(run, disk, read);
//     span.add_bytes(::read(file, buffer, size));
//   }
//
// Errors: where the C functions return NULL or none, std::runtime_error with what they say. A
// recording that goes out of scope keeps its last error to itself; stop() throws it.
//
// Thread contract: that of sluice_record.h; a Span and a Step are one thread's.

#include <cstdint>
#include <stdexcept>
#include <string>

#include "sluice_record.h"

namespace sluice_record {

class Recording {
 public:
  Recording(const std::string& path, const std::string& name, sluice_level level = SLUICE_ALL)
      : recording_(sluice_record_start(path.c_str(), name.c_str(), level)) {
    require(recording_ != nullptr);
  }
  ~Recording() { sluice_record_stop(recording_); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  void stop() {
    sluice_recording* const recording = recording_;
    recording_ = nullptr;
    require(sluice_record_stop(recording) == 0);
  }
  void flush() { require(sluice_record_flush(recording_) == 0); }

  sluice_track track(const std::string& name, sluice_track parent = SLUICE_NO_TRACK) {
    return sluice_record_track(recording_, parent, name.c_str());
  }
  sluice_track counter(const std::string& name, sluice_track parent = SLUICE_NO_TRACK) {
    return sluice_record_counter_track(recording_, parent, name.c_str());
  }
  sluice_name name(const std::string& text) { return sluice_record_name(recording_, text.c_str()); }
  sluice_name stage(const std::string& text, sluice_stage meaning) {
    return given(sluice_record_stage(recording_, text.c_str(), meaning), SLUICE_NO_NAME);
  }
  sluice_device device(const std::string& name, double read_bytes_per_s = 0,
                       double write_bytes_per_s = 0) {
    return given(
        sluice_record_device(recording_, name.c_str(), read_bytes_per_s, write_bytes_per_s),
        SLUICE_NO_DEVICE);
  }
  sluice_link link(const std::string& name, double read_bytes_per_s = 0,
                   double write_bytes_per_s = 0) {
    return given(sluice_record_link(recording_, name.c_str(), read_bytes_per_s, write_bytes_per_s),
                 SLUICE_NO_LINK);
  }
  sluice_track transfers(const std::string& name, sluice_track parent, sluice_device device,
                         sluice_link link, std::int32_t direction) {
    return given(
        sluice_record_transfer_track(recording_, parent, name.c_str(), device, link, direction),
        SLUICE_NO_TRACK);
  }

  // For the functions of sluice_record.h that have no face here.
  sluice_recording* get() { return recording_; }

 private:
  static void require(bool is_done) {
    if (!is_done) throw std::runtime_error(sluice_record_error());
  }
  template <typename T>
  static T given(T value, T none) {
    require(value != none);
    return value;
  }

  sluice_recording* recording_;
};

class Span {
 public:
  Span(Recording& recording, sluice_track track, sluice_name name)
      : recording_(recording.get()), span_(sluice_span_begin(recording_, track, name)) {}
  ~Span() { end(); }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  void add_bytes(std::int64_t bytes) { bytes_ += bytes; }
  // Before the scope does; the reference is for flows.
  sluice_span_ref end() {
    if (recording_ == nullptr) return SLUICE_NO_SPAN;
    sluice_recording* const recording = recording_;
    recording_ = nullptr;
    return sluice_span_end(recording, span_, bytes_);
  }

 private:
  sluice_recording* recording_;
  sluice_span span_;
  std::int64_t bytes_ = 0;
};

class Step {
 public:
  Step(Recording& recording, std::int32_t number) : recording_(recording.get()) {
    sluice_step_begin(recording_, number);
  }
  ~Step() { sluice_step_end(recording_); }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

 private:
  sluice_recording* recording_;
};

}  // namespace sluice_record
