#include "core/train/step_parts.h"

#include <algorithm>
#include <filesystem>

#include "core/activation/activation_carrier.h"
#include "core/csd/drive.h"
#include "core/model/model_factory.h"
#include "core/offload/accelerator_work.h"
#include "core/offload/assembly.h"
#include "core/plan/rank_share.h"
#include "core/plan/run_plan.h"
#include "core/session/open_run.h"
#include "core/session/run_state.h"
#include "core/train/gradient_work.h"
#include "core/train/shard_traffic.h"
#include "core/train/step_context.h"

namespace sluice::train {
namespace {

TimeNs device_patience_ns(const plan::RunPlan& plan) {
  return static_cast<TimeNs>(plan.config.offload.device_patience * 1e9);
}

}  // namespace

StepParts::StepParts(const Request& request) : run_(request.run), built_(request.built) {}

StepParts::~StepParts() = default;

Result<std::unique_ptr<StepParts>> StepParts::make(const Request& request) {
  std::unique_ptr<StepParts> parts(new StepParts(request));
  RETURN_IF_ERROR(parts->attach_activations());
  if (request.groups != nullptr) parts->attach_shards(*request.groups);
  parts->make_context(request.ranks);
  RETURN_IF_ERROR(parts->prepare_gradient_work());
  return parts;
}

const activation::ActivationCarrier* StepParts::activations() const {
  return run_.plan().activations.offloads_anything() ? activations_.get() : nullptr;
}

Status StepParts::attach_activations() {
  const plan::RunPlan& plan = run_.plan();
  model::KeptBlocks* const blocks = built_.model->kept_blocks();
  RETURN_IF_ERROR(plan::check_activations(plan, blocks != nullptr));
  if (plan.activations.offloads_anything() && !plan.activations.stays) {
    RETURN_IF_ERROR(make_activation_files());
  }
  activations_ =
      std::make_unique<activation::ActivationCarrier>(activation::ActivationCarrier::Parts{
          run_.runtime(), plan.platform, run_.assembly().drives(), plan.layout, plan.activations,
          blocks, built_.device.get(), device_patience_ns(plan)});
  return ok_status();
}

Status StepParts::make_activation_files() {
  const plan::RunPlan& plan = run_.plan();
  offload::Drives& drives = run_.assembly().drives();
  const auto bytes = activation::drive_bytes(plan.activations, plan.geometry.device_count);
  for (const DeviceId device : ids_of(drives)) {
    const std::string folder =
        std::filesystem::path(run_.state().store().file(device).path()).parent_path().string();
    RETURN_IF_ERROR(drives[device]->files().make_unnamed(
        stages::DriveFile::activations, folder, plan.config.storage.caching, bytes[device]));
  }
  return ok_status();
}

void StepParts::attach_shards(ShardGroups& groups) {
  const plan::RunPlan& plan = run_.plan();
  shards_ = std::make_unique<ShardTraffic>(
      ShardTraffic::Parts{run_.runtime(), groups, plan.share, *plan::shard_overlaps(plan.config),
                          plan.layout, run_.offload(), run_.parameters(), run_.parameter_part()});
}

void StepParts::make_context(Ranks* ranks) {
  const plan::RunPlan& plan = run_.plan();
  context_.reset(new StepContext{
      .runtime = run_.runtime(),
      .platform = plan.platform,
      .offload = run_.offload(),
      .model = built_.model.get(),
      .layout = plan.layout,
      .layer_costs = plan.layer_costs,
      .micro_batch_bytes =
          model::batch_bytes(plan.shape, plan.config.batch.batch, plan.config.batch.sequence),
      .loss_bytes = model::loss_bytes(plan.shape),
      .device = built_.device.get(),
      .device_patience_ns = device_patience_ns(plan),
      .activations = activations_.get(),
      .ranks = ranks,
      .shards = shards_.get()});
}

// The selection on an accelerator follows the knobs; its residual stays there.
Status StepParts::prepare_gradient_work() {
  const plan::RunPlan& plan = run_.plan();
  if (!plan.options.works_on_accelerator()) return ok_status();
  return built_.device->gradients().prepare(
      offload::device_selection(plan.options, plan.share.state, plan.geometry));
}

Status StepParts::share_parameters() {
  if (shards_ == nullptr) return ok_status();
  shards_->share_updated();
  return settle();
}

Status StepParts::settle() {
  return shards_ == nullptr ? ok_status() : run_.runtime().run(shards_->settle());
}

offload::ResidualPlace StepParts::residual() {
  if (run_.plan().options.selects_on_host()) return run_.assembly().residual_in_memory();
  const auto staging = std::make_shared<io::PinnedBuffer>();
  const auto staged = [this, staging](std::size_t count) -> Result<std::span<float>> {
    if (staging->bytes().empty()) {
      ASSIGN_OR_RETURN(*staging,
                       run_.pinned_memory().allocate(offload::kResidualPieceElements * 4));
    }
    return std::span(reinterpret_cast<float*>(staging->bytes().data()), count);
  };
  return {.element_count = run_.plan().geometry.parameter_count,
          .read = [this, staged](std::int64_t first, std::span<float> piece) -> Status {
            ASSIGN_OR_RETURN(const std::span<float> from, staged(piece.size()));
            RETURN_IF_ERROR(
                bring_residual(platform::Direction::read, first, std::as_writable_bytes(from)));
            std::ranges::copy(from, piece.begin());
            return ok_status();
          },
          .write = [this, staged](std::int64_t first, std::span<const float> piece) -> Status {
            ASSIGN_OR_RETURN(const std::span<float> into, staged(piece.size()));
            std::ranges::copy(piece, into.begin());
            return bring_residual(platform::Direction::write, first, std::as_writable_bytes(into));
          }};
}

Status StepParts::bring_residual(platform::Direction direction, std::int64_t first,
                                 std::span<std::byte> staging) {
  return run_.runtime().run(train::bring_residual(
      *context_, direction, {first * 4, std::ssize(staging)}, staging.data()));
}

}  // namespace sluice::train
