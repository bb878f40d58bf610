#include "profiler/report/detail/analysis_json.h"

#include <algorithm>
#include <array>
#include <functional>

#include "base/words.h"
#include "profiler/analyze/advice.h"
#include "profiler/answers/record_json.h"

namespace sluice::report::detail {
namespace {

using Json = nlohmann::ordered_json;

Json causes_json(const analyze::RunAnalysis& analysis) {
  std::vector<std::size_t> order;
  for (std::size_t c = 0; c < analyze::kCauseCount; ++c) {
    if (analysis.share[c] > 0) order.push_back(c);
  }
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::size_t c) { return analysis.share[c]; });
  Json causes = Json::array();
  for (const std::size_t c : order) {
    const auto cause = static_cast<analyze::Cause>(c);
    causes.push_back({{"cause", analyze::cause_name(cause)},
                      {"label", analyze::cause_label(cause)},
                      {"phrase", analyze::cause_phrase(cause)},
                      {"share", analysis.share[c]},
                      {"ns", analysis.share[c] * static_cast<double>(analysis.dur)}});
  }
  return causes;
}

}  // namespace

Json verdict_json(const analyze::RunAnalysis& analysis) {
  Json causes = analysis.has_spans() ? causes_json(analysis) : Json::array();
  Json findings = Json::array();
  for (const analyze::Remark& finding : analyze::remarks(analysis)) {
    // The page says the shares themselves, in words and as bars.
    if (finding.beside_shares.empty()) continue;
    findings.push_back({{"text", finding.beside_shares}, {"is_warning", finding.is_warning}});
  }
  for (const analyze::Remark& finding : analyze::worst_findings(analysis))
    findings.push_back({{"text", finding.text}, {"is_warning", finding.is_warning}});
  return {{"step_count", analysis.steps.size()},
          {"first_step", analysis.steps.empty() ? 0 : analysis.steps.front()},
          {"last_step", analysis.steps.empty() ? 0 : analysis.steps.back()},
          {"dur", analysis.dur},
          {"why_empty", analyze::sentence_of(analysis.why_unknown)},
          {"causes", std::move(causes)},
          {"findings", std::move(findings)}};
}

Json looked_json(const std::vector<analyze::Answer>& answers) {
  Json lines = Json::array();
  for (const analyze::Answer& answer : analyze::without_result(answers)) {
    lines.push_back({{"words", answer.words()},
                     {"is_warning", answer.outcome == analyze::Outcome::could_not_look}});
  }
  return {{"answered", analyze::answered_words(answers)}, {"lines", std::move(lines)}};
}

Json next_json(const analyze::PredictedChanges& predicted) {
  const analyze::TurnNext next = analyze::turn_next(predicted);
  Json groups = Json::array();
  const auto add = [&](std::string_view heading, const auto& changes) {
    Json rows = Json::array();
    for (const analyze::PredictedChange& change : changes) {
      rows.push_back({{"words", analyze::change_words(change, "\u2192")},
                      {"why", change.why},
                      {"ns", change.seconds * 1e9},
                      {"ns_before", change.seconds_before() * 1e9},
                      {"change", change.change}});
    }
    if (!rows.empty()) groups.push_back({{"heading", heading}, {"rows", std::move(rows)}});
  };
  add("", next.now);  // beneath the heading that the page has
  add(words::kAnotherRun, next.another_run);
  const bool has_none = groups.empty();
  if (next.together) add(words::kTogether, std::array{*next.together});
  return {{"groups", std::move(groups)},
          {"none", has_none ? analyze::none_words(predicted) : ""},
          {"note", analyze::fit_words(predicted)},
          {"caution", predicted.caution},
          {"unavailable", predicted.unavailable}};
}

Json links_json(const analyze::RunAnalysis& analysis) {
  Json rows = Json::array();
  for (const analyze::LinkLoad& load : analysis.links) {
    rows.push_back({{"name", load.name},
                    {"direction", answers::direction_name(load.direction)},
                    {"direction_text", analyze::direction_text(load)},
                    {"is_shared", load.is_shared},
                    {"bytes", load.bytes},
                    {"bytes_per_s", load.bytes_per_s},
                    {"bytes_per_s_max", load.bytes_per_s_max},
                    {"busy_ns", load.busy_ns},
                    {"share", load.share}});
  }
  const std::string why = !rows.empty()           ? ""
                          : !analysis.has_spans() ? analyze::sentence_of(analysis.why_unknown)
                                                  : "Nothing moved over a link.";
  return {{"rows", std::move(rows)}, {"why_empty", why}};
}

Json devices_json(const analyze::RunAnalysis& analysis, const analyze::RunInfo& info) {
  Json rows = Json::array();
  const auto steps = static_cast<double>(std::max<std::size_t>(1, analysis.steps.size()));
  for (std::size_t d = 0; analysis.has_spans() && d < analysis.devices.size(); ++d) {
    const analyze::DeviceUse& device = analysis.devices[d];
    rows.push_back({{"name", device.name},
                    {"kind", info.devices[d].kind},
                    {"read_bytes", static_cast<double>(device.read_bytes) / steps},
                    {"written_bytes", static_cast<double>(device.write_bytes) / steps},
                    {"update_ns", static_cast<double>(device.update_ns) / steps},
                    {"busy_ns", static_cast<double>(device.busy_ns) / steps}});
  }
  const std::string why = !rows.empty()           ? ""
                          : !analysis.has_spans() ? analyze::sentence_of(analysis.why_unknown)
                                                  : "The run has no storage devices.";
  return {{"rows", std::move(rows)}, {"why_empty", why}};
}

}  // namespace sluice::report::detail
