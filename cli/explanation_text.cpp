#include "cli/explanation_text.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/escaped_text.h"
#include "cli/paint.h"
#include "cli/terminal.h"
#include "profiler/analyze/answer.h"

namespace sluice::cli {
namespace {

constexpr int kWideColumns = 66;  // from here on the usual time and the noise have columns
constexpr const char* kNoiseMark = "~";

std::string difference(TimeNs more_ns) {
  return fmt::format("{}{}", more_ns < 0 ? "-" : "+", format_duration(std::abs(more_ns)));
}

std::string cause_line(const analyze::StepExplanation& explanation,
                       const analyze::ExplainedCause& cause, bool is_wide) {
  const std::string name = padded(
      painted(analyze::cause_label(cause.cause), analyze::cause_colour(cause.cause).dark), 17);
  std::string line = fmt::format("  {} {:>9}", name, format_duration(cause.ns));
  if (!explanation.has_usual()) return line + "\n";
  if (is_wide) line += fmt::format(" {:>9}", format_duration(cause.usual_ns));
  line += fmt::format(" {:>9}", difference(cause.more_ns()));
  if (cause.is_within_noise) line += is_wide ? "  within noise" : kNoiseMark;
  return line + "\n";
}

std::string causes_table(const analyze::StepExplanation& explanation, int columns) {
  const bool is_wide = columns >= kWideColumns;
  std::string text = fmt::format("  {:<17} {:>9}", "", "here");
  if (explanation.has_usual())
    text += is_wide ? fmt::format(" {:>9} {:>9}", "usual", "differs")
                    : " " + fmt::format("{:>9}", "differs");
  text += "\n";
  bool has_noise_mark = false;
  for (const analyze::ExplainedCause& cause : explanation.causes) {
    if (!explanation.is_worth_a_line(cause)) continue;
    text += cause_line(explanation, cause, is_wide);
    has_noise_mark = has_noise_mark || cause.is_within_noise;
  }
  if (has_noise_mark && !is_wide)
    text += "  " + wrapped(fmt::format("{} within the noise", kNoiseMark), columns - 2, "  ");
  return text;
}

}  // namespace

std::string explanation_text(const analyze::StepExplanation& explanation, int columns) {
  const std::string head = wrapped(explanation.words(), columns, "  ");
  std::string text = explanation.is_beyond_noise && explanation.more_ns() > 0 ? amber(head) : head;
  for (const std::string& note : explanation.notes)
    text += wrapped(escaped_for_terminal(note), columns, "  ");
  if (!explanation.why_unknown.empty()) {
    return text +
           wrapped(analyze::sentence_of("its causes are not known: " + explanation.why_unknown),
                   columns, "  ");
  }
  text += causes_table(explanation, columns);
  for (const analyze::ExplainedCause& cause : explanation.causes) {
    if (!cause.reason) continue;
    text += wrapped(fmt::format("{}: {}", analyze::cause_label(cause.cause),
                                escaped_for_terminal(cause.reason->words)),
                    columns, "  ");
  }
  return text;
}

}  // namespace sluice::cli
