#pragma once
// A device whose kernel and copies complete elsewhere, as those of hardware do: a thread of its own
// does the work and notes the end, in an order of its own, late, twice, or never. The arithmetic is
// the emulated device's.
//
// Thread contract: that of CsdDevice; the thread is the device's.

#include <deque>
#include <random>
#include <thread>

#include "base/mutex.h"
#include "core/csd/emulated_csd.h"

namespace sluice::csd {

struct AnswerOptions {
  std::uint64_t seed = 1;
  bool reorders = false;         // takes several jobs at once and answers them in any order
  bool notes_twice = false;      // and once more after the next job's end
  std::int64_t unanswered = -1;  // the n-th job is never answered
  TimeNs patience_ns = 0;        // Work::patience_ns of each operation
};

class AnsweringCsd final : public EmulatedCsd {
 public:
  AnsweringCsd(const DeviceRequest& request, const AnswerOptions& options)
      : EmulatedCsd(request, Payload::real), options_(options), random_(options.seed) {
    thread_ = std::thread([this] { run(); });
  }
  ~AnsweringCsd() override { stop(); }

  void stop() final {
    if (!thread_.joinable()) return;
    {
      MutexLock lock(mutex_);
      is_closing_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  runtime::Operation update(const UpdateOrder& order, const UpdateBuffers& buffers,
                            UpdatedChecksums& updated) override {
    return elsewhere(EmulatedCsd::update(order, buffers, updated));
  }
  runtime::Operation sync_from_device(const TransferLabel& label, const DeviceRange& device,
                                      std::span<std::byte> host, std::int64_t size_bytes) override {
    return elsewhere(EmulatedCsd::sync_from_device(label, device, host, size_bytes));
  }
  runtime::Operation sync_to_device(const TransferLabel& label, std::span<const std::byte> host,
                                    const DeviceRange& device, std::int64_t size_bytes) override {
    return elsewhere(EmulatedCsd::sync_to_device(label, host, device, size_bytes));
  }

 private:
  struct Job {
    runtime::InlineFunction work;
    runtime::Completion completion;
  };

  // The operation's work goes to the thread. It is kept here, since a start function is small.
  runtime::Operation elsewhere(runtime::Operation operation) {
    works_.push_back(operation.work.function);
    operation.work = {};
    operation.work.kind = runtime::WorkKind::external;
    operation.work.patience_ns = options_.patience_ns;
    operation.work.start = [this, work = &works_.back()](runtime::Completion completion) {
      {
        MutexLock lock(mutex_);
        jobs_.push_back({*work, std::move(completion)});
      }
      wake_.notify_one();
      return ok_status();
    };
    return operation;
  }

  void run() NO_THREAD_SAFETY_ANALYSIS {
    while (true) {
      std::deque<Job> taken;
      {
        MutexLock lock(mutex_);
        while (jobs_.empty() && !is_closing_) wake_.wait(mutex_);
        if (jobs_.empty()) return;
        // Something else may come, and then be answered first.
        if (options_.reorders) wake_.wait_for(mutex_, std::chrono::microseconds(200));
        std::swap(taken, jobs_);
      }
      if (options_.reorders) std::shuffle(taken.begin(), taken.end(), random_);
      for (Job& job : taken) answer(job);
    }
  }

  void answer(Job& job) {
    if (count_++ == options_.unanswered) return;
    Status outcome = job.work();
    job.completion.note(outcome);
    if (!options_.notes_twice) return;
    job.completion.note(make_error(ErrorCode::internal, "noted a second time"));
    for (const runtime::Completion& earlier : answered_) {
      earlier.note(make_error(ErrorCode::internal, "noted after its place went on"));
    }
    answered_.assign(1, job.completion);
  }

  AnswerOptions options_;
  std::mt19937_64 random_;
  std::deque<runtime::InlineFunction> works_;  // stays where it is; the owner thread's
  std::int64_t count_ = 0;
  std::vector<runtime::Completion> answered_;
  Mutex mutex_;
  CondVar wake_;
  std::deque<Job> jobs_ GUARDED_BY(mutex_);
  bool is_closing_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

class AnsweringFactory final : public DeviceFactory {
 public:
  explicit AnsweringFactory(const AnswerOptions& options) : options_(options) {}
  std::string description() const override { return "answering CSDs"; }
  Result<std::unique_ptr<CsdDevice>> make(const DeviceRequest& request) override {
    return std::unique_ptr<CsdDevice>(std::make_unique<AnsweringCsd>(request, options_));
  }

 private:
  AnswerOptions options_;
};

}  // namespace sluice::csd
