#include "profiler/inject/process_recording.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "base/colour.h"
#include "base/mutex.h"
#include "profiler/c_api/recording_state.h"
#include "profiler/c_api/stage_meaning.h"
#include "profiler/cupti/cupti_recording.h"
#include "profiler/inject/own_files.h"
#include "profiler/record/scoped_span.h"
#include "profiler/sample/host_sampler.h"

namespace sluice::inject {
namespace {

using c_api::RecordingState;

// The program's own words on stderr are not to be mixed with ours in the middle of a line.
void say(const std::string& text) {
  const std::string line = "sluice record: " + text + "\n";
  [[maybe_unused]] const auto written =
      ::syscall(SYS_write, STDERR_FILENO, line.data(), line.size());
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// PID.db, and where an exec has made the process anew, PID.2.db.
std::string database_of_this_process(const std::filesystem::path& folder) {
  for (int k = 1;; ++k) {
    const std::string name =
        fmt::format("{}{}.db", ::getpid(), k == 1 ? "" : fmt::format(".{}", k));
    if (!std::filesystem::exists(folder / name)) return folder / name;
  }
}

std::string command_line() {
  std::string line;
  const int file =
      static_cast<int>(::syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text;
  const auto size = file < 0 ? -1 : ::syscall(SYS_read, file, text.data(), text.size());
  if (file >= 0) ::syscall(SYS_close, file);
  for (long i = 0; i < size; ++i) {
    const char c = text[static_cast<std::size_t>(i)];
    line += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  while (line.ends_with(' ')) line.pop_back();
  constexpr std::size_t kLongest = 120;
  return line.size() <= kLongest ? line : line.substr(0, kLongest) + " ...";
}

// Signals are the program's: none is to arrive on the collector's thread.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

enum class Operation : std::uint8_t { read, write, flush };

rundb::StageRow meaning_of(Operation operation, const Rules::File* file) {
  const bool is_flush = operation == Operation::flush;
  const std::int32_t of_the_file = file == nullptr ? SLUICE_BY_PLACE : file->cause;
  rundb::StageRow row =
      c_api::stage_row({is_flush ? SLUICE_KERNEL : SLUICE_TRANSFER, SLUICE_ON_DEVICE,
                        SLUICE_NO_PHASE, is_flush ? SLUICE_COMMIT : of_the_file})
          .value();
  if (operation == Operation::write) row.colour = colour_text(palette::kWrite);
  return row;
}

class Process;
Process* process = nullptr;  // null: not to be recorded
void end_process();

// This process. What it makes is leaked: threads record until the last instant.
class Process {
 public:
  explicit Process(std::string folder) : folder_(std::move(folder)) {}

  // Begun if it has not been; null: it could not begin, or is over.
  std::shared_ptr<RecordingState>* recording() {
    if (!has_begun_.load(std::memory_order_acquire)) {
      MutexLock lock(mutex_);
      if (!has_begun_.load(std::memory_order_relaxed)) begin();
    }
    return is_over_.load(std::memory_order_relaxed) ? nullptr : state_;
  }
  // That of this process, without beginning one: a child of vfork has its parent's memory.
  std::shared_ptr<RecordingState>* begun() const {
    const bool has_one = has_begun_.load(std::memory_order_acquire) &&
                         !is_over_.load(std::memory_order_relaxed) && ::getpid() == id_;
    return has_one ? state_ : nullptr;
  }
  // Another for each recording.
  std::uint32_t generation() const { return generation_.load(std::memory_order_relaxed); }

  // The sampler hands its rows to the collector, so it is held first.
  void before_fork() NO_THREAD_SAFETY_ANALYSIS {
    mutex_.lock();
    if (sampler_ != nullptr) sampler_->hold_for_fork();
    if (state_ != nullptr) (*state_)->hold_for_fork();
  }
  void after_fork_in_parent() NO_THREAD_SAFETY_ANALYSIS {
    if (state_ != nullptr) (*state_)->release_after_fork();
    if (sampler_ != nullptr) sampler_->release_after_fork();
    mutex_.unlock();
  }
  // The parent's recording is nobody's here: its thread has not come along.
  void after_fork_in_child() NO_THREAD_SAFETY_ANALYSIS {
    const OwnWork own_work;
    if (state_ != nullptr) (*state_)->release_after_fork();
    if (sampler_ != nullptr) sampler_->close_in_child();
    state_ = nullptr;
    sampler_ = nullptr;
    gpu_ = nullptr;  // CUDA does not outlive a fork
    has_begun_ = false;
    is_over_ = false;
    generation_.fetch_add(1);
    mutex_.unlock();
  }
  // Its file is whole then. What comes after it, begins another one.
  void end() {
    const OwnWork own_work;
    MutexLock lock(mutex_);
    std::shared_ptr<RecordingState>* const state = begun();
    if (state == nullptr) return;
    has_begun_ = false;
    generation_.fetch_add(1);
    stop_gpu();
    if (sampler_ != nullptr) sampler_->stop();
    sampler_ = nullptr;
    const Status status = (*state)->collector().stop();
    if (!status.ok()) say(status.error().message());
  }
  // From now on. What the GPU does is of level `all`.
  Status record_gpu() {
    if (recording() == nullptr) return ok_status();
    const OwnWork own_work;
    const WithoutSignals without_signals;
    MutexLock lock(mutex_);
    if (state_ == nullptr || gpu_ != nullptr) return ok_status();
    ASSIGN_OR_RETURN(std::unique_ptr<cupti::CuptiRecording> gpu,
                     cupti::CuptiRecording::start((*state_)->recorder()));
    gpu_ = gpu.release();
    (*state_)->collector().attach(*gpu_);
    (*state_)->recorder().set_level(record::Level::all, "sluice record: there is a GPU");
    return ok_status();
  }
  // Nothing is recorded from now on: the process ends.
  void end_for_good() {
    end();
    is_over_ = true;
    has_begun_ = true;
  }

 private:
  // It is leaked, as the collector is that asks it.
  void stop_gpu() REQUIRES(mutex_) {
    if (gpu_ == nullptr) return;
    const Status status = gpu_->stop();
    if (!status.ok()) say(status.error().message());
    gpu_ = nullptr;
  }

  // Leaked like the GPU's. `sluice record` has looked whether the kernel lets a process sample
  // itself, so a program goes on without samples only where it has no descriptors left.
  void begin_samples() REQUIRES(mutex_) {
    const int samples_per_second = std::atoi(variable("SLUICE_RECORD_SAMPLES").c_str());
    if (samples_per_second <= 0) return;
    auto sampler = sample::HostSampler::open({.samples_per_second = samples_per_second,
                                              .ring_bytes_max = kRingBytesMax,
                                              .keep_file = taken_out_of_the_way},
                                             begin_own_thread);
    if (!sampler.ok()) {
      say(sampler.error().message() + "; this process is recorded without samples");
      return;
    }
    sampler_ = sampler->release();
    collect::Collector& collector = (*state_)->collector();
    collector.attach(*sampler_);
    const Status started = sampler_->start(
        [&collector](rundb::SampleRows&& taken) { collector.add(std::move(taken)); });
    if (!started.ok()) say(started.error().message());
  }

  void begin() REQUIRES(mutex_) {
    const OwnWork own_work;
    const WithoutSignals without_signals;
    auto started = RecordingState::start(database_of_this_process(folder_), command_line(),
                                         record::Level::transfers,
                                         {.cost_share_max = kAnyCost,
                                          .thread_begins = begin_own_thread,
                                          .mode = "recorded by sluice record",
                                          .recording = variable("SLUICE_RECORD_ID")});
    id_ = ::getpid();
    if (started.ok()) {
      state_ = new std::shared_ptr<RecordingState>(std::move(*started));
      begin_samples();
    } else {
      say(started.error().message() + "; the program goes on without a recording");
      is_over_ = true;
    }
    // After all that a recording needs has been made, so that it is there still when this runs.
    if (!has_exit_handler_) std::atexit(end_process);
    has_exit_handler_ = true;
    has_begun_.store(true, std::memory_order_release);
  }

  // The level stays: who records a program wants its bytes to be whole.
  static constexpr double kAnyCost = 1e9;
  // The kernel grants a user without locked memory 516 KiB a processor: several processes of a
  // program are to get some.
  static constexpr std::size_t kRingBytesMax = 128 << 10;

  const std::filesystem::path folder_;
  Mutex mutex_;
  std::atomic<bool> has_begun_{false};
  std::atomic<bool> is_over_{false};
  std::atomic<std::uint32_t> generation_{0};
  // Written before has_begun_.
  pid_t id_ = 0;
  bool has_exit_handler_ = false;  // a child has its parent's
  std::shared_ptr<RecordingState>* state_ = nullptr;
  cupti::CuptiRecording* gpu_ = nullptr;
  sample::HostSampler* sampler_ = nullptr;  // null: none
};

void end_process() { end_recording_for_good(); }

// A thread's own tracks and names, so that it asks for each once.
class ThreadTracks {
 public:
  record::TrackId of(const std::shared_ptr<RecordingState>& state, OpenFile file,
                     Direction direction) {
    begin_anew(state);
    const std::uint32_t key = static_cast<std::uint32_t>(file.kind) << 24 |
                              static_cast<std::uint32_t>(direction) << 16 | file.device;
    const auto known = tracks_.find(key);
    if (known != tracks_.end()) return known->second;
    const std::string device =
        device_name(file.device) + (file.kind == FileKind::direct ? "" : " (page cache)");
    const auto id = state->declarations().device(state->collector(), device, {});
    const auto track = state->add_transfer_track(
        thread_, (direction == Direction::read ? "out of " : "into ") + device, id.ok() ? *id : -1,
        -1,
        direction == Direction::read ? record::LinkDirection::read : record::LinkDirection::write);
    return tracks_[key] = track.ok() ? *track : thread_;
  }
  record::TrackId of_thread(const std::shared_ptr<RecordingState>& state) {
    begin_anew(state);
    return thread_;
  }
  record::NameId name(const std::shared_ptr<RecordingState>& state, const char* call, OpenFile file,
                      Operation operation) {
    begin_anew(state);
    const auto known = names_.find({call, file.rule});
    if (known != names_.end()) return known->second;
    const Rules::File* const rule = rules().file(file.rule);
    const record::NameId name =
        state->intern(rule == nullptr ? call : fmt::format("{}: {}", rule->name, call));
    // Where the recording has ended nothing of it is written.
    static_cast<void>(
        state->declarations().stage(state->collector(), name, meaning_of(operation, rule)));
    return names_[{call, file.rule}] = name;
  }

  struct Range {
    record::NameId name{};
    record::TrackId track = record::kNoTrack;
  };
  enum class Of : std::uint8_t { rules, modules };
  // One that no rule names, and each module, is on a track that is beside the schedule.
  Range range(const std::shared_ptr<RecordingState>& state, const std::string& text, Of of) {
    begin_anew(state);
    const auto known = ranges_.find({of, text});
    if (known != ranges_.end()) return known->second;
    Range range{.name = state->intern(text), .track = thread_};
    const std::optional<sluice_stage> meaning =
        of == Of::rules ? rules().meaning_of_range(text) : std::nullopt;
    if (meaning) {
      static_cast<void>(state->declarations().stage(state->collector(), range.name,
                                                    c_api::stage_row(*meaning).value()));
    } else {
      range.track = state->add_track(thread_, "module",
                                     thread_name_ + (of == Of::rules ? " ranges" : " modules"));
    }
    // Names that a program makes anew each time would fill the memory.
    constexpr std::size_t kRangesMax = 1 << 12;
    if (ranges_.size() >= kRangesMax) ranges_.clear();
    return ranges_[{of, text}] = range;
  }

 private:
  void begin_anew(const std::shared_ptr<RecordingState>& state) {
    if (generation_ == process->generation()) return;
    generation_ = process->generation();
    tracks_.clear();
    names_.clear();
    ranges_.clear();
    std::array<char, 16> name{};
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    thread_name_ = fmt::format("{} {}", name.data(), ::gettid());
    thread_ = state->add_track(record::kNoTrack, "thread", thread_name_);
  }

  std::uint32_t generation_ = ~std::uint32_t{0};
  record::TrackId thread_ = record::kNoTrack;
  std::map<std::uint32_t, record::TrackId> tracks_;
  std::string thread_name_;
  std::map<std::pair<const char*, Rules::FileRule>, record::NameId> names_;
  std::map<std::pair<Of, std::string>, Range> ranges_;
};
thread_local ThreadTracks thread_tracks;

void note(const char* call, OpenFile file, Operation operation, std::int64_t begin_ns,
          std::int64_t bytes) {
  const std::int64_t end_ns = record::span_now_ns();
  const int error = errno;
  {
    const OwnWork own_work;
    if (std::shared_ptr<RecordingState>* const state = process->recording()) {
      record::SpanRecord span;
      span.track = thread_tracks.of(
          *state, file, operation == Operation::read ? Direction::read : Direction::write);
      span.name = thread_tracks.name(*state, call, file, operation);
      span.device = (*state)->declarations().device_of(span.track);
      span.status = bytes < 0 ? record::SpanStatus::failed : record::SpanStatus::ok;
      span.step = (*state)->step();
      span.submit_ts = span.ts = begin_ns;
      span.dur = end_ns - begin_ns;
      span.bytes = bytes > 0 ? bytes : 0;
      (*state)->push_span(*state, span);
    }
  }
  errno = error;
}

std::atomic<std::int64_t> whole_ns{0};  // when the step under way was whole; 0: it is not

void step_begins(std::int32_t number) {
  whole_ns.store(0, std::memory_order_relaxed);
  if (!is_recording()) return;
  const OwnWork own_work;
  if (std::shared_ptr<RecordingState>* const state = process->recording())
    (*state)->begin_step(number);
}

void step_ends(std::int64_t end_ns) {
  whole_ns.store(0, std::memory_order_relaxed);
  if (!is_recording()) return;
  const OwnWork own_work;
  std::shared_ptr<RecordingState>* const state = process->recording();
  if (state == nullptr) return;
  record::StepRecord step;
  step.loss = step.grad_norm = step.loss_scale = step.lr = std::numeric_limits<double>::quiet_NaN();
  (*state)->end_step(*state, step, end_ns);
}

void note_range(const std::string& name, ThreadTracks::Of of, std::int64_t begin_ns,
                std::int64_t end_ns) {
  const OwnWork own_work;
  std::shared_ptr<RecordingState>* const state = process->recording();
  if (state == nullptr) return;
  const ThreadTracks::Range range = thread_tracks.range(*state, name, of);
  record::SpanRecord span;
  span.track = range.track;
  span.name = range.name;
  span.step = (*state)->step();
  span.submit_ts = span.ts = begin_ns;
  span.dur = end_ns - begin_ns;
  (*state)->push_span(*state, span);
}

// Before any other code of the program but that of its libraries.
__attribute__((constructor)) void begin_process() {
  const std::string folder = variable("SLUICE_RECORD_FOLDER");
  if (folder.empty()) return;
  read_rules(variable("SLUICE_RECORD_RULES"));
  process = new Process(folder);
  ::pthread_atfork([] { process->before_fork(); }, [] { process->after_fork_in_parent(); },
                   [] { process->after_fork_in_child(); });
}

}  // namespace

bool is_recording() { return process != nullptr && !is_at_own_work(); }
std::int64_t now_ns() { return record::span_now_ns(); }

void note_transfer(const char* call, OpenFile file, Direction direction, std::int64_t begin_ns,
                   std::int64_t bytes) {
  note(call, file, direction == Direction::read ? Operation::read : Operation::write, begin_ns,
       bytes);
}

void note_flush(const char* call, OpenFile file, std::int64_t begin_ns, int result) {
  note(call, file, Operation::flush, begin_ns, result < 0 ? -1 : 0);
}

int stage_of(const char* name, int kind, int place, int phase, int cause) {
  if (!is_recording()) return -1;
  const OwnWork own_work;
  std::shared_ptr<RecordingState>* const state = process->recording();
  const std::optional<rundb::StageRow> row = c_api::stage_row({kind, place, phase, cause});
  if (state == nullptr || !row) return -1;
  const record::NameId id = (*state)->intern(name);
  const Status status = (*state)->declarations().stage((*state)->collector(), id, *row);
  return status.ok() ? static_cast<int>(id) : -1;
}

void note_span(int stage, std::int64_t begin_ns, std::int64_t end_ns) {
  if (!is_recording() || stage < 0) return;
  const OwnWork own_work;
  std::shared_ptr<RecordingState>* const state = process->recording();
  if (state == nullptr) return;
  record::SpanRecord span;
  span.track = thread_tracks.of_thread(*state);
  span.name = record::NameId{static_cast<std::uint32_t>(stage)};
  span.step = (*state)->step();
  span.submit_ts = span.ts = begin_ns;
  span.dur = end_ns - begin_ns;
  (*state)->push_span(*state, span);
}

void begin_step(std::int32_t number) {
  if (!rules().has_steps()) step_begins(number);
}
void end_step() {
  if (!rules().has_steps()) step_ends(now_ns());
}

void step_is_whole() {
  if (!rules().has_steps()) whole_ns.store(now_ns(), std::memory_order_relaxed);
}

std::int64_t range_begins(const std::string& name) {
  static std::atomic<std::int32_t> steps{0};
  if (rules().is_step(name)) step_begins(steps.fetch_add(1));
  return now_ns();
}

void range_ends(const std::string& name, std::int64_t begin_ns) {
  const std::int64_t end_ns = now_ns();
  if (!is_recording()) return;
  if (rules().is_step(name)) return step_ends(end_ns);
  note_range(name, ThreadTracks::Of::rules, begin_ns, end_ns);
}

void module_ends(const std::string& name, std::int64_t begin_ns) {
  if (is_recording()) note_range(name, ThreadTracks::Of::modules, begin_ns, now_ns());
}

void record_gpu() {
  if (!is_recording()) return;
  const Status status = process->record_gpu();
  if (!status.ok()) say("the record has no kernels of the GPU: " + status.error().message());
}

void end_recording() {
  if (process == nullptr || is_at_own_work()) return;
  const int error = errno;
  process->end();
  errno = error;
}
void end_recording_for_good() {
  if (process == nullptr || is_at_own_work()) return;
  if (const std::int64_t end_ns = whole_ns.load(std::memory_order_relaxed)) step_ends(end_ns);
  process->end_for_good();
}

}  // namespace sluice::inject
