#include "profiler/analyze/advice.h"

#include <algorithm>
#include <span>

#include "base/setting_text.h"
#include "base/words.h"
#include "profiler/analyze/turn_next.h"
#include "profiler/analyze/whole_percents.h"

namespace sluice::analyze {
namespace {

// A link that moves this share of what it could is taken to be full.
constexpr double kFull = 0.85;
// Slow steps that have a sentence of their own; the others are counted.
constexpr std::size_t kOutliersSaid = 3;

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }

const char* direction_word(rundb::Direction direction) {
  return direction == rundb::Direction::read ? "read" : "write";
}

// The fullest link of one kind.
const LinkLoad* fullest(const RunAnalysis& analysis, Cause cause) {
  const LinkLoad* best = nullptr;
  for (const LinkLoad& load : analysis.links) {
    const bool reads = load.direction == rundb::Direction::read;
    const bool fits = cause == Cause::host_link
                          ? !load.is_of_drive
                          : load.is_of_drive && reads == (cause == Cause::read);
    // Shares of links whose rates nobody knows are 0.
    const auto fullness = [](const LinkLoad& one) { return std::pair(one.share, one.busy_ns); };
    if (fits && (best == nullptr || fullness(load) > fullness(*best))) best = &load;
  }
  return best;
}

bool is_of_link(Cause cause) {
  return cause == Cause::host_link || cause == Cause::read || cause == Cause::write;
}

bool is_wait_for_activations(Cause cause) {
  return cause == Cause::activations_out || cause == Cause::activations_back;
}

// "csd0.drive reads at 1.06 GB/s of 2.77 GB/s when active (24 % of the step)".
std::string link_words(const LinkLoad& load, TimeNs step_dur) {
  const std::string limit =
      load.bytes_per_s_max > 0 ? " of " + format_rate(load.bytes_per_s_max, "B/s") : "";
  return fmt::format("{} {}s at {}{} {} ({} of the step)", load.name,
                     direction_word(load.direction), format_rate(load.bytes_per_s, "B/s"), limit,
                     words::kWhenActive,
                     percent(static_cast<double>(load.busy_ns) / static_cast<double>(step_dur)));
}

std::vector<Cause> by_share(const RunAnalysis& analysis) {
  std::vector<Cause> causes;
  for (std::size_t c = 0; c < kCauseCount; ++c) causes.push_back(static_cast<Cause>(c));
  std::ranges::stable_sort(causes, std::greater<>(),
                           [&](Cause cause) { return analysis.share[index_of(cause)]; });
  return causes;
}

Remark main_finding(const RunAnalysis& analysis, Cause cause) {
  const double share = analysis.share[index_of(cause)];
  const std::string text =
      fmt::format("{} % of a step is {} ({})", whole_percents(analysis.share)[index_of(cause)],
                  cause_phrase(cause),
                  format_duration(static_cast<TimeNs>(share * static_cast<double>(analysis.dur))));
  if (is_wait_for_activations(cause)) {
    const std::string busiest = analysis.waits.busiest(cause);
    if (busiest.empty()) return {text + ".", false};
    return {
        fmt::format("{}: {}.", text, busiest), false,
        fmt::format("{}: {}.",
                    cause == Cause::activations_out ? "Forward waits for activations to leave"
                                                    : "Backward waits for activations to come back",
                    busiest)};
  }
  const LinkLoad* load = is_of_link(cause) ? fullest(analysis, cause) : nullptr;
  if (load == nullptr) return {text + ".", false};
  return {text + "; " + link_words(*load, analysis.dur) + ".", false,
          link_words(*load, analysis.dur) + "."};
}

// One that says nothing of shares.
Remark plain_finding(const std::string& text, bool is_warning) { return {text, is_warning, text}; }

void add_uneven(const RunAnalysis& analysis, std::vector<Remark>& found) {
  const double imbalance = imbalance_of(analysis.devices);
  if (!analysis.evidence.devices_have_shares || imbalance < kUneven) return;
  const auto busiest = std::ranges::max_element(analysis.devices, {}, &DeviceUse::busy_ns);
  found.push_back(
      plain_finding(fmt::format("{} is busy {:.2f} times as long as devices are on average: its "
                                "share is too large for its speed, or it is slow.",
                                busiest->name, imbalance),
                    true));
}

// fp16 looks for its loss scale with the first steps: those are skipped in every run.
constexpr double kManySkipped = 0.1;

void add_learning(const RunAnalysis& analysis, std::vector<Remark>& found) {
  if (analysis.lost_loss) {
    found.push_back(plain_finding(
        fmt::format("From step {} on the loss is not finite.", *analysis.lost_loss + 1), true));
    found.back().step = *analysis.lost_loss;
  }
  if (analysis.skipped_count == 0) return;
  const bool is_many = static_cast<double>(analysis.skipped_count) >
                       kManySkipped * static_cast<double>(analysis.step_count);
  found.push_back(plain_finding(
      fmt::format("{} of {} steps {} skipped for overflow{}: {} changed no weight.",
                  analysis.skipped_count, analysis.step_count,
                  analysis.skipped_count == 1 ? "was" : "were",
                  analysis.skipped_at_end > 1
                      ? fmt::format(", the last {} among them", analysis.skipped_at_end)
                      : "",
                  analysis.skipped_count == 1 ? "it" : "they"),
      is_many || analysis.skipped_at_end > 1));
}

void add_changes(const RunAnalysis& analysis, std::vector<Remark>& found) {
  if (analysis.trend.changes.empty()) return;
  const ChangePoint& last = analysis.trend.changes.back();
  const double change = last.after / last.before - 1;
  found.push_back(
      plain_finding(fmt::format("Since step {} a step takes {} {} ({} before, {} now).",
                                analysis.change_steps.back() + 1, percent(std::abs(change)),
                                change > 0 ? "longer" : "less", format_seconds(last.before),
                                format_seconds(last.after)),
                    change > 0));
  found.back().step = analysis.change_steps.back();
}

// The causes that the slowest of them spent more on, in figures.
std::string beside_median(const RunAnalysis& analysis, const OutlierStep& outlier) {
  if (!analysis.slowest || analysis.slowest->step != outlier.step) return "";
  const std::string causes = analysis.slowest->causes_words();
  return causes.empty() ? "" : fmt::format(" ({})", causes);
}

// From this share above the median on, the slowest step has a sentence of its own, whether it
// stands out of the noise or not.
constexpr double kSlowestSaid = 0.2;

void add_slowest(const RunAnalysis& analysis, std::vector<Remark>& found) {
  if (!analysis.slowest) return;
  const SlowestStep& slowest = *analysis.slowest;
  const auto median = static_cast<double>(slowest.typical_dur);
  if (static_cast<double>(slowest.dur) < (1 + kSlowestSaid) * median) return;
  const auto is_it = [&](const Remark& finding) {
    return finding.step == slowest.step && finding.is_warning;
  };
  if (std::ranges::any_of(found, is_it)) return;  // said among those that stand out
  found.push_back(
      plain_finding(sentence_of("slowest: " + slowest.words()), slowest.is_beyond_noise));
  found.back().step = slowest.step;
}

void add_outliers(const RunAnalysis& analysis, std::vector<Remark>& found) {
  const std::size_t said = std::min(analysis.outliers.size(), kOutliersSaid);
  for (const OutlierStep& outlier : std::span(analysis.outliers).first(said)) {
    found.push_back(plain_finding(
        fmt::format(
            "Step {} took {}, {} more than others{}{}.", outlier.step + 1,
            format_duration(outlier.dur), format_duration(outlier.dur - outlier.typical_dur),
            analysis.has_spans() ? fmt::format(", most of it on {}", cause_phrase(outlier.cause))
                                 : "",
            beside_median(analysis, outlier)),
        true));
    found.back().step = outlier.step;
  }
  const std::size_t more = analysis.outlier_count - said;
  if (more == 0) return;
  found.push_back(plain_finding(fmt::format("{} more step{} took clearly longer than others with "
                                            "the same settings.",
                                            more, more == 1 ? "" : "s"),
                                true));
}

void add_names_without_stage(const RunAnalysis& analysis, std::vector<Remark>& found) {
  const std::set<std::string>& names = analysis.evidence.names_without_stage;
  if (names.empty()) return;
  std::string some = *names.begin();
  if (names.size() > 1) some += fmt::format(" and {} more", names.size() - 1);
  found.push_back(plain_finding(
      fmt::format("Table stage does not say what {} {}: only the track tells their cause.", some,
                  names.size() == 1 ? "is" : "are"),
      false));
}

class Suggesting {
 public:
  Suggesting(const RunAnalysis& analysis, const RunInfo& info) : analysis_(analysis), info_(info) {}

