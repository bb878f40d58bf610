#include "core/calibrate/ranks/collective_timing.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/check.h"
#include "base/clock.h"
#include "core/collective/shard.h"
#include "core/shard/collectives.h"

namespace sluice::calibrate {
namespace {

using collective::Call;
using collective::Communicator;
using collective::GroupId;
using platform::Collective;
using platform::Scope;
using shard::RankList;

constexpr int kRoundsMin = 3;
constexpr int kRoundsMax = 15;

// A collective in a kind of group: which group of that kind this rank is in.
struct Row {
  Collective collective = Collective::all_gather;
  Scope group;
  GroupId id = collective::kWorld;
  std::vector<int> ranks;  // of the run
};

RankList group_of(const shard::RankGroups& groups, shard::Purpose purpose) {
  switch (purpose) {
    case shard::Purpose::gather:
    case shard::Purpose::scatter:
      return groups.parameters;
    case shard::Purpose::accumulate:
      return groups.gradients;
    case shard::Purpose::reduce:
      return groups.data;
    case shard::Purpose::share:
      return groups.state;
  }
  return groups.data;
}

// Any step does: two micro-batches, and more elements than ranks.
std::vector<shard::CollectiveUse> uses_of(const shard::Triple& triple, const Scope& mesh) {
  const shard::StepShape step{.module_elements = {std::int64_t{4} * mesh.size()},
                              .micro_batches = 2};
  return shard::step_collectives(step, triple, mesh);
}

// Makes each group once, on all ranks in the same order.
class Groups {
 public:
  Groups(Communicator& communicator, const RankMesh& mesh)
      : communicator_(communicator), mesh_(mesh) {}

  // The one that this rank is in, of all that ranks are in for this purpose.
  Result<Row> make(const shard::Triple& triple, const shard::CollectiveUse& use) {
    Row row;
    row.collective = use.collective;
    row.group = use.group.scope;
    std::set<RankList> made;
    for (std::int32_t place = 0; place < mesh_.mesh.size(); ++place) {
      const RankList places = group_of(shard::groups_of(place, triple, mesh_.mesh), use.purpose);
      if (!made.insert(places).second) continue;
      ASSIGN_OR_RETURN(const GroupId id, group_at(places));
      const std::vector<int> ranks = ranks_at(places);
      if (std::ranges::count(ranks, communicator_.rank()) == 0) continue;
      row.id = id;
      row.ranks = ranks;
    }
    return row;
  }

 private:
  std::vector<int> ranks_at(const RankList& places) const {
    std::vector<int> ranks;
    for (const std::int32_t place : places) {
      ranks.push_back(mesh_.ranks[static_cast<std::size_t>(place)]);
    }
    return ranks;
  }
  Result<GroupId> group_at(const RankList& places) {
    const auto known = made_.find(places);
    if (known != made_.end()) return known->second;
    ASSIGN_OR_RETURN(const GroupId id, communicator_.make_group(ranks_at(places)));
    made_.emplace(places, id);
    return id;
  }

  Communicator& communicator_;
  const RankMesh& mesh_;
  std::map<RankList, GroupId> made_;
};

Result<std::vector<Row>> all_rows(Communicator& communicator, const RankMesh& mesh) {
  Groups groups(communicator, mesh);
  std::vector<Row> rows;
  for (const shard::Triple& triple : shard::all_triples(mesh.mesh)) {
    for (const shard::CollectiveUse& use : uses_of(triple, mesh.mesh)) {
      const auto is_alike = [&](const Row& row) {
        return row.collective == use.collective && row.group == use.group.scope;
      };
      if (std::ranges::any_of(rows, is_alike)) continue;
      ASSIGN_OR_RETURN(rows.emplace_back(), groups.make(triple, use));
    }
  }
  std::ranges::stable_sort(rows, {}, &Row::collective);
  return rows;
}

collective::Kind kind_of(Collective collective) {
  switch (collective) {
    case Collective::all_gather:
      return collective::Kind::all_gather;
    case Collective::reduce_scatter:
      return collective::Kind::reduce_scatter;
    case Collective::all_reduce:
      return collective::Kind::all_reduce;
    case Collective::broadcast:
      return collective::Kind::broadcast;
  }
  return collective::Kind::barrier;
}

CollectiveTime median_of(std::int64_t size_bytes, std::vector<double> seconds) {
  std::ranges::sort(seconds);
  return {.size_bytes = size_bytes,
          .seconds = seconds[seconds.size() / 2],
          .low = seconds.front(),
          .high = seconds.back(),
          .round_count = static_cast<int>(seconds.size())};
}

class Timing {
 public:
  Timing(Communicator& communicator, const CollectiveTimingOptions& options)
      : communicator_(communicator),
        options_(options),
        memory_(static_cast<std::size_t>(options.sizes_bytes.back())),
        start_ns_(now_ns()) {}

