#include "profiler/answers/explanation_json.h"

namespace sluice::answers {
namespace {

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json reason_json(const std::optional<analyze::StepReason>& reason) {
  if (!reason) return nullptr;
  return {{"kind", analyze::reason_name(reason->kind)},
          {"words", reason->words},
          {"operation", text_or_null(reason->operation)},
          {"track", text_or_null(reason->track)},
          {"device", text_or_null(reason->device)},
          {"link", text_or_null(reason->link)},
          {"rank", reason->rank < 0 ? Json() : Json(reason->rank)},
          {"times", reason->times},
          {"bytes", reason->bytes},
          {"usual_bytes", reason->usual_bytes},
          {"spans", reason->spans}};
}

}  // namespace

Json to_json(const analyze::StepExplanation& explanation) {
  const bool has_usual = explanation.has_usual();
  const auto or_null = [has_usual](TimeNs ns) { return has_usual ? Json(ns) : Json(); };
  Json causes = Json::array();
  for (const analyze::ExplainedCause& cause : explanation.causes) {
    causes.push_back({{"cause", analyze::cause_name(cause.cause)},
                      {"label", analyze::cause_label(cause.cause)},
                      {"ns", cause.ns},
                      {"usual_ns", or_null(cause.usual_ns)},
                      {"more_ns", or_null(cause.more_ns())},
                      {"is_within_noise", cause.is_within_noise},
                      {"is_worth_a_line", explanation.is_worth_a_line(cause)},
                      {"words", explanation.words_of(cause)},
                      {"reason", reason_json(cause.reason)}});
  }
  Json usual_steps = Json::array();  // as people count them
  for (const std::int64_t step : explanation.usual_steps) usual_steps.push_back(step + 1);
  return {{"first_step", explanation.steps.first + 1},
          {"last_step", explanation.steps.last + 1},
          {"step_count", explanation.step_count},
          {"words", explanation.words()},
          {"dur", explanation.dur},
          {"usual_dur", or_null(explanation.usual_dur)},
          {"noise", explanation.noise_ns},
          {"usual_count", explanation.usual_count},
          {"usual_steps", std::move(usual_steps)},
          {"is_beyond_noise", explanation.is_beyond_noise},
          {"notes", explanation.notes},
          {"causes", std::move(causes)},
          {"why_unknown", text_or_null(explanation.why_unknown)},
          {"why_no_usual", text_or_null(explanation.why_no_usual)}};
}

}  // namespace sluice::answers