  std::vector<Suggestion> all() {
    if (!analysis_.has_spans()) return {};
    for (const Cause cause : by_share(analysis_)) {
      if (analysis_.share[index_of(cause)] >= kSuggestFrom) add(cause);
    }
    return std::move(suggestions_);
  }

 private:
  void add(Cause cause) {
    const LinkLoad* link = is_of_link(cause) ? fullest(analysis_, cause) : nullptr;
    const bool is_full = link != nullptr && link->share >= kFull;
    const bool is_csd = info_.value_in_force("method") == "csd";
    switch (cause) {
      case Cause::read:
      case Cause::write:
        if (!is_full) overlap_more(cause);
        if (!is_csd) suggest(cause, "method=csd");
        more_devices(cause);
        break;
      case Cause::host_link:
        if (is_csd) less_gradient(cause);
        if (!is_csd) suggest(cause, "method=csd");
        break;
      case Cause::buffers:
        more_buffers(cause);
        break;
      case Cause::activations_out:
      case Cause::activations_back:
        more_devices(cause);
        break;
      case Cause::update_engine:
        overlap_more(cause);
        more_devices(cause);
        break;
      case Cause::commit:
        overlap_more(cause);
        break;
      case Cause::processor:
        if (!is_csd) suggest(cause, "method=csd");
        overlap_more(cause);
        break;
      case Cause::recorder:
        suggest(cause, "record=steps");
        break;
      default:
        break;  // no setting makes computing or selecting shorter
    }
  }

