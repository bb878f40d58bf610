// One file, since each reason is a sentence of a few lines and rules out the one before it.

#include "profiler/analyze/step_reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <limits>
#include <set>

#include "profiler/analyze/link_use.h"
#include "storage/rundb/lateness.h"

namespace sluice::analyze {
namespace {

// From here on an operation took longer, or moved more, than usual.
constexpr double kLongerFrom = 1.1;
// Others are slow with it from this part of its excess on.
constexpr double kSlowWithPart = 0.5;
// A link is named where this part of the others that cross it is slow, too.
constexpr double kMostOnLink = 0.8;
// An operation beside it on the same link is worth a word from this part of its bytes on.
constexpr double kBesideBytes = 0.1;

std::string device_said(const RunInfo& info, std::int64_t id) {
  const auto device = std::ranges::find(info.devices, id, &rundb::DeviceRow::id);
  return device == info.devices.end() ? "" : device->name;
}

std::string link_said(const RunInfo& info, std::int64_t id) {
  const auto link = std::ranges::find(info.links, id, &rundb::LinkRow::id);
  return link == info.links.end() ? "" : link->name;
}

std::string instead(double here, double usual) {
  return fmt::format("{} instead of {}", format_duration(static_cast<TimeNs>(here)),
                     format_duration(static_cast<TimeNs>(usual)));
}

std::string bytes_instead(double here, double usual) {
  return fmt::format("{} instead of {}", format_bytes(static_cast<std::int64_t>(here)),
                     format_bytes(static_cast<std::int64_t>(usual)));
}

class ReasonOf {
 public:
  ReasonOf(const StepsBeside& beside, Cause cause)
      : beside_(beside), info_(*beside.info), cause_(cause), path_(index_of(cause)) {}

  StepReason find() {
    key_ = most_more();
    if (key_ == kNoOperation) return nothing_running();
    const OperationNames& names = beside_.names.at(key_);
    if (cause_ == Cause::recorder) return recorder_cost();
    if (names.track->is_waiting()) return wait_of_schedule();
    if (cause_ == Cause::buffers) return wait_for_buffer();
    const bool is_between_ranks = names.stage != nullptr && names.stage->place == "ranks";
    if (cause_ == Cause::ranks || is_between_ranks) return between_ranks();
    return about(key_);
  }

 private:
  static const OperationSum& sum_in(const StepProfile& profile, const OperationKey& key) {
    static const OperationSum kNone;
    const auto sum = profile.operations.find(key);
    return sum == profile.operations.end() ? kNone : sum->second;
  }
  const OperationSum& here(const OperationKey& key) const { return sum_in(beside_.here, key); }
  const OperationSum& usual(const OperationKey& key) const { return sum_in(beside_.usual, key); }
  double path_here() const { return beside_.here.cause_ns[path_]; }
  double path_usual() const { return beside_.usual.cause_ns[path_]; }

  // The operations of which most more is on the path than usual.
  OperationKey most_more() const {
    OperationKey most = kNoOperation;
    double most_ns = -std::numeric_limits<double>::infinity();
    for (const auto& [key, sum] : beside_.here.operations) {
      const double more_ns = sum.path_ns[path_] - usual(key).path_ns[path_];
      if (sum.path_ns[path_] <= 0 || more_ns <= most_ns) continue;
      most = key;
      most_ns = more_ns;
    }
    return most;
  }

  // As long as usual for the same bytes or work; 1 where it is not known.
  double times(const OperationKey& key) const {
    const double unit = usual(key).ns_a_unit();
    const double now = here(key).ns_a_unit();
    // What has bytes only now and then is compared by number.
    if ((usual(key).bytes > 0) != (here(key).bytes > 0)) {
      const double a = usual(key).count > 0 ? usual(key).dur_ns / usual(key).count : 0;
      const double b = here(key).count > 0 ? here(key).dur_ns / here(key).count : 0;
      return a > 0 && b > 0 ? b / a : 1;
    }
    return unit > 0 && now > 0 ? now / unit : 1;
  }

  StepReason named(ReasonKind kind, const OperationKey& key) const {
    StepReason reason;
    reason.kind = kind;
    const auto names = beside_.names.find(key);
    if (names == beside_.names.end()) return reason;
    reason.operation = *names->second.name;
    reason.track = names->second.track->label;
    reason.device = device_said(info_, names->second.device);
    reason.times = times(key);
    reason.bytes = static_cast<std::int64_t>(here(key).bytes);
    reason.usual_bytes = static_cast<std::int64_t>(usual(key).bytes);
    return reason;
  }

  std::string said(const OperationKey& key) const {
    return said_name(beside_.names.at(key), info_);
  }

