#include "cli/replay_report.h"

#include <algorithm>

#include "base/escaped_text.h"
#include "base/figure_text.h"
#include "base/units.h"
#include "cli/paint.h"
#include "cli/terminal.h"

namespace sluice::cli {
namespace {

using replay::ChangeAnswer;
using replay::ModelledLink;
using replay::ReplayAnswer;

constexpr int kTableColumns = 72;  // narrower terminals get a line for each figure

std::string first_line(const ReplayAnswer& answer) {
  const std::string what = !answer.has_steps ? "the whole run, which has no steps"
                                             : fmt::format("{} step{}", answer.step_count,
                                                           answer.step_count == 1 ? "" : "s");
  const char* unit = answer.has_steps ? " a step" : "";
  return fmt::format("Replay of {}: {}{}, recorded {}{}: {:+.1f} %", what,
                     format_seconds(answer.replayed_seconds), unit,
                     format_seconds(answer.recorded_seconds), unit, 100 * answer.error());
}

std::string stand_in_line(const ReplayAnswer& answer) {
  std::string text = "SIMULATED: the operations of the record, run again in simulated time.";
  if (!answer.stand_ins.empty()) text += " The recording had: " + answer.stand_ins + ".";
  if (!answer.clock_note.empty())
    text += " Seconds and rates are its own (" + answer.clock_note + ").";
  return text;
}

std::string limit_text(const replay::Busy& limit) {
  return limit.name.empty() ? "nothing recorded"
                            : fmt::format("{}, busy {:.0f} %", escaped_for_terminal(limit.name),
                                          100 * std::min(1.0, limit.share));
}

void add_row(std::string& text, const ChangeAnswer& row, int width, int columns) {
  const std::string change = escaped_for_terminal(row.change);
  const std::string seconds = format_seconds(row.step_seconds);
  const std::string factor = fmt::format("x{:.2f}", row.factor);
  if (columns >= kTableColumns) {
    text += fmt::format("  {} {:>10} {:>8}  {}\n", padded(change, width), seconds, factor,
                        limit_text(row.limit));
  } else {
    text +=
        fmt::format("  {}\n    {}, {}\n    {}\n", change, seconds, factor, limit_text(row.limit));
  }
}

std::string table(const ReplayAnswer& answer, int columns) {
  int width = static_cast<int>(columns_of("as it was"));
  for (const ChangeAnswer& change : answer.changes)
    width = std::max(width, static_cast<int>(columns_of(escaped_for_terminal(change.change))));
  std::string text;
  if (columns >= kTableColumns) {
    text += fmt::format("  {} {:>10} {:>8}  {}\n", padded("change", width),
                        answer.has_steps ? "a step" : "the run", "faster", "busiest then");
  }
  add_row(text,
          {.change = "as it was", .step_seconds = answer.replayed_seconds, .limit = answer.limit},
          width, columns);
  for (const ChangeAnswer& change : answer.changes) add_row(text, change, width, columns);
  return text;
}

std::string rate_text(const ModelledLink& link, std::size_t to) {
  switch (link.source[to]) {
    case replay::RateSource::fitted:
      return format_rate(link.bytes_per_s[to]);
    case replay::RateSource::declared:
      return format_rate(link.bytes_per_s[to]) + " (declared)";
    case replay::RateSource::unknown:
      break;
  }
  return "not known";
}

std::string links_text(const ReplayAnswer& answer, int columns) {
  if (answer.links.empty()) return "";
  std::string text = "Links as the record shows them:\n";
  for (const ModelledLink& link : answer.links) {
    text += wrapped(fmt::format("  {}: read {}, write {}", escaped_for_terminal(link.name),
                                rate_text(link, 0), rate_text(link, 1)),
                    columns, "    ");
  }
  return text;
}

}  // namespace

std::string replay_text(const ReplayAnswer& answer, int columns) {
  std::string text = wrapped(first_line(answer), columns, "  ");
  text += amber(wrapped(stand_in_line(answer), columns, "  "));
  text += wrapped(fmt::format("{} operations; in {:.1f} % of the time one was under way.",
                              format_whole(static_cast<std::int64_t>(answer.operation_count)),
                              100 * answer.busy_share),
                  columns, "  ");
  if (!answer.why_not.empty()) {
    return text + "\n" +
           wrapped("NOT ANSWERED: " + answer.why_not + " Nothing is said of other machines.",
                   columns, "  ");
  }
  text += "\n" + table(answer, columns);
  for (const std::string& note : answer.notes) text += wrapped(note, columns, "  ");
  return text + "\n" + links_text(answer, columns);
}

}  // namespace sluice::cli
