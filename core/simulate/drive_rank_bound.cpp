#include "core/simulate/drive_rank_bound.h"

#include <algorithm>

#include "core/optimizer/gradient_stats.h"
#include "core/plan/layer_cost.h"
#include "core/plan/run_plan.h"
#include "core/shard/collectives.h"
#include "core/shard/cost.h"

namespace sluice::simulate {
namespace {

using shard::Collective;
using shard::Purpose;

// Between measured sizes a simulated collective is this much faster than by formula at most
// (core/shard/collective_links.cpp).
constexpr double kOfFormula = 0.998;

double seconds_of(const plan::RunPlan& plan, Collective collective, std::int64_t size_bytes,
                  const shard::GroupShape& group) {
  if (group.scope.size() == 1) return 0;
  return kOfFormula *
         shard::collective_cost(*plan.platform.cluster, collective, size_bytes, group).seconds;
}

// As train::ShardTraffic brings it: a layer is gathered before its forward and its backward, but
// the embedding and the last layer stay in between.
double gather_seconds(const plan::RunPlan& plan) {
  const shard::GroupShape group = shard::parameter_group(plan.share.triple);
  const std::int32_t last = plan.layout.layer_count() - 1;
  double seconds = 0;
  for (std::int32_t l = 0; l <= last; ++l) {
    const std::int64_t size_bytes =
        bytes_of(plan.options.parameter_kind) * plan.layout.layer(LayerId{l}).count;
    const int times = l == 0 || l == last ? 1 : 2;
    seconds += times * seconds_of(plan, Collective::all_gather, size_bytes, group);
  }
  return seconds;
}

double scatter_seconds(const plan::RunPlan& plan) {
  const shard::GroupShape group = shard::parameter_group(plan.share.triple);
  double seconds = 0;
  for (const model::LayerRange& layer : plan.layout.layers) {
    const std::int64_t sum_bytes = 8 * optimizer::norm_block_count(layer.count);
    seconds += seconds_of(plan, Collective::reduce_scatter, 4 * layer.count, group) +
               seconds_of(plan, Collective::all_gather, sum_bytes, group);
  }
  return seconds;
}

double reduce_seconds(const plan::RunPlan& plan) {
  const shard::GroupShape group = shard::data_group(plan.share.triple, plan.share.mesh);
  double seconds = 0;
  for (const model::LayerRange& part : plan.share.parameters.layers) {
    if (part.count == 0) continue;
    seconds += seconds_of(plan, Collective::all_reduce, 4 * part.count, group);
  }
  return seconds;
}

double share_seconds(const plan::RunPlan& plan) {
  const shard::GroupShape group = shard::state_group(plan.share.triple);
  double seconds = 0;
  for (const shard::Stretch& owned : plan.share.owners) {
    seconds += seconds_of(plan, Collective::broadcast,
                          bytes_of(plan.options.parameter_kind) * owned.count, group);
  }
  return seconds;
}

// Bytes of state that a device reads and writes for certain between a decision and the next. With
// nbuffer a subgroup a buffer may have been read before, beside backward.
struct StateBytes {
  std::vector<double> read;  // by device
  std::vector<double> written;
};

StateBytes state_bytes(const plan::RunPlan& plan) {
  const auto device_count = static_cast<std::size_t>(plan.geometry.device_count);
  std::vector<std::int64_t> elements(device_count);
  for (std::size_t s = 0; s < plan.device_map.size(); ++s) {
    const std::int64_t first = static_cast<std::int64_t>(s) * plan.geometry.subgroup_elements;
    elements[static_cast<std::size_t>(index_of(plan.device_map[s]))] +=
        std::min(plan.geometry.subgroup_elements, plan.geometry.parameter_count - first);
  }
  const bool reads_ahead = plan.options.pipeline == offload::Pipeline::nbuffer;
  const std::int64_t ahead =
      reads_ahead ? plan.options.buffers * plan.geometry.subgroup_elements : 0;
  const double written_bytes = plan.geometry.stored().bytes_per_element();
  const double read_bytes = written_bytes - (plan.options.has_copy_in_memory() ? 2 : 0);
  StateBytes bytes;
  for (const std::int64_t count : elements) {
    bytes.read.push_back(read_bytes *
                         static_cast<double>(std::max<std::int64_t>(0, count - ahead)));
    bytes.written.push_back(written_bytes * static_cast<double>(count));
  }
  return bytes;
}

// Whether what a drive moves in a step follows from the state alone: none of it is kept, nothing
// is updated before the decision, and each step has a commit.
bool is_state_moved(const plan::RunPlan& plan) {
  return plan.options.overlap == offload::Overlap::off && plan.options.commit_every == 1 &&
         plan.config.offload.state_cache_bytes == 0;
}

// The fullest link, at its full rate. A link that is faster for a while bounds nothing.
double link_seconds(const plan::RunPlan& plan, const std::vector<double>& read,
                    const std::vector<double>& written) {
  const platform::Platform& platform = plan.platform;
  std::vector<std::array<double, 2>> crossing(platform.links.size());
  for (std::size_t d = 0; d < read.size(); ++d) {
    const platform::Device& device = platform.devices[d];
    const bool is_host = plan.options.method == offload::Method::host;
    for (const platform::LinkId link : is_host ? device.host_route : device.internal_route) {
      auto& bytes = crossing[static_cast<std::size_t>(platform::index_of(link))];
      bytes[0] += read[d];
      bytes[1] += written[d];
    }
  }
  double seconds = 0;
  for (std::size_t l = 0; l < crossing.size(); ++l) {
    const platform::Link& link = platform.links[l];
    if (link.read_burst.size_bytes > 0 || link.write_burst.size_bytes > 0) continue;
    double read_rate = link.read_bytes_per_s;
    double write_rate = link.write_bytes_per_s;
    for (const platform::ChunkPoint& point : link.chunk_curve) {
      read_rate = std::max(read_rate, point.read_bytes_per_s);
      write_rate = std::max(write_rate, point.write_bytes_per_s);
    }
    const double in = crossing[l][0] / read_rate;
    const double out = crossing[l][1] / write_rate;
    seconds =
        std::max(seconds, link.duplex == platform::Duplex::half ? in + out : std::max(in, out));
  }
  return seconds;
}

struct ComputeSeconds {
  double forward = 0;
  double last_forward = 0;
  double backward = 0;
};

ComputeSeconds compute_seconds(const plan::RunPlan& plan) {
  const auto micro_steps = static_cast<double>(plan.config.batch.grad_accum_steps);
  ComputeSeconds compute;
  for (const plan::LayerCost& layer : plan.layer_costs) {
    compute.last_forward = micro_steps * static_cast<double>(layer.forward_ns) / 1e9;
    compute.forward += compute.last_forward;
    compute.backward += micro_steps * static_cast<double>(layer.backward_ns) / 1e9;
  }
  return compute;
}

// The update beside what it can hide behind. With nbuffer that is forward: its last layer waits for
// the last subgroup, its first one where other ranks wait for this one's parameters. Else nothing.
double update_chain_seconds(const plan::RunPlan& plan, const ComputeSeconds& compute) {
  if (!is_state_moved(plan)) return 0;
  const StateBytes bytes = state_bytes(plan);
  if (plan.options.pipeline != offload::Pipeline::nbuffer) {
    return link_seconds(plan, bytes.read, bytes.written) + compute.forward + compute.backward;
  }
  const std::vector<double> nothing(bytes.read.size(), 0.0);
  const bool is_first_waiting = plan.share.owners.size() > 1;
  const double after =
      compute.backward + (is_first_waiting ? compute.forward : compute.last_forward);
  return std::max(link_seconds(plan, bytes.read, nothing) + after,
                  link_seconds(plan, bytes.read, bytes.written));
}

}  // namespace

DriveChoice drive_rank_bound(const plan::RunPlan& plan) {
  const ComputeSeconds compute = compute_seconds(plan);
  DriveChoice choice;
  choice.formula.compute_seconds = compute.forward + compute.backward;
  const double chain = update_chain_seconds(plan, compute);
  choice.formula.update_seconds = std::max(0.0, chain - choice.formula.compute_seconds);
  const auto put = [&](Purpose purpose, double seconds) {
    choice.formula.communication.seconds[static_cast<std::size_t>(purpose)] = seconds;
  };
  if (plan.config.batch.rank_count > 1) {
    put(Purpose::gather, gather_seconds(plan));
    put(Purpose::scatter, scatter_seconds(plan));
    put(Purpose::reduce, reduce_seconds(plan));
    put(Purpose::share, share_seconds(plan));
  }
  const shard::CommunicationTime& sent = choice.formula.communication;
  // A layer is scattered and reduced in one turn, and no two layers at a time.
  choice.bound_seconds =
      std::max({choice.formula.compute_seconds, chain, sent.of(Purpose::gather),
                sent.of(Purpose::scatter) + sent.of(Purpose::reduce), sent.of(Purpose::share)});
  return choice;
}

}  // namespace sluice::simulate