  // Sizes on the outside: where the time runs out, every row has its smaller ones.
  Status run(const std::vector<Row>& rows, RankFigures& figures) {
    for (const Row& row : rows) figures.rows.push_back({row.collective, row.group, {}});
    left_count_ = static_cast<int>(rows.size() * options_.sizes_bytes.size());
    const int all_count = left_count_;
    for (const std::int64_t size_bytes : options_.sizes_bytes) {
      for (std::size_t i = 0; i < rows.size(); ++i, --left_count_) {
        ASSIGN_OR_RETURN(const double left_seconds, agreed_left_seconds());
        tell(rows[i], size_bytes, 1 - static_cast<double>(left_count_) / all_count, left_seconds);
        ASSIGN_OR_RETURN(const auto time,
                         time_one(rows[i], size_bytes, figures.rows[i].times, left_seconds));
        if (time) {
          figures.rows[i].times.push_back(*time);
        } else {
          ++figures.skipped_count;
        }
      }
    }
    return ok_status();
  }

 private:
  TimeNs now_ns() const { return options_.now_ns ? options_.now_ns() : monotonic_now_ns(); }

  // By the slowest clock, so that all ranks decide alike.
  Result<double> agreed_left_seconds() {
    ASSIGN_OR_RETURN(const std::int64_t taken_ns,
                     communicator_.maximum(now_ns() - start_ns_, "time of a calibration"));
    return options_.seconds_max - static_cast<double>(taken_ns) / 1e9;
  }

  void tell(const Row& row, std::int64_t size_bytes, double share, double left_seconds) const {
    if (!options_.on_progress) return;
    options_.on_progress(fmt::format("{} in {} of {}", platform::collective_name(row.collective),
                                     platform::scope_text(row.group), format_bytes(size_bytes)),
                         share, std::max(0.0, left_seconds));
  }

  // None: there is no time for it, as for none of the sizes before it.
  Result<std::optional<CollectiveTime>> time_one(const Row& row, std::int64_t size_bytes,
                                                 const std::vector<CollectiveTime>& smaller,
                                                 double left_seconds) {
    if (!smaller.empty()) {
      // At most as much longer as there are more bytes.
      const double growth =
          static_cast<double>(size_bytes) / static_cast<double>(smaller.back().size_bytes);
      const double least_seconds = smaller.back().seconds * growth * (kRoundsMin + 1);
      if (least_seconds > left_seconds) return std::optional<CollectiveTime>();
    }
    ASSIGN_OR_RETURN(const double first_seconds, slowest(row, size_bytes));  // warms up
    const double share_seconds = left_seconds / left_count_;
    const int rounds = std::clamp(static_cast<int>(share_seconds / std::max(first_seconds, 1e-9)),
                                  kRoundsMin, kRoundsMax);
    std::vector<double> seconds;
    for (int round = 0; round < rounds; ++round) {
      ASSIGN_OR_RETURN(seconds.emplace_back(), slowest(row, size_bytes));
    }
    return std::optional(median_of(size_bytes, std::move(seconds)));
  }

