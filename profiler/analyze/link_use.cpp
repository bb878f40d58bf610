#include "profiler/analyze/link_use.h"

#include <algorithm>
#include <map>

#include "profiler/analyze/intervals.h"
#include "profiler/analyze/track_order.h"

namespace sluice::analyze {

bool is_shared_link(const std::string& name) {
  return !name.ends_with(".drive") && !name.ends_with(".internal") && !name.ends_with(".link");
}

std::set<std::int64_t> links_between_ranks(const RunInfo& info) {
  std::set<std::int64_t> of_ranks;
  std::set<std::int64_t> others;
  for (const auto& [id, track] : info.tracks) {
    std::string_view root = root_of(info, track).name;
    const std::string prefix = rank_prefix(track.rank);
    if (root.starts_with(prefix)) root.remove_prefix(prefix.size());
    (root == "ranks" ? of_ranks : others).insert(track.links.begin(), track.links.end());
  }
  for (const std::int64_t id : others) of_ranks.erase(id);
  return of_ranks;
}

std::string direction_text(const LinkLoad& load) {
  if (load.is_between_ranks) return "to other ranks";
  const std::string way = load.direction == rundb::Direction::read ? "out of " : "into ";
  return way + (load.name.ends_with(".link") ? "accelerator" : "drives");
}

LinkUse::LinkUse(const StepData& step) : info_(*step.info) {
  struct Moved {
    double bytes = 0;
    Intervals busy;
  };
  std::map<std::pair<std::int64_t, rundb::Direction>, Moved> moved;
  const TimeNs begin_ts = step.row.ts;
  const TimeNs end_ts = step.row.ts + step.row.dur;
  for (const Span& span : step.spans) {
    const Interval inside{std::max(begin_ts, span.ts), std::min(end_ts, span.end_ts())};
    if (span.track->links.empty() || inside.second <= inside.first) continue;
    // A transfer that is only partly in the step counts with that part of its bytes.
    const double part =
        static_cast<double>(inside.second - inside.first) / static_cast<double>(span.dur);
    for (const std::int64_t link : span.track->links) {
      Moved& of = moved[{link, span.track->direction}];
      of.bytes += part * static_cast<double>(span.bytes + span.padding_bytes);
      of.busy.add(inside.first, inside.second);
    }
  }
  const double time_scale = info_.time_scale();
  const std::set<std::int64_t> between_ranks = links_between_ranks(info_);
  for (auto& [key, of] : moved) {
    const auto link = std::ranges::find(info_.links, key.first, &rundb::LinkRow::id);
    if (link == info_.links.end()) continue;
    LinkLoad load;
    load.link_id = link->id;
    load.name = link->name;
    load.direction = key.second;
    load.is_of_drive = link->name.ends_with(".drive") || link->name.ends_with(".internal");
    load.is_shared = is_shared_link(link->name);
    load.is_between_ranks = between_ranks.contains(link->id);
    load.bytes = static_cast<std::int64_t>(of.bytes);
    load.bytes_per_s_max =
        (key.second == rundb::Direction::read ? link->read_bytes_per_s : link->write_bytes_per_s) /
        time_scale;
    load.busy_ns = of.busy.sum_ns();
    const double busy_seconds = static_cast<double>(load.busy_ns) / 1e9;
    const double step_seconds = static_cast<double>(step.row.dur) / 1e9;
    load.bytes_per_s = busy_seconds > 0 ? of.bytes / busy_seconds : 0;
    if (load.bytes_per_s_max > 0 && step_seconds > 0) {
      load.share = of.bytes / load.bytes_per_s_max / step_seconds;
    }
    loads_.push_back(std::move(load));
  }
}

const LinkLoad* LinkUse::load(std::int64_t link_id, rundb::Direction direction) const {
  const auto found = std::ranges::find_if(loads_, [&](const LinkLoad& load) {
    return load.link_id == link_id && load.direction == direction;
  });
  return found == loads_.end() ? nullptr : &*found;
}

std::optional<LinkLoad> LinkUse::fullest(const TrackInfo& track) const {
  const LinkLoad* fullest = nullptr;
  double most = -1;
  for (const std::int64_t link : track.links) {
    const LinkLoad* own = load(link, track.direction);
    if (own == nullptr) continue;
    double share = own->share;
    const auto row = std::ranges::find(info_.links, link, &rundb::LinkRow::id);
    if (!row->full_duplex) {
      const auto other = track.direction == rundb::Direction::read ? rundb::Direction::write
                                                                   : rundb::Direction::read;
      if (const LinkLoad* opposite = load(link, other)) share += opposite->share;
    }
    if (share <= most) continue;
    most = share;
    fullest = own;
  }
  return fullest == nullptr ? std::nullopt : std::optional(*fullest);
}

bool LinkUse::can_read_beside(const Span& span) const {
  return std::ranges::none_of(span.track->links, [&](std::int64_t id) {
    const auto link = std::ranges::find(info_.links, id, &rundb::LinkRow::id);
    return link != info_.links.end() && !is_shared_link(link->name) && !link->full_duplex;
  });
}

}  // namespace sluice::analyze