  // On the path for this cause, the longest first; then others of that key.
  std::vector<std::int64_t> path_spans(const std::function<bool(const OperationKey&)>& is_of,
                                       const OperationKey& key) const {
    std::vector<std::pair<double, std::int64_t>> worst;
    for (const ProfiledPiece& piece : beside_.pieces) {
      if (piece.cause == cause_ && piece.span >= 0 && is_of(piece.key))
        worst.emplace_back(piece.ns, piece.span);
    }
    std::ranges::stable_sort(worst, std::greater<>(), &std::pair<double, std::int64_t>::first);
    std::vector<std::int64_t> ids;
    const auto add = [&ids](std::int64_t id) {
      if (ids.size() < kReasonSpansMax && std::ranges::count(ids, id) == 0) ids.push_back(id);
    };
    for (const auto& [ns, id] : worst) add(id);
    const auto longest = beside_.longest.find(key);
    if (ids.empty() && longest != beside_.longest.end()) {
      for (const auto& [dur, id] : longest->second) add(id);
    }
    return ids;
  }
  std::vector<std::int64_t> own_spans(const OperationKey& key) const {
    return path_spans([&key](const OperationKey& one) { return one == key; }, key);
  }

  StepReason nothing_running() const {
    StepReason reason;
    reason.kind = ReasonKind::nothing_running;
    reason.spans = own_spans(kNoOperation);
    reason.words = fmt::format(
        "Nothing that was recorded was running for {}: the process had no processor, or waited for "
        "what is not recorded.",
        instead(path_here(), path_usual()));
    return reason;
  }

  StepReason recorder_cost() const {
    StepReason reason = named(ReasonKind::recorder_cost, key_);
    reason.spans = own_spans(key_);
    reason.words =
        fmt::format("The recording's own thread ({}) took {} from what computed beside it.",
                    reason.operation, instead(path_here(), path_usual()));
    return reason;
  }

  // What ended while it waited, and took longer than usual by most.
  StepReason wait_of_schedule() const {
    const AwaitedSpan* most = nullptr;
    double most_ns = 0;
    for (const AwaitedSpan& awaited : beside_.awaited) {
      if (awaited.waiting != key_) continue;
      const double usual_ns =
          usual(awaited.key).ns_a_unit() * (usual(awaited.key).bytes > 0 ? awaited.bytes : 1);
      const double more_ns = awaited.dur_ns - usual_ns;
      if (most != nullptr && more_ns <= most_ns) continue;
      most = &awaited;
      most_ns = more_ns;
    }
    std::string wait =
        fmt::format("{}: {}", cause_phrase(cause_), instead(path_here(), path_usual()));
    wait.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(wait.front())));
    if (most == nullptr || most_ns <= 0) {
      StepReason reason = named(ReasonKind::waited, key_);
      reason.spans = own_spans(key_);
      reason.words =
          fmt::format("{}; no operation that it waited for took longer than usual.", wait);
      return reason;
    }
    StepReason reason = about(most->key);
    if (reason.kind == ReasonKind::less_hidden) {
      reason.kind = ReasonKind::waited;
      reason.words = fmt::format("{}, {} of it for {}.", wait,
                                 format_duration(static_cast<TimeNs>(most_ns)), said(most->key));
    } else {
      reason.words = fmt::format("{}; {}", wait, reason.words);
    }
    for (const std::int64_t wait_id : own_spans(key_)) {
      if (reason.spans.size() < kReasonSpansMax) reason.spans.push_back(wait_id);
    }
    return reason;
  }

  StepReason wait_for_buffer() const {
    StepReason reason = named(ReasonKind::waited, key_);
    reason.spans = own_spans(key_);
    reason.words = fmt::format("Reads waited {} for buffers, most for what {} held",
                               instead(path_here(), path_usual()), said(key_));
    if (reason.times >= kLongerFrom)
      reason.words += fmt::format(", which took {:.1f} times as long as usual", reason.times);
    reason.words += ".";
    return reason;
  }

  StepReason between_ranks() const {
    if (!beside_.late_rank) {
      StepReason reason = about(key_);
      const bool is_longer = reason.kind != ReasonKind::unusual_operation &&
                             reason.kind != ReasonKind::more_bytes && reason.rank < 0;
      if (!is_longer) return reason;
      reason.kind = ReasonKind::late_rank;
      reason.words.pop_back();
      reason.words += "; this record alone does not say for which rank it waited.";
      return reason;
    }
    const LateRank& late = *beside_.late_rank;
    StepReason reason = named(ReasonKind::late_rank, key_);
    reason.rank = late.rank;
    reason.spans = own_spans(key_);
    reason.words = fmt::format(
        "The others waited {} for rank {}{}.",
        instead(static_cast<double>(late.waited_ns), static_cast<double>(late.usual_ns)), late.rank,
        late.because.empty() ? "" : ": " + late.because);
    return reason;
  }