  Result<double> slowest(const Row& row, std::int64_t size_bytes) {
    const Call call = call_of(row, size_bytes);
    ASSIGN_OR_RETURN(const TimeNs dur_ns,
                     options_.time_call ? options_.time_call(call) : time_here(call));
    ASSIGN_OR_RETURN(const std::int64_t longest_ns,
                     communicator_.maximum(dur_ns, "time of a collective"));
    return static_cast<double>(longest_ns) / 1e9;
  }

  Result<TimeNs> time_here(const Call& call) {
    RETURN_IF_ERROR(communicator_.barrier("round of a calibration"));
    const TimeNs begin_ns = now_ns();
    RETURN_IF_ERROR(communicator_.run(call));
    return now_ns() - begin_ns;
  }

  // 16-bit numbers, in place.
  Call call_of(const Row& row, std::int64_t size_bytes) {
    const auto p = static_cast<int>(row.ranks.size());
    const auto place =
        static_cast<int>(std::ranges::find(row.ranks, communicator_.rank()) - row.ranks.begin());
    const std::span<std::byte> all(memory_.data(), static_cast<std::size_t>(size_bytes));
    const collective::Shard own = collective::shard_of(size_bytes / 2, p, place);
    const std::span<std::byte> part = all.subspan(static_cast<std::size_t>(2 * own.first),
                                                  static_cast<std::size_t>(2 * own.count));
    Call call;
    call.kind = kind_of(row.collective);
    call.group = row.id;
    call.type = collective::ElementType::bf16;
    call.root = row.ranks.front();
    call.label.what = "calibration";
    call.in = row.collective == Collective::all_gather ? part : all;
    call.out = row.collective == Collective::reduce_scatter ? part : all;
    if (row.collective == Collective::broadcast && place != 0) call.in = {};
    return call;
  }

  Communicator& communicator_;
  const CollectiveTimingOptions& options_;
  std::vector<std::byte> memory_;  // zeros, whatever is added up
  TimeNs start_ns_;
  int left_count_ = 0;  // sizes of rows
};

}  // namespace

std::vector<std::int64_t> usual_sizes_bytes() {
  std::vector<std::int64_t> sizes_bytes;
  for (std::int64_t size = 4 << 10; size <= (64 << 20); size *= 4) sizes_bytes.push_back(size);
  return sizes_bytes;
}

Result<RankMesh> mesh_of(const Communicator& communicator) {
  std::map<int, std::vector<int>> nodes;
  for (int rank = 0; rank < communicator.rank_count(); ++rank) {
    nodes[communicator.node_of(rank)].push_back(rank);
  }
  RankMesh mesh;
  const std::size_t count = nodes.begin()->second.size();
  for (const auto& [node, ranks] : nodes) {
    if (ranks.size() != count) {
      return make_error(ErrorCode::config,
                        "node {} has {} ranks and another {}: begin as many on each (mpirun "
                        "--map-by ppr:{}:node)",
                        node, ranks.size(), count, std::min(count, ranks.size()));
    }
    mesh.ranks.insert(mesh.ranks.end(), ranks.begin(), ranks.end());
  }
  mesh.mesh = {static_cast<std::int32_t>(count), static_cast<std::int32_t>(nodes.size())};
  return mesh;
}

Result<RankFigures> time_collectives(Communicator& communicator,
                                     const CollectiveTimingOptions& options) {
  CHECK(!options.sizes_bytes.empty());
  if (communicator.rank_count() == 1) {
    return make_error(ErrorCode::config,
                      "one rank alone sends nothing: begin several, such as mpirun -n 4");
  }
  ASSIGN_OR_RETURN(const RankMesh mesh, mesh_of(communicator));
  ASSIGN_OR_RETURN(const std::vector<Row> rows, all_rows(communicator, mesh));
  RankFigures figures;
  figures.mesh = mesh.mesh;
  Timing timing(communicator, options);
  RETURN_IF_ERROR(timing.run(rows, figures));
  return figures;
}

}  // namespace sluice::calibrate
