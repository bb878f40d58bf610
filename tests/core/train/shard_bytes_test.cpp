// What sharded ranks say to one another in a run, by the counters of their communicators, against
// the table of docs/sharding.md; and what a rank takes of memory and drives, against its plan.

#include <catch2/catch.hpp>

#include "core/optimizer/gradient_stats.h"
#include "tests/core/train/shard_runs.h"

using namespace sluice;

namespace {

using collective::CallCounters;
using collective::GroupId;
using collective::Kind;

constexpr std::int64_t kSteps = 2;

struct Counted {
  bool has_other_groups = false;
  CallCounters gathers;
  CallCounters scatters;
  CallCounters sums;  // of squares
  CallCounters reductions;
  CallCounters shares;
  std::int64_t held_count = 0;    // parameters of the rank
  std::int64_t held_layers = 0;   // of which it has some
  std::int64_t first_pinned = 0;  // bytes
  std::int64_t drive_bytes = 0;   // of the state's arrays, both versions
  state::Geometry geometry;
};

class CountingPinned final : public io::PinnedMemory {
 public:
  Result<io::PinnedBuffer> allocate(std::int64_t size_bytes) override {
    sizes.push_back(size_bytes);
    return io::PinnedMemory::allocate(size_bytes);
  }
  std::vector<std::int64_t> sizes;
};

// Groups of this rank, in the order in which they were made, but for those of all runs of ranks:
// the world, gradients and commits.
std::vector<GroupId> groups_of_shards(const collective::Communicator& communicator) {
  std::vector<GroupId> groups;
  for (int group = 3; group < communicator.group_count(); ++group) {
    const auto ranks = communicator.ranks_of(GroupId{group});
    if (std::ranges::find(ranks, communicator.rank()) != ranks.end()) {
      groups.push_back(GroupId{group});
    }
  }
  return groups;
}

void count_calls(Counted& counted, const collective::Communicator& communicator,
                 const shard::RankShare& share) {
  const std::vector<GroupId> groups = groups_of_shards(communicator);
  std::size_t next = 0;
  if (share.is_gathered()) {
    counted.gathers = communicator.counters(groups.at(next++), Kind::all_gather);
    counted.scatters = communicator.counters(groups.at(next++), Kind::reduce_scatter);
    counted.sums = communicator.counters(groups.at(next++), Kind::all_gather);
  }
  counted.reductions = communicator.counters(groups.at(next++), Kind::all_reduce);
  if (share.owners.size() > 1) {
    counted.shares = communicator.counters(groups.at(next++), Kind::broadcast);
  }
  counted.has_other_groups = next != groups.size();
}

Result<Counted> train_and_count(const SmallRun& files, const std::vector<std::string>& settings,
                                train::Ranks& ranks, const collective::Communicator& communicator) {
  const std::string output = files.folder.file(fmt::format("rank-{}", ranks.rank()));
  ASSIGN_OR_RETURN(settings::RunConfig config, files.config(with(settings, {"output=" + output})));
  config.batch.rank_count = ranks.count();
  config.shards.rank = ranks.rank();
  const auto pinned = std::make_shared<CountingPinned>();
  model::ModelFactory factory = arithmetic_factory();
  factory.pinned = pinned;
  train::TrainingRun::Request request;
  request.config = &config;
  request.factory = &factory;
  request.ranks = &ranks;
  ASSIGN_OR_RETURN(const auto run, train::TrainingRun::open(request));
  RETURN_IF_ERROR(run->prepare(session::StartFrom::new_state));
  RETURN_IF_ERROR(train::train(*run, {}, {}));
  const shard::RankShare& share = run->plan().share;
  Counted counted;
  count_calls(counted, communicator, share);
  counted.held_count = share.parameters.parameter_count;
  for (const model::LayerRange& layer : share.parameters.layers) {
    counted.held_layers += layer.count > 0 ? 1 : 0;
  }
  counted.first_pinned = pinned->sizes.front();
  counted.geometry = run->plan().geometry;
  counted.drive_bytes = run->session().state().store().layout().data_bytes(DeviceId{0});
  return counted;
}

struct Sent {
  std::int64_t gathers = 0;
  std::int64_t scatters = 0;
  std::int64_t sums = 0;
  std::int64_t reductions = 0;
  std::int64_t shares = 0;
  friend bool operator==(const Sent&, const Sent&) = default;
};
std::ostream& operator<<(std::ostream& out, const Sent& sent) {
  return out << "gathers " << sent.gathers << ", scatters " << sent.scatters << ", sums "
             << sent.sums << ", reductions " << sent.reductions << ", shares " << sent.shares;
}

// What all ranks send in a step, by the table: where p ranks gather or scatter, each part goes to
// p - 1 others, or comes from them. Gradients are fp32.
Sent by_the_table(const model::FlatLayout& layout, const shard::Triple& triple, int ranks,
                  std::int64_t parameter_bytes) {
  const std::int64_t parameters = triple.parameters.size();
  const std::int64_t state = triple.state.size() / parameters;
  const std::int64_t data = ranks / parameters;
  const std::int64_t groups = ranks / parameters;
  Sent sent;
  for (std::int32_t l = 0; l < layout.layer_count(); ++l) {
    const std::int64_t count = layout.layer(LayerId{l}).count;
    const bool stays = l == 0 || l + 1 == layout.layer_count();
    sent.gathers += groups * (parameters - 1) * parameter_bytes * count * (stays ? 1 : 2);
    sent.scatters += groups * (parameters - 1) * 4 * count;
    sent.sums += groups * (parameters - 1) * 8 * optimizer::norm_block_count(count);
    sent.reductions += 2 * (data - 1) * 4 * count;
  }
  sent.shares =
      ranks / triple.state.size() * (state - 1) * parameter_bytes * layout.parameter_count;
  return sent;
}

}  // namespace