  // For an operation that is not a wait.
  StepReason about(const OperationKey& key) const {
    const OperationSum& now = here(key);
    const OperationSum& then = usual(key);
    if (then.count == 0) return unusual(key);
    const double longer = times(key);
    const double bytes = then.bytes > 0 ? now.bytes / then.bytes : 1;
    if (bytes >= kLongerFrom && bytes >= longer) return more(ReasonKind::more_bytes, key);
    const double count = now.count / then.count;
    if (now.bytes == 0 && count >= kLongerFrom && count >= longer)
      return more(ReasonKind::more_operations, key);
    if (longer < kLongerFrom) return less_hidden(key);
    if (const std::optional<OperationKey> other = intruder(key))
      return beside_intruder(key, *other);
    return slower(key);
  }

  StepReason unusual(const OperationKey& key) const {
    StepReason reason = named(ReasonKind::unusual_operation, key);
    reason.spans = own_spans(key);
    reason.words = fmt::format("{} took {}; a usual step has none.", said(key),
                               format_duration(static_cast<TimeNs>(here(key).dur_ns)));
    return reason;
  }

  StepReason more(ReasonKind kind, const OperationKey& key) const {
    StepReason reason = named(kind, key);
    reason.spans = own_spans(key);
    reason.words = kind == ReasonKind::more_bytes
                       ? fmt::format("{} moved {}.", said(key),
                                     bytes_instead(here(key).bytes, usual(key).bytes))
                       : fmt::format("{} ran {:.0f} times instead of {:.0f}.", said(key),
                                     here(key).count, usual(key).count);
    return reason;
  }

  StepReason less_hidden(const OperationKey& key) const {
    StepReason reason = named(ReasonKind::less_hidden, key);
    reason.spans = own_spans(key);
    reason.words = fmt::format(
        "{} took as long as usual; {} of it was not hidden beside other work, usually {}.",
        said(key), format_duration(static_cast<TimeNs>(here(key).path_ns[path_])),
        format_duration(static_cast<TimeNs>(usual(key).path_ns[path_])));
    return reason;
  }

  bool is_slow_with(const OperationKey& other, double longer) const {
    return times(other) - 1 >= kSlowWithPart * (longer - 1);
  }

  // Others that cross a link the same way, or with both ways sharing it, either way.
  std::vector<OperationKey> others_on(std::int64_t link, const OperationKey& key) const {
    std::vector<OperationKey> others;
    const TrackInfo& track = *beside_.names.at(key).track;
    const auto row = std::ranges::find(info_.links, link, &rundb::LinkRow::id);
    const bool is_full = row == info_.links.end() || row->full_duplex;
    for (const auto& [other, sum] : beside_.here.operations) {
      const auto names = beside_.names.find(other);
      if (other == key || sum.count == 0 || names == beside_.names.end()) continue;
      const TrackInfo& on = *names->second.track;
      if (is_full && on.direction != track.direction) continue;
      if (std::ranges::count(on.links, link) > 0) others.push_back(other);
    }
    return others;
  }

  // What crossed one of its links and usually does not, or moved much more than usual.
  std::optional<OperationKey> intruder(const OperationKey& key) const {
    std::optional<OperationKey> most;
    double most_bytes = kBesideBytes * here(key).bytes;
    for (const std::int64_t link : beside_.names.at(key).track->links) {
      for (const OperationKey& other : others_on(link, key)) {
        const double more_bytes = here(other).bytes - usual(other).bytes;
        if (more_bytes <= most_bytes) continue;
        most = other;
        most_bytes = more_bytes;
      }
    }
    return most;
  }

  StepReason beside_intruder(const OperationKey& key, const OperationKey& other) const {
    const bool is_new = usual(other).count == 0;
    StepReason reason =
        named(is_new ? ReasonKind::unusual_operation : ReasonKind::more_bytes, other);
    const auto longest = beside_.longest.find(other);
    if (longest != beside_.longest.end()) {
      for (const auto& [dur, id] : longest->second) reason.spans.push_back(id);
    }
    const std::string moved =
        is_new ? fmt::format("{} moved {} over the same link, which a usual step does not do",
                             said(other), format_bytes(reason.bytes))
               : fmt::format("{} moved {} over the same link", said(other),
                             bytes_instead(here(other).bytes, usual(other).bytes));
    reason.words = fmt::format("{} took {:.1f} times as long for the same bytes: beside it {}.",
                               said(key), times(key), moved);
    return reason;
  }

