#pragma once
// How fast the links of a record were: fitted from its transfers, with the declared rates as caps.
//
// A route's transfers that ran alone on all its links give the rate that one of them reaches, and
// where sizes differ, the latency that each pays. Where several ran at once, a link is full if they
// were slower together than each would be alone: what it moved then is its rate. A link that was
// never full and declares nothing has no rate that anybody knows.
//
// Thread contract: plain data and a free function. Deterministic.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/platform/platform.h"
#include "profiler/analyze/run_data.h"

namespace sluice::replay {

// Where a direction stands in an array of both.
constexpr std::size_t side(platform::Direction direction) {
  return static_cast<std::size_t>(direction);
}

enum class RateSource : std::uint8_t {
  fitted,    // from bytes and times
  declared,  // by the link's row; nothing in the record says otherwise
  unknown,   // never full, nothing declared: no limit
};

struct ModelledLink {
  std::string name;
  std::array<double, 2> bytes_per_s{};  // by platform::Direction; 0: nothing crossed, or unknown
  std::array<RateSource, 2> source{RateSource::unknown, RateSource::unknown};
  TimeNs latency_ns = 0;  // declared
  bool is_full_duplex = true;
  bool is_in_order = false;  // transfers of one direction came one after the other
};

// The links that the transfers of a track cross.
struct Route {
  std::int64_t track_id = 0;
  std::vector<std::int32_t> links;  // of LinkModel::links
  platform::Direction direction = platform::Direction::read;
  double bytes_per_s = 0;  // of one transfer alone; 0: none was, so no cap
  TimeNs latency_ns = 0;   // fitted, besides the links'
};

struct LinkModel {
  std::vector<ModelledLink> links;
  std::vector<Route> routes;
};

// A transfer as the fit sees it.
struct RecordedTransfer {
  std::int32_t route = 0;
  TimeNs asked_ns = 0;
  TimeNs begin_ns = 0;
  TimeNs end_ns = 0;
  double size_bytes = 0;
};

// `model` has the links of `info`, in their order, with latencies and without rates, and the
// routes; transfers are in order of their begin. Declared rates are those of `info` over its time
// scale.
void fit_links(const analyze::RunInfo& info, double time_scale,
               std::span<const RecordedTransfer> transfers, LinkModel& model);

}  // namespace sluice::replay
