#include "core/train/divergence.h"

#include <charconv>
#include <cmath>
#include <filesystem>

#include "storage/state/state_store.h"

namespace sluice::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGentler = "a smaller lr or more warmup_steps";

// The number of "step-000120"; -1: another name.
std::int64_t step_of_snapshot(const std::string& name) {
  constexpr std::string_view kPrefix = "step-";
  std::int64_t step = -1;
  if (!name.starts_with(kPrefix)) return -1;
  const char* const end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + kPrefix.size(), end, step);
  return parsed.ec == std::errc() && parsed.ptr == end ? step : -1;
}

// A NaN has a sign that means nothing.
std::string loss_text(double loss) { return std::isnan(loss) ? "nan" : fmt::format("{}", loss); }

std::string ways_back(const std::string& snapshot) {
  const std::string anew = fmt::format("begin again in another output with {}", kGentler);
  if (snapshot.empty()) return fmt::format("There is no snapshot to go back to: {}", anew);
  return fmt::format(
      "Go back to the snapshot {} (a copy of it as state_dir, with --resume and {}), or {}",
      snapshot, kGentler, anew);
}

}  // namespace

Error diverged(const DivergedRun& run) {
  const std::string why = fmt::format("{} (loss {})", run.why, loss_text(run.loss));
  if (run.committed_step < run.weights_step) {
    return make_error(
        ErrorCode::diverged,
        "{}. The weights of step {}, which is committed, were made before: go on from "
        "it with --resume and {}",
        why, run.committed_step, kGentler);
  }
  if (!std::isfinite(run.loss)) {
    return make_error(
        ErrorCode::diverged,
        "{}. The weights committed at step {} are ruined, they give no finite loss: no "
        "resume goes on from them. {}",
        why, run.committed_step, ways_back(run.snapshot));
  }
  if (run.precision == ParameterKind::fp16) {
    return make_error(ErrorCode::diverged,
                      "{}. The weights committed at step {} give a finite loss: bf16 has a wider "
                      "range, so --resume with precision=bf16 may go on from them. {}",
                      why, run.committed_step, ways_back(run.snapshot));
  }
  return make_error(
      ErrorCode::diverged,
      "{}. A resume has the weights committed at step {} and the same text, and comes "
      "to the same gradients. {}",
      why, run.committed_step, ways_back(run.snapshot));
}

std::string newest_snapshot_before(const std::string& output, std::int64_t steps) {
  std::string newest;
  std::int64_t newest_step = -1;
  std::error_code error;
  for (fs::directory_iterator entry(fs::path(output) / "snapshots", error), end;
       !error && entry != end; entry.increment(error)) {
    const std::int64_t step = step_of_snapshot(entry->path().filename().string());
    if (step <= newest_step || step >= steps) continue;
    if (!state::StateStore::exists(entry->path().string())) continue;
    newest_step = step;
    newest = entry->path().string();
  }
  return newest;
}

SkippedSteps::SkippedSteps(const settings::RunConfig& config, std::int64_t first_step)
    : config_(config), applied_step_(first_step) {}

void SkippedSteps::note(const session::StepReport& step) {
  loss_ = step.loss;
  loss_scale_ = step.loss_scale;
  if (!step.skipped) {
    hopeless_in_a_row_ = 0;
    applied_step_ = step.step;
    return;
  }
  count_ += 1;
  const bool is_hopeless =
      !std::isfinite(step.loss) || optimizer::is_smallest(step.loss_scale, config_.loss_scale);
  hopeless_in_a_row_ = is_hopeless ? hopeless_in_a_row_ + 1 : 0;
}

std::string SkippedSteps::why_over() const {
  if (hopeless_in_a_row_ < config_.arithmetic.max_skipped_steps) return "";
  const std::string many = fmt::format(
      "{} steps in a row were skipped for overflow (max_skipped_steps)", hopeless_in_a_row_);
  if (!std::isfinite(loss_)) {
    return fmt::format("{}, and a loss that is not finite is the same at every loss scale (now {})",
                       many, loss_scale_);
  }
  return fmt::format("{} with the loss scale at its smallest, {} (min_loss_scale)", many,
                     loss_scale_);
}

}  // namespace sluice::train