  // A link that others cross, which are slow with it, on other devices where it is shared.
  std::string slow_link(const OperationKey& key, double longer) const {
    for (const std::int64_t link : beside_.names.at(key).track->links) {
      const std::string name = link_said(info_, link);
      if (!is_shared_link(name)) continue;
      double slow = 0, all = 0;
      std::set<std::int64_t> devices = {std::get<2>(key)};
      for (const OperationKey& other : others_on(link, key)) {
        if (usual(other).count == 0) continue;
        all += 1;
        slow += is_slow_with(other, longer) ? 1 : 0;
        devices.insert(std::get<2>(other));
      }
      if (all > 0 && devices.size() > 1 && slow >= kMostOnLink * all) return name;
    }
    return "";
  }

  // The link of one device, or the only one.
  std::string own_link_of(const OperationKey& key, double longer) const {
    const std::vector<std::int64_t>& links = beside_.names.at(key).track->links;
    if (links.size() == 1) return link_said(info_, links.front());
    for (const std::int64_t link : links) {
      if (is_shared_link(link_said(info_, link))) continue;
      const bool is_cleared = std::ranges::any_of(others_on(link, key), [&](const auto& other) {
        return usual(other).count > 0 && !is_slow_with(other, longer);
      });
      if (!is_cleared) return link_said(info_, link);
    }
    return "";
  }

  // The same operation on other devices: how many there are, and how many of them are slow, too.
  std::pair<int, int> peers_of(const OperationKey& key, double longer) const {
    int all = 0, slow = 0;
    for (const auto& [other, sum] : beside_.here.operations) {
      if (std::get<1>(other) != std::get<1>(key) || std::get<2>(other) == std::get<2>(key) ||
          sum.count == 0 || usual(other).count == 0) {
        continue;
      }
      ++all;
      slow += is_slow_with(other, longer) ? 1 : 0;
    }
    return {all, slow};
  }

  StepReason slower(const OperationKey& key) const {
    const double longer = times(key);
    StepReason reason = named(ReasonKind::slower_operation, key);
    const bool is_transfer = here(key).bytes > 0;
    const std::string like = is_transfer ? "for the same bytes" : "as usual";
    const std::string took = fmt::format("took {:.1f} times as long {} ({} in all)", longer, like,
                                         instead(here(key).dur_ns, usual(key).dur_ns));
    const auto [peer_count, slow_peers] = peers_of(key, longer);
    const std::string link = slow_link(key, longer);
    if (!link.empty()) {
      reason.kind = ReasonKind::slower_link;
      reason.device.clear();
      reason.link = link;
      reason.spans = path_spans([](const OperationKey&) { return true; }, key);
      reason.words = fmt::format("All that crossed {} took longer: {} {}", link, said(key), took);
    } else if (slow_peers > 0 && slow_peers >= kMostOnLink * peer_count) {
      reason.device.clear();
      reason.spans = path_spans(
          [&key](const OperationKey& one) { return std::get<1>(one) == std::get<1>(key); }, key);
      reason.words = fmt::format("{} {}, and so it did on the other devices", said(key), took);
    } else {
      reason.link = is_transfer ? own_link_of(key, longer) : "";
      reason.spans = own_spans(key);
      if (!reason.device.empty()) reason.kind = ReasonKind::slower_device;
      if (reason.device.empty() && !reason.link.empty()) reason.kind = ReasonKind::slower_link;
      reason.words = said(key) + " " + took;
      if (slow_peers == 0 && peer_count > 0)
        reason.words += peer_count == 1 ? "; the other device did not" : "; no other device did";
    }
    add_lateness(reason);
    reason.words += ".";
    return reason;
  }

  // By the emulated clock the modelled machine does not become slower: this computer does.
  void add_lateness(StepReason& reason) const {
    if (info_.meta_value("clock") != "emulated") return;
    rundb::LatenessSum sum;
    std::int64_t from = -1;
    for (const rundb::LatenessRow& row : beside_.lateness) {
      if (row.step_id > beside_.step || row.stage != reason.operation) continue;
      if (row.step_id != from) sum = {};
      from = row.step_id;
      sum.add(row);
    }
    if (!sum.is_late()) return;
    reason.kind = ReasonKind::late_operations;
    reason.words +=
        fmt::format("; {:.0f} % of these modelled operations end late, by this computer's own work",
                    sum.late_share() * 100);
  }

  const StepsBeside& beside_;
  const RunInfo& info_;
  const Cause cause_;
  const std::size_t path_;
  OperationKey key_ = kNoOperation;
};

}  // namespace

std::string said_name(const OperationNames& names, const RunInfo& info) {
  if (names.track == nullptr || names.name == nullptr) return "nothing";
  const std::string& label = names.track->label;
  if (label.find(*names.name) != std::string::npos) return label;
  const std::string device = device_said(info, names.device);
  return device.empty() ? *names.name : device + " " + *names.name;
}

StepReason reason_of(const StepsBeside& beside, Cause cause) {
  return ReasonOf(beside, cause).find();
}

}  // namespace sluice::analyze
