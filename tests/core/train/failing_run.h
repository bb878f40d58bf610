#pragma once
// Runs whose drives fail at some request.

#include <catch2/catch.hpp>
#include <set>

#include "tests/core/train/small_run.h"
#include "tests/sanitizer.h"
#include "tests/storage/io/faulty_engine.h"

namespace sluice {

// An engine that passes all on to another; tests look at what they like on the way.
class ForwardingEngine : public io::IoEngine {
 public:
  explicit ForwardingEngine(std::unique_ptr<io::IoEngine> inner) : inner_(std::move(inner)) {}

  std::size_t submit(std::span<const io::IoRequest> requests) override {
    return inner_->submit(requests);
  }
  std::size_t reap(std::span<io::IoCompletion> completions, std::size_t at_least) override {
    return inner_->reap(completions, at_least);
  }
  int completion_fd() const override { return inner_->completion_fd(); }
  Status register_buffers(std::span<const std::span<std::byte>> buffers) override {
    return inner_->register_buffers(buffers);
  }
  std::size_t inflight_count() const override { return inner_->inflight_count(); }
  std::size_t queue_depth() const override { return inner_->queue_depth(); }
  std::string_view name() const override { return inner_->name(); }

 private:
  std::unique_ptr<io::IoEngine> inner_;
};

// The engine's transfers fail once, `request_index` requests after the first.
inline WrapEngine failing(std::uint64_t request_index) {
  return [=](std::unique_ptr<io::IoEngine> inner) {
    io::FaultPlan plan;
    plan.planned.push_back({request_index, io::FaultPlan::Fault::eio});
    return io::make_faulty_engine(std::move(inner), plan);
  };
}

// Which requests of a run fail, each in a run of its own: from `first` on, every `by`-th, below
// `end`.
struct FailingRequests {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  std::uint64_t by = 1;
};

// With commit_every=3 among the settings: a failure leaves the last commit, and a resume from it
// ends where a run that went through does.
inline void check_last_commit_stands(const std::vector<std::string>& settings,
                                     const FailingRequests& requests) {
  const SmallRun undisturbed;
  const auto whole = train_small(undisturbed, settings);
  REQUIRE(whole.ok());
  std::set<std::int64_t> committed;
  for (std::uint64_t request = requests.first; request < requests.end;
       request += requests.by * (kIsSanitized ? 3 : 1)) {
    const SmallRun files;
    const auto failed =
        train_small(files, settings, session::StartFrom::new_state, failing(request));
    if (failed.ok()) continue;  // it made fewer requests
    const auto store = state::StateStore::open_read_only({files.folder.file("state")});
    if (!store.ok()) continue;  // the initial state was not whole yet
    const std::int64_t step = (*store)->committed().position.step;
    committed.insert(step);
    CHECK(step % 3 == 0);
    const auto rest = train_small(files, settings, session::StartFrom::last_commit);
    INFO("request " << request << " step " << step);
    REQUIRE(rest.ok());
    CHECK(rest->losses == std::vector<double>(whole->losses.begin() + step, whole->losses.end()));
    CHECK(rest->digest == whole->digest);
  }
  CHECK(committed.size() > 1);
}

}  // namespace sluice