  void overlap_more(Cause cause) {
    if (info_.value_in_force("pipeline") != "nbuffer") {
      suggest(cause, "pipeline=nbuffer");
    } else {
      more_buffers(cause);
    }
  }

  void more_buffers(Cause cause) {
    const auto buffers = static_cast<std::int64_t>(info_.number_in_force("buffers", 0));
    if (buffers < 1) return;
    suggest(cause, fmt::format("buffers={}", 2 * buffers));
  }

  void more_devices(Cause cause) {
    const auto devices = static_cast<std::int64_t>(info_.number_in_force("devices", 0));
    if (devices < 1) return;
    suggest(cause, fmt::format("devices={}", devices + 1));
  }

  void less_gradient(Cause cause) {
    if (info_.number_in_force("density", 0) == 1) suggest(cause, "density=0.01");
    if (info_.value_in_force("wire") == "fp32") suggest(cause, "wire=native");
  }

  void suggest(Cause cause, const std::string& setting) {
    const bool is_known = std::ranges::count(suggestions_, setting, &Suggestion::setting) > 0;
    if (is_known) return;
    std::string why = why_words(setting, info_.value_in_force(key_of(setting)));
    suggestions_.push_back({cause, setting, std::move(why)});
  }

  const RunAnalysis& analysis_;
  const RunInfo& info_;
  std::vector<Suggestion> suggestions_;
};

}  // namespace

std::vector<Remark> remarks(const RunAnalysis& analysis) {
  std::vector<Remark> found;
  if (analysis.steps.empty()) return found;
  add_learning(analysis, found);
  if (!analysis.has_spans()) {
    found.push_back({.text = "Nothing is known of what the steps' time was spent on: " +
                             analysis.why_unknown + ".",
                     .is_warning = true});
    add_changes(analysis, found);
    add_outliers(analysis, found);
    add_slowest(analysis, found);
    return found;
  }
  if (analysis.ranks) {
    for (const std::string& text : rank_findings(*analysis.ranks)) {
      found.push_back({.text = text, .beside_shares = text});
    }
  }
  const std::vector<Cause> causes = by_share(analysis);
  // A wait says what to turn, so it is told beside the largest two.
  for (std::size_t i = 0; i < causes.size(); ++i) {
    const bool is_told = i < 2 || is_wait_for_activations(causes[i]);
    if (is_told && analysis.share[index_of(causes[i])] >= kSuggestFrom) {
      found.push_back(main_finding(analysis, causes[i]));
    }
  }
  add_uneven(analysis, found);
  if (analysis.overlap.transfer_ns > 0 && analysis.overlap.compute_ns > 0) {
    found.push_back(plain_finding(
        fmt::format("Overlap: {} of the transfers and computing that could run in parallel did.",
                    percent(analysis.overlap.achieved())),
        false));
  }
  add_changes(analysis, found);
  add_outliers(analysis, found);
  add_slowest(analysis, found);
  add_names_without_stage(analysis, found);
  return found;
}

std::vector<Remark> worst_findings(const RunAnalysis& analysis) {
  std::vector<Remark> worst;
  for (const Finding& finding : analysis.findings) {
    if (worst.size() == kFindingsShown) break;
    const std::string text = sentence_of(finding.kind) + " " + finding.words +
                             (finding.advice.empty() ? "" : " " + finding.advice);
    worst.push_back({.text = text,
                     .is_warning = true,
                     .beside_shares = text,
                     .step = finding.steps.empty() ? -1 : finding.steps.front()});
  }
  return worst;
}

std::vector<Suggestion> suggestions(const RunAnalysis& analysis, const RunInfo& info) {
  if (info.is_of_another_program()) return {};  // it has none of our settings
  return Suggesting(analysis, info).all();
}

}  // namespace sluice::analyze
