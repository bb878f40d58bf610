// Findings about links, and about what could go on at the same time and does not.

#include "profiler/analyze/detail/detector.h"

namespace sluice::analyze::detail {
namespace {

constexpr double kIdle = 0.1;  // of a step
// Below it, more than half of what could overlap does not.
constexpr double kLittleOverlap = 0.5;

bool crosses(const PathUse& use, const LinkLoad& load) {
  return use.track->direction == load.direction &&
         std::ranges::count(use.track->links, load.link_id) > 0;
}

PathTime path_over(const Look& look, const LinkLoad& load) {
  PathTime path;
  for (const auto& [key, use] : look.survey.uses) {
    if (crosses(use, load)) path.add(use.path);
  }
  return path;
}

double turns_of_step(const Look& look, std::int64_t turns) {
  return static_cast<double>(turns) /
         static_cast<double>(std::max<std::size_t>(1, look.survey.step_count));
}

}  // namespace

Detected full_link(const Look& look) {
  bool has_rate = false;
  Detected worst = nothing(fmt::format("{} directions of links", look.analysis.links.size()));
  for (const LinkLoad& load : look.analysis.links) {
    has_rate = has_rate || load.bytes_per_s_max > 0;
    if (load.bytes_per_s_max <= 0 || load.bytes_per_s < kFullRate * load.bytes_per_s_max) continue;
    const PathTime path = path_over(look, load);
    const double cost = look.survey.share(path.ns());
    Detected one = found(path, cost,
                         fmt::format("{} moves {} of the {} that it can, for {} of a step.",
                                     load.name, format_rate(load.bytes_per_s),
                                     format_rate(load.bytes_per_s_max), percent(cost)),
                         "Move fewer bytes over it, or add a drive or a link.", kBoundPart);
    if (one.finding.share > worst.finding.share) worst = std::move(one);
  }
  if (!look.analysis.links.empty() && !has_rate) return cannot("table link states no limits");
  return worst;
}

Detected idle_internal_links(const Look& look) {
  const bool has_internal = std::ranges::any_of(
      look.info.links, [](const rundb::LinkRow& link) { return link.name.ends_with(".internal"); });
  if (!has_internal) return nothing("no drive has a link of its own to an engine");
  for (const LinkLoad& load : look.analysis.links) {
    const auto busy = static_cast<double>(load.busy_ns);
    if (load.name.ends_with(".internal") && busy > kIdle * static_cast<double>(look.analysis.dur))
      return nothing(load.name + " is in use");
  }
  const double cost = look.share_of(Cause::host_link);
  return found(look.of(Cause::host_link).path, cost,
               fmt::format("{} of a step is transfers over the link that devices share, while "
                           "their own links are idle.",
                           percent(cost)),
               "Update state on the devices, so that it crosses their own links (method=csd).",
               kBoundPart);
}

Detected missing_overlap(const Look& look) {
  const Overlap& overlap = look.analysis.overlap;
  const TimeNs possible_ns = std::min(overlap.compute_ns, overlap.transfer_ns);
  if (possible_ns == 0) return nothing("nothing that could overlap");
  const double turns = turns_of_step(look, look.survey.turns);
  if (overlap.achieved() >= kLittleOverlap || turns < kTurnsOfStep) {
    return nothing(fmt::format("{} of what could overlap does", percent(overlap.achieved())));
  }
  PathTime path = look.of(Cause::read).path;
  path.add(look.of(Cause::write).path);
  const double cost = look.survey.share(std::min(possible_ns - overlap.both_ns, path.ns()));
  return found(path, cost,
               fmt::format("Transfers and computing take turns {:.0f} times a step: {} of what "
                           "could overlap does, which costs at most {} of a step.",
                           turns, percent(overlap.achieved()), percent(cost)),
               "Ask for the next transfer before computing on what is there.", kLargePart);
}

Detected reads_and_writes_in_turns(const Look& look) {
  const PathSurvey& survey = look.survey;
  const TimeNs possible_ns = std::min(survey.drive_read_ns, survey.drive_write_ns);
  if (possible_ns == 0) return nothing("no drive does both and has a way for each");
  const double turns = turns_of_step(look, survey.read_writes);
  if (turns < kTurnsOfStep || survey.drive_both_ns * 2 > possible_ns) {
    return nothing(fmt::format("{:.0f} turns a step", turns));
  }
  const PathTime& reads = look.of(Cause::read).path;
  const PathTime& writes = look.of(Cause::write).path;
  PathTime path = reads;
  path.add(writes);
  const double cost = survey.share(std::min(reads.ns(), writes.ns()));
  return found(path, cost,
               fmt::format("Drives read and write in turns, {:.0f} times a step, and could do both "
                           "at once: at most {} of a step.",
                           turns, percent(cost)),
               "Write what is done while the next is read.", kLargePart);
}

Detected one_buffer(const Look& look) {
  const double cost = look.share_of(Cause::buffers);
  return found(look.of(Cause::buffers).path, cost,
               fmt::format("{} of a step is reads asked for only when a buffer came free, while "
                           "their link had nothing to do.",
                           percent(cost)),
               "Take more buffers.");
}

}  // namespace sluice::analyze::detail
