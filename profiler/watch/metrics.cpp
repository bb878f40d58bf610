#include "profiler/watch/metrics.h"

#include <cmath>

#include "base/units.h"
#include "profiler/analyze/condition_text.h"
#include "profiler/analyze/critical_path.h"
#include "profiler/watch/condition.h"
#include "storage/rundb/query.h"

namespace sluice::watch {
namespace {

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

std::string head(std::string_view name, std::string_view type, std::string_view help) {
  return fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

template <typename Value>
std::string metric(std::string_view name, std::string_view type, std::string_view help,
                   Value value) {
  return head(name, type, help) + fmt::format("{} {}\n", name, value);
}

std::optional<double> knob_number(const std::string& type, const std::string& value) {
  if (type == "boolean") return value == "true" ? 1 : 0;
  if (const auto plain = analyze::finite_number(value)) return plain;
  if (type != "bytes") return std::nullopt;
  const Result<std::int64_t> bytes = parse_bytes(value);
  return bytes.ok() ? std::optional(static_cast<double>(*bytes)) : std::nullopt;
}

std::string of_steps(const RunFollower& run) {
  std::int64_t tokens = 0;
  for (const rundb::StepRow& step : run.steps()) tokens += step.tokens;
  const auto& steps = run.steps();
  std::string text =
      metric("sluice_run_live", "gauge", "1 while the run is being recorded.",
             run.is_live() ? 1 : 0) +
      metric("sluice_steps_total", "counter", "Number of the last step that ended.",
             steps.empty() ? 0 : steps.back().id + 1) +
      metric("sluice_tokens_total", "counter", "Tokens of all recorded steps.", tokens) +
      metric("sluice_lost_records_total", "counter", "Records lost while recording.",
             run.lost_records());
  if (steps.empty()) return text;
  const auto median = run.before(steps.size(), step_seconds);
  text += head("sluice_step_seconds", "gauge",
               "Time of the last step, and the median of steps with its settings.");
  text +=
      fmt::format("sluice_step_seconds{{of=\"last\"}} {}\n", number(step_seconds(steps.back())));
  if (median)
    text += fmt::format("sluice_step_seconds{{of=\"median\"}} {}\n", number(median->median));
  return text + metric("sluice_loss", "gauge", "Loss of the last step.", number(steps.back().loss));
}

}  // namespace

std::string escaped_label(const std::string& value) {
  std::string escaped;
  for (const char c : value) {
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return escaped;
}

Result<std::string> Metrics::text(RunFollower& run) {
  RETURN_IF_ERROR(run.look());
  ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, run.reader().snapshot());
  if (file_number_ != run.file_number()) *this = Metrics();
  file_number_ = run.file_number();
  RETURN_IF_ERROR(read_link_bytes(run));
  RETURN_IF_ERROR(read_shares(run));
  std::string text = of_steps(run);
  text += head("sluice_link_bytes_total", "counter", "Payload that crossed a link.");
  for (const auto& [link, bytes] : link_bytes_) {
    text += fmt::format("sluice_link_bytes_total{{link=\"{}\",direction=\"{}\"}} {}\n",
                        escaped_label(link.first), escaped_label(link.second), bytes);
  }
  if (has_shares_) {
    text += head("sluice_cause_share", "gauge", "Share of a step's time, of the last whole one.");
    for (std::size_t c = 0; c < shares_.size(); ++c) {
      text += fmt::format("sluice_cause_share{{cause=\"{}\"}} {}\n",
                          analyze::cause_name(static_cast<analyze::Cause>(c)), number(shares_[c]));
    }
  }
  ASSIGN_OR_RETURN(const std::string of_knobs, knobs(run));
  return text + of_knobs;
}

Status Metrics::read_link_bytes(RunFollower& run) {
  std::int64_t last = last_span_;
  rundb::Query query(run.reader());
  RETURN_IF_ERROR(query.each_row_with("SELECT max(id) FROM span", {},
                                      [&last](std::span<const rundb::Cell> row) {
                                        if (const auto* id = std::get_if<std::int64_t>(&row[0]))
                                          last = *id;
                                        return ok_status();
                                      }));
  RETURN_IF_ERROR(query.each_row_with(
      "SELECT link.name, track_link.direction, sum(span.bytes) FROM span "
      "JOIN track_link ON track_link.track_id = span.track_id "
      "JOIN link ON link.id = track_link.link_id "
      "WHERE span.id > ?1 AND span.id <= ?2 GROUP BY link.id, track_link.direction",
      {last_span_, last}, [this](std::span<const rundb::Cell> row) {
        const auto* link = std::get_if<std::string>(&row[0]);
        const auto* direction = std::get_if<std::string>(&row[1]);
        const auto* bytes = std::get_if<std::int64_t>(&row[2]);
        if (link != nullptr && direction != nullptr && bytes != nullptr)
          link_bytes_[{*link, *direction}] += *bytes;
        return ok_status();
      }));
  last_span_ = last;
  return ok_status();
}

// Operations of a live run's last step may still come.
Status Metrics::read_shares(RunFollower& run) {
  const std::size_t behind = run.is_live() ? 2 : 1;
  if (run.steps().size() < behind) return ok_status();
  const rundb::StepRow& row = run.steps()[run.steps().size() - behind];
  if (row.id == shares_of_) return ok_status();
  ASSIGN_OR_RETURN(const analyze::StepData step, analyze::load_step(run.reader(), run.info(), row));
  shares_of_ = row.id;
  has_shares_ = !step.spans.empty();
  if (has_shares_) shares_ = analyze::verdict_of(step).share;
  return ok_status();
}

// A word is no number: it is a label.
Result<std::string> Metrics::knobs(RunFollower& run) const {
  ASSIGN_OR_RETURN(const std::vector<rundb::KnobRow> rows, run.reader().knobs());
  std::string numbers;
  std::string words;
  for (const rundb::KnobRow& knob : rows) {
    const std::string value = run.info().value_in_force(knob.name);
    const std::string key = escaped_label(knob.name);
    if (const auto as_number = knob_number(knob.type, value)) {
      numbers += fmt::format("sluice_knob{{key=\"{}\"}} {}\n", key, number(*as_number));
    } else {
      words +=
          fmt::format("sluice_knob_info{{key=\"{}\",value=\"{}\"}} 1\n", key, escaped_label(value));
    }
  }
  return head("sluice_knob", "gauge", "Value in force of a setting that is a number.") + numbers +
         head("sluice_knob_info", "gauge", "Value in force of another setting, as a label.") +
         words;
}

}  // namespace sluice::watch
