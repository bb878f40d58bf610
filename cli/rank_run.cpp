#include "cli/rank_run.h"

#include <filesystem>
#include <random>

#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "core/collective/open_ranks.h"
#include "core/settings/run_config.h"
#include "core/simulate/sharding_choice.h"
#include "core/train/ranks.h"

namespace sluice::cli {
namespace {

std::string of_rank(const std::string& folder, int rank) {
  return (std::filesystem::path(folder) / fmt::format("rank-{}", rank)).string();
}

}  // namespace

RankRun::RankRun(std::unique_ptr<collective::Communicator> communicator)
    : communicator_(std::move(communicator)) {}
RankRun::~RankRun() = default;

bool RankRun::is_first() const { return communicator_->rank() == 0; }
int RankRun::count() const { return communicator_->rank_count(); }

Result<std::unique_ptr<RankRun>> RankRun::open(TimeNs patience_ns) {
  ASSIGN_OR_RETURN(std::unique_ptr<collective::Communicator> communicator,
                   collective::open_ranks({.patience_ns = patience_ns}));
  std::unique_ptr<RankRun> run(new RankRun(std::move(communicator)));
  if (!run->is_first()) leave_interrupts_unsaid();
  if (run->count() > 1) {
    ASSIGN_OR_RETURN(run->ranks_, train::Ranks::make(*run->communicator_));
  }
  return run;
}

Result<std::string> RankRun::run_id() {
  std::random_device chance;
  const std::string own = fmt::format("{:08x}{:08x}", chance(), chance());
  ASSIGN_OR_RETURN(std::vector<std::string> all, ranks_->gather_text(own, "name of the run"));
  return std::move(all.front());
}

Status RankRun::take_part(settings::RunConfig& config) const {
  if (count() == 1) return ok_status();
  if (config.offload.gradient_work == offload::GradientWork::accelerator) {
    return make_error(
        ErrorCode::config,
        "gradient_work=accelerator goes with one rank only: the gradients of {} ranks "
        "are added up in host memory; set gradient_work=host",
        count());
  }
  config.batch.rank_count = count();
  const int rank = communicator_->rank();
  config.shards.rank = rank;
  config.shards.node_ranks = node_ranks();
  settings::RunFiles& files = config.files;
  const std::string output = of_rank(files.output, rank);
  files.state_directory = files.state_places.of_rank(rank);
  const std::filesystem::path database(files.database);
  files.database =
      (std::filesystem::path(of_rank(database.parent_path().string(), rank)) / database.filename())
          .string();
  files.output = output;
  ASSIGN_OR_RETURN(config, simulate::with_sharding(config));
  return ok_status();
}

// 0: not the same number on each, one node after the other.
std::int32_t RankRun::node_ranks() const {
  std::int32_t of_first = 0;
  while (of_first < count() && communicator_->node_of(of_first) == 0) of_first += 1;
  if (count() % of_first != 0) return 0;
  for (int rank = 0; rank < count(); ++rank) {
    if (communicator_->node_of(rank) != rank / of_first) return 0;
  }
  return of_first;
}

Status RankRun::agreed(const Status& mine) {
  return ranks_ == nullptr ? mine : ranks_->agreed_or_end(mine, "start of the run");
}

int RankRun::close(const Status& outcome) {
  if (ranks_ == nullptr) return outcome.ok() ? kDone : report_error(outcome.error());
  if (!outcome.ok() && !ranks_->is_ended()) {
    communicator_->end_all(outcome.error());
    return report_error(outcome.error());
  }
  int exit_code = kDone;
  if (!outcome.ok()) {
    exit_code = is_first() ? report_error(outcome.error()) : exit_code_of(outcome.error());
    leave_interrupts_unsaid();  // the launcher sends one to those that leave after the first
  }
  ranks_.reset();
  const Status closed = communicator_->close();
  return closed.ok() || exit_code != kDone ? exit_code : report_error(closed.error());
}

}  // namespace sluice::cli
