#include "core/train/base_weights.h"

#include <algorithm>
#include <vector>

#include "core/offload/base_cut.h"
#include "core/offload/parameter_pages.h"
#include "core/optimizer/gradient_stats.h"
#include "core/plan/run_plan.h"
#include "core/weights/checkpoint.h"

namespace sluice::train {
namespace {

// Elements that are read at once.
constexpr std::int64_t kPieceElements = 1 << 20;

}  // namespace

Result<std::shared_ptr<const weights::Checkpoint>> find_base(const plan::RunPlan& plan) {
  const std::string& model = plan.config.files.model;
  ASSIGN_OR_RETURN(std::optional<weights::Checkpoint> found,
                   weights::open_checkpoint(model, plan.shape));
  if (found && !found->new_tensors().empty()) {
    return make_error(
        ErrorCode::config,
        "lora_rank={}: adapters are trained on a whole model, and {} has no {}; train "
        "all of it (lora_rank=0) first",
        plan.shape.lora.rank, model, found->new_tensors().front());
  }
  if (found) return std::make_shared<const weights::Checkpoint>(*std::move(found));
  return make_error(ErrorCode::not_found,
                    "lora_rank={}: adapters are trained on a model's weights, and {} has none; set "
                    "model= to a folder of Hugging Face's with them; a resume needs the one that "
                    "the run was begun with",
                    plan.shape.lora.rank, model);
}

Result<session::Fact> base_fact(const weights::Checkpoint& base) {
  ASSIGN_OR_RETURN(const std::uint64_t sample, base.sample());
  return session::Fact{kBaseFact, fmt::format("{}, {:016x}", base.description(), sample),
                       settings::Decides::origin};
}

Result<BaseWeights> BaseWeights::read(const weights::Checkpoint& base, const plan::RunPlan& plan,
                                      const Stops& stops) {
  const std::int64_t count = plan.shape.base_layout().parameter_count;
  const ParameterKind kind = plan.config.arithmetic.precision;
  ASSIGN_OR_RETURN(io::PageAlignedBuffer memory,
                   io::PageAlignedBuffer::allocate(count * bytes_of(kind)));
  BaseWeights weights(std::move(memory), count, kind);
  std::vector<float> piece(static_cast<std::size_t>(std::min(count, kPieceElements)));
  for (std::int64_t first = 0; first < count; first += kPieceElements) {
    RETURN_IF_ERROR(unless_stopped(stops, "reading the base weights"));
    const std::int64_t size = std::min(kPieceElements, count - first);
    RETURN_IF_ERROR(base.fill(first, std::span(piece).first(static_cast<std::size_t>(size))));
    optimizer::put_parameters(piece.data(), weights.span().subspan(first, size));
  }
  return weights;
}

Result<BaseWeights> BaseWeights::by_layer(const plan::RunPlan& plan) {
  const std::int64_t count = plan.base->layout.parameter_count;
  const ParameterKind kind = plan.config.arithmetic.precision;
  ASSIGN_OR_RETURN(io::PageAlignedBuffer addresses,
                   offload::map_parameters(count * bytes_of(kind)));
  return BaseWeights(std::move(addresses), count, kind);
}

}  // namespace sluice::train
