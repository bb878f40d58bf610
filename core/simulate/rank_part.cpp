#include "core/simulate/rank_part.h"

#include "core/collective/communicator.h"
#include "core/collective/open_ranks.h"
#include "core/plan/rank_share.h"
#include "core/plan/run_plan.h"
#include "core/train/ranks.h"

namespace sluice::simulate {

RankPart::RankPart() = default;
RankPart::RankPart(RankPart&& other) noexcept = default;
RankPart& RankPart::operator=(RankPart&& other) noexcept = default;
RankPart::~RankPart() = default;

std::string RankPart::mesh() const { return platform::scope_text(ranks_->costs()->mesh()); }

Result<RankPart> RankPart::take(plan::RunPlan& plan) {
  if (!plan.platform.cluster) {
    return make_error(ErrorCode::config, "{}: no [cluster], whose links {} ranks would have",
                      plan.platform.source, plan.config.batch.rank_count);
  }
  RankPart part;
  ASSIGN_OR_RETURN(part.alone_, collective::open_ranks({}, collective::UseMpi::never));
  ASSIGN_OR_RETURN(part.ranks_, train::Ranks::make(*part.alone_));
  RETURN_IF_ERROR(part.ranks_->charge(
      plan.platform, static_cast<std::int32_t>(plan.config.batch.rank_count), plan.share));
  if (!plan.share.is_sharded()) return part;
  ASSIGN_OR_RETURN(part.overlaps_, plan::shard_overlaps(plan.config));
  ASSIGN_OR_RETURN(part.groups_, part.ranks_->make_simulated_groups(plan.share));
  return part;
}

}  // namespace sluice::simulate
