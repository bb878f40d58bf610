#include "profiler/answers/run_json.h"

#include "profiler/analyze/advice.h"
#include "profiler/answers/explanation_json.h"
#include "profiler/answers/ranks_json.h"
#include "profiler/answers/samples_json.h"

namespace sluice::answers {
namespace {

// Changes worth a line, the best first: those of knobs, then those that need another run.
Json predicted_json(const std::optional<analyze::PredictedChanges>& predicted) {
  Json rows = Json::array();
  if (!predicted) return rows;
  const analyze::TurnNext next = analyze::turn_next(*predicted);
  for (const auto* list : {&next.now, &next.another_run}) {
    for (const analyze::PredictedChange& one : *list) {
      rows.push_back({{"setting", one.settings.front()},
                      {"seconds", one.seconds},
                      {"change", one.change},
                      {"why", one.why},
                      {"needs_new_run", one.needs_new_run}});
    }
  }
  return rows;
}

Json verdict_json(const RunAnswer& run) {
  const analyze::RunAnalysis& analysis = run.analysis;
  Json json;
  json["steps"] = analysis.steps.size();
  json["dur"] = analysis.dur;
  json["share"] = nullptr;  // where no operations were recorded
  if (analysis.has_spans()) json["share"] = shares_json(analysis.share);
  json["findings"] = Json::array();
  for (const analyze::Remark& finding : analyze::remarks(analysis)) {
    json["findings"].push_back(finding.text);
  }
  json["predicted"] = predicted_json(run.predicted);
  return json;
}

Json findings_json(const RunAnswer& run) {
  Json rows = Json::array();
  for (const analyze::Finding& finding : run.analysis.findings) {
    Json steps = Json::array();  // as people count them
    for (const std::int64_t step : finding.steps) steps.push_back(step + 1);
    rows.push_back({{"kind", finding.kind},
                    {"words", finding.words},
                    {"share", finding.share},
                    {"advice", finding.advice},
                    {"evidence", {{"spans", finding.spans}, {"steps", steps}}}});
  }
  return rows;
}

Json modes_json(const RunAnswer& run) {
  Json rows = Json::array();
  for (const analyze::ModeStretch& stretch : run.info.mode.stretches) {
    Json last_step;  // null: the run's last
    if (stretch.last_step >= 0) last_step = stretch.last_step + 1;
    rows.push_back(
        {{"first_step", stretch.first_step + 1}, {"last_step", last_step}, {"mode", stretch.line}});
  }
  return rows;
}

Json steps_json(const RunAnswer& run) {
  Json rows = Json::array();
  for (const rundb::StepRow& step : run.steps) {
    rows.push_back({{"step", step.id + 1},
                    {"ts", step.ts},
                    {"dur", step.dur},
                    {"loss", step.loss},
                    {"grad_norm", step.grad_norm},
                    {"loss_scale", step.loss_scale},
                    {"lr", step.lr},
                    {"tokens", step.tokens},
                    {"skipped", step.skipped}});
    const auto shares = run.shares.find(step.id);
    if (shares != run.shares.end()) rows.back()["share"] = shares_json(shares->second);
  }
  return rows;
}

Json validations_json(const RunAnswer& run) {
  Json rows = Json::array();
  for (const rundb::ValidationRow& row : run.validations) {
    rows.push_back({{"step", row.step_id + 1}, {"loss", row.loss}, {"tokens", row.tokens}});
    if (!std::isnan(row.accuracy)) rows.back()["accuracy"] = row.accuracy;
  }
  return rows;
}

Json stages_json(const RunAnswer& run) {
  Json rows = Json::array();
  for (const rundb::SpanTotals& span : run.spans) {
    rows.push_back({{"name", span.name},
                    {"count", span.count},
                    {"dur_total", span.dur_total},
                    {"dur_max", span.dur_max},
                    {"bytes", span.bytes},
                    {"padding_bytes", span.padding_bytes}});
  }
  return rows;
}

Json links_json(const RunAnswer& run) {
  Json rows = Json::array();
  for (const rundb::LinkTotals& link : run.links) {
    rows.push_back({{"link", link.link},
                    {"direction", direction_name(link.direction)},
                    {"bytes", link.bytes},
                    {"padding_bytes", link.padding_bytes},
                    {"bytes_per_step", link.bytes_per_step_mean}});
  }
  return rows;
}

Json waits_json(const RunAnswer& run) {
  Json rows = Json::array();
  for (const analyze::LayerWaits& layer : run.waits) {
    rows.push_back({{"layer", layer.layer},
                    {"out_count", layer.out_count},
                    {"out_ns", layer.out_ns},
                    {"back_count", layer.back_count},
                    {"back_ns", layer.back_ns}});
  }
  return rows;
}

}  // namespace

Json to_json(const RunAnswer& run) {
  Json json;
  for (const rundb::MetaRow& row : run.meta) json["meta"][row.key] = row.value;
  json["mode"] = run.info.mode.line();
  json["modes"] = modes_json(run);
  json["steps"] = steps_json(run);
  json["skipped_steps"] = run.analysis.skipped_count;
  json["validations"] = validations_json(run);
  json["stages"] = stages_json(run);
  json["links"] = links_json(run);
  json["activation_waits"] = waits_json(run);
  json["verdict"] = verdict_json(run);
  json["findings"] = findings_json(run);
  if (run.explanation) json["explanation"] = to_json(*run.explanation);
  if (run.samples.said) json["samples"] = to_json(*run.samples.said);
  if (run.analysis.ranks) json["ranks"] = to_json(*run.analysis.ranks);
  json["answers"] = answers_json(run.answers());
  json["knob_changes"] = knob_changes_json(run.info.knob_changes);
  json["stretches"] = stretches_json(run.stretches);
  json["doubts"] = doubts_json(run.analysis);
  json["lateness"] = lateness_json(run.analysis.lateness);
  json["losses"] = losses_json(run.losses);
  return json;
}

}  // namespace sluice::answers