TEST_CASE("ranks bring one another what the table says, and take what their plan says") {
  const platform::Scope mesh{2, 4};
  const std::int64_t steps = kSteps;
  const SmallRun of_shape = cut_in_eight();
  const auto shape = model::load_model_shape(of_shape.folder.file("model.toml"));
  REQUIRE(shape.ok());
  const model::FlatLayout layout = shape->flat_layout();
  const std::int64_t layers = layout.layer_count();
  const std::string precision = GENERATE("bf16", "fp32");
  const std::int64_t parameter_bytes = precision == "fp32" ? 4 : 2;
  for (const shard::Triple& triple : some_of(shard::all_triples(mesh))) {
    if (triple == shard::Triple{}) continue;  // it has no groups of its own
    INFO(shard::triple_text(triple) << " " << precision);
    const SmallRun files = cut_in_eight();
    const std::vector<std::string> settings =
        with({"subgroup_elements=9000", "devices=1", "batch=1", "bounce_memory=8MiB",
              "worker_threads=1", "durability=never", "validation_batches=1",
              "precision=" + precision, fmt::format("steps={}", steps)},
             settings_of(triple, mesh));
    const auto found = on_communicators<Counted>(
        {.rank_count = mesh.size()},
        [&](train::Ranks& ranks, const collective::Communicator& communicator) {
          return train_and_count(files, settings, ranks, communicator);
        });
    const bool is_gathered = triple.parameters.size() > 1;
    const std::int64_t owners = triple.state.size() / triple.parameters.size();
    Sent sent;
    for (const Result<Counted>& rank : found) {
      INFO((rank.ok() ? std::string() : rank.error().message()));
      REQUIRE(rank.ok());
      CHECK_FALSE(rank->has_other_groups);
      // The embedding and the last layer stay from forward to backward. A validation at the end has
      // a forward alone.
      CHECK(rank->gathers.call_count == (is_gathered ? steps * (2 * layers - 2) + layers : 0));
      CHECK(rank->scatters.call_count == (is_gathered ? steps * layers : 0));
      CHECK(rank->sums.call_count == (is_gathered ? steps * layers : 0));
      const bool has_replicas = triple.parameters != mesh;
      CHECK(rank->reductions.call_count == (has_replicas ? steps * rank->held_layers : 0));
      // Once more before the first step.
      CHECK(rank->shares.call_count == (owners > 1 ? (steps + 1) * owners : 0));
      sent.gathers += rank->gathers.sent_bytes;
      sent.scatters += rank->scatters.sent_bytes;
      sent.sums += rank->sums.sent_bytes;
      sent.reductions += rank->reductions.sent_bytes;
      sent.shares += rank->shares.sent_bytes;
      CHECK(rank->first_pinned == parameter_bytes * rank->held_count);
      CHECK(rank->drive_bytes == 2 * rank->geometry.subgroup_count() * rank->geometry.slot_bytes());
    }
    const Sent step = by_the_table(layout, triple, mesh.size(), parameter_bytes);
    const std::int64_t validation = mesh.size() / triple.parameters.size() *
                                    (triple.parameters.size() - 1) * parameter_bytes *
                                    layout.parameter_count;
    CHECK(sent == Sent{steps * step.gathers + validation, steps * step.scatters, steps * step.sums,
                       steps * step.reductions, (steps + 1) * step.shares});
  }
}
