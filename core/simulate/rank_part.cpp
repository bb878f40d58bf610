#include "core/simulate/rank_part.h"

#include "core/collective/open_ranks.h"

namespace sluice::simulate {

Result<RankPart> RankPart::take(plan::RunPlan& plan) {
  if (!plan.platform.cluster) {
    return make_error(ErrorCode::config, "{}: no [cluster], whose links {} ranks would have",
                      plan.platform.source, plan.config.batch.rank_count);
  }
  if (plan.share.is_sharded()) {
    return make_error(
        ErrorCode::config,
        "--ranks is a step of ranks that each have the whole model; --shard {} is one "
        "of ranks that have parts of it",
        shard::triple_text(plan.share.triple));
  }
  RankPart part;
  ASSIGN_OR_RETURN(part.alone_, collective::open_ranks({}, collective::UseMpi::never));
  ASSIGN_OR_RETURN(part.ranks_, train::Ranks::make(*part.alone_));
  RETURN_IF_ERROR(part.ranks_->charge(
      plan.platform, static_cast<std::int32_t>(plan.config.batch.rank_count), plan.share));
  return part;
}

}  // namespace sluice::simulate
