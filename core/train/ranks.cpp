#include "core/train/ranks.h"

#include <numeric>

namespace sluice::train {

using collective::Call;
using collective::GroupId;
using collective::Kind;

namespace {

shard::CollectiveKind sum_among(const platform::Scope& mesh) {
  return {.collective = shard::Collective::all_reduce, .group = {.scope = mesh}};
}

// The code goes with the message: the ranks are alike, and so is what becomes of the run.
std::string outcome_text(const Status& mine) {
  if (mine.ok()) return "";
  return fmt::format("{} {}", static_cast<int>(mine.error().code()), mine.error().message());
}

Status first_failure(const Status& mine, const std::vector<std::string>& all) {
  if (!mine.ok()) return mine;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    const std::size_t space = all[rank].find(' ');
    const auto code = static_cast<ErrorCode>(std::stoi(all[rank].substr(0, space)));
    return make_error(code, "rank {}: {}", rank, all[rank].substr(space + 1));
  }
  return ok_status();
}

}  // namespace

Result<std::unique_ptr<Ranks>> Ranks::make(collective::Communicator& communicator) {
  std::vector<int> all(static_cast<std::size_t>(communicator.rank_count()));
  std::iota(all.begin(), all.end(), 0);
  ASSIGN_OR_RETURN(const GroupId gradients, communicator.make_group(all));
  ASSIGN_OR_RETURN(const GroupId commits, communicator.make_group(all));
  return std::unique_ptr<Ranks>(new Ranks(communicator, gradients, commits));
}

std::string Ranks::scope() const {
  return costs_ == nullptr ? "" : platform::scope_text(costs_->mesh());
}

Status Ranks::charge(platform::Platform& platform, std::int32_t rank_count,
                     const shard::RankShare& share) {
  costs_ = nullptr;
  if (!platform.cluster) return ok_status();
  ASSIGN_OR_RETURN(platform.cluster, shard::cut_to_ranks(*platform.cluster, rank_count));
  const platform::Scope& mesh = platform.cluster->mesh;
  if (share.is_sharded() && share.mesh != mesh) {
    return make_error(ErrorCode::config,
                      "clock=emulated: {} has {} ranks as {}, and they are {} here: set mesh={}",
                      platform.source, rank_count, platform::scope_text(mesh),
                      platform::scope_text(share.mesh), platform::scope_text(mesh));
  }
  std::vector<shard::CollectiveKind> kinds = {sum_among(mesh)};
  if (share.is_sharded()) kinds = ShardGroups::kinds_of(share);
  costs_ = shard::CollectiveLinks::add_to(platform, kinds);
  return ok_status();
}

runtime::Operation Ranks::sum_gradient(runtime::Runtime& runtime, LayerId layer,
                                       std::span<float> values) {
  runtime::Operation operation;
  operation.runtime = &runtime;
  operation.label.stage = stages::Stage::all_reduce;
  operation.label.layer = layer;
  operation.label.size_bytes = std::ssize(values) * 4;
  if (costs_ != nullptr)
    costs_->charge(operation, sum_among(costs_->mesh()), std::ssize(values) * 4);
  operation.work.kind = runtime::WorkKind::external;
  operation.work.start = [this, layer, values](runtime::Completion completion) {
    Call call;
    call.kind = Kind::all_reduce;
    call.group = gradients_;
    call.type = collective::ElementType::fp32;
    call.in = std::as_bytes(values);
    call.out = std::as_writable_bytes(values);
    call.label = {.what = "gradients", .layer = layer};
    return communicator_.start(call, std::move(completion));
  };
  return operation;
}

runtime::Operation Ranks::all_committed(runtime::Runtime& runtime, std::int32_t step) {
  runtime::Operation operation;
  operation.runtime = &runtime;
  operation.label.stage = stages::Stage::commit_ranks;
  operation.label.step = step;
  operation.work.kind = runtime::WorkKind::external;
  operation.work.start = [this, step](runtime::Completion completion) {
    Call call;
    call.kind = Kind::barrier;
    call.group = commits_;
    call.label = {.what = "commit", .step = step};
    return communicator_.start(call, std::move(completion));
  };
  return operation;
}

Result<std::vector<double>> Ranks::gather(std::span<const double> values, const char* what) {
  std::vector<double> all(values.size() * static_cast<std::size_t>(count()));
  Call call;
  call.kind = Kind::all_gather;
  call.type = collective::ElementType::fp64;
  call.in = std::as_bytes(values);
  call.out = std::as_writable_bytes(std::span(all));
  call.label.what = what;
  RETURN_IF_ERROR(communicator_.run(call));
  return all;
}

Result<std::vector<TimeNs>> Ranks::gather_times(std::span<const TimeNs> times, const char* what) {
  std::vector<TimeNs> all(times.size() * static_cast<std::size_t>(count()));
  Call call;
  call.kind = Kind::all_gather;
  call.in = std::as_bytes(times);
  call.out = std::as_writable_bytes(std::span(all));
  call.label.what = what;
  RETURN_IF_ERROR(communicator_.run(call));
  return all;
}

Result<std::vector<std::string>> Ranks::gather_text(std::string_view text, const char* what) {
  return communicator_.gather_text(text, what);
}

Status Ranks::hand_on(std::span<std::byte> bytes, int root, const char* what) {
  Call call;
  call.kind = Kind::broadcast;
  if (root == rank()) call.in = bytes;
  call.out = bytes;
  call.root = root;
  call.label.what = what;
  return communicator_.run(call);
}

Status Ranks::agreed(const Status& mine, const char* what) {
  ASSIGN_OR_RETURN(const std::vector<std::string> all, gather_text(outcome_text(mine), what));
  return first_failure(mine, all);
}

// Where the exchange itself fails, others may not know it.
Status Ranks::agreed_or_end(const Status& mine, const char* what) {
  ASSIGN_OR_RETURN(const std::vector<std::string> all, gather_text(outcome_text(mine), what));
  Status outcome = first_failure(mine, all);
  is_ended_ = !outcome.ok();
  return outcome;
}

Result<std::int64_t> Ranks::last_common_step(std::int64_t last_committed) {
  return communicator_.minimum(last_committed, "last committed step");
}

}  // namespace sluice::train
