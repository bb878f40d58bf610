#include "cli/fitted_simulation.h"

#include <cmath>

#include "base/units.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/paint.h"
#include "cli/terminal.h"
#include "cli/verdict_text.h"
#include "core/answers/predicted_run.h"

namespace sluice::cli {
namespace {

using answers::Asked;
using answers::PredictedRun;

std::string percent(double share) { return fmt::format("{:+.0f} %", share * 100); }

std::string joined(const std::vector<std::string>& settings) {
  return fmt::format("{}", fmt::join(settings, " "));
}

// Where they do not fit beside one another, a line for each part.
void print_list(const std::vector<analyze::PredictedChange>& predictions, int columns) {
  for (const analyze::PredictedChange& one : predictions) {
    print_lines("  " + wrapped(joined(one.settings), columns - 2, "    "));
    print_lines("    " + wrapped("from " + joined(one.from), columns - 4, "      "));
    print("    a step {}, {}\n", format_seconds(one.seconds), percent(one.change));
  }
}

void print_table(const std::vector<analyze::PredictedChange>& predictions, int columns) {
  std::size_t settings_width = std::string_view("settings").size();
  std::size_t from_width = std::string_view("from").size();
  for (const analyze::PredictedChange& one : predictions) {
    settings_width = std::max(settings_width, joined(one.settings).size());
    from_width = std::max(from_width, joined(one.from).size());
  }
  constexpr std::size_t kOtherColumns = 24;
  if (settings_width + from_width + kOtherColumns > static_cast<std::size_t>(columns)) {
    return print_list(predictions, columns);
  }
  print("  {:<{}}  {:<{}}  {:>9}  {:>7}\n", "settings", settings_width, "from", from_width,
        "a step", "change");
  for (const analyze::PredictedChange& one : predictions) {
    print("  {:<{}}  {:<{}}  {:>9}  {:>7}\n", joined(one.settings), settings_width,
          joined(one.from), from_width, format_seconds(one.seconds), percent(one.change));
  }
}

// A change that may be none is not passed off as one.
void print_within_error(const analyze::PredictedChanges& changes, int columns) {
  if (changes.each.empty() || !analyze::is_within_error(changes.each.front(), changes.fit_error))
    return;
  print_lines(wrapped(fmt::format("That is within the simulation's own error of {:.1f} %: nobody "
                                  "knows what it does.",
                                  std::abs(changes.fit_error) * 100),
                      columns, "  "));
}

void print_text(const PredictedRun& predicted) {
  const analyze::PredictedChanges& changes = predicted.changes;
  if (!changes.unavailable.empty()) {
    print_lines(wrapped("Nothing is predicted: " + changes.unavailable, terminal_columns(), "  "));
    return;
  }
  const int columns = terminal_columns();
  print_lines(
      wrapped(fmt::format("PREDICTED by simulation, on the platform fitted to {}:", predicted.run),
              columns, "  "));
  print_lines(
      wrapped(fmt::format("recorded {} a step; simulated {}, {}",
                          format_seconds(predicted.recorded_seconds),
                          format_seconds(predicted.simulated_seconds), percent(changes.fit_error)),
              columns, "  ") +
      "\n");
  if (predicted.asked == Asked::these) {
    print_table(changes.each, columns);
    print_within_error(changes, columns);
    if (!changes.caution.empty()) print_lines(amber(wrapped(changes.caution, columns, "  ")));
    return;
  }
  print_lines(turn_next_text(changes, columns));
}

}  // namespace

Status simulate_fitted(const FittedSimulation& asked) {
  ASSIGN_OR_RETURN(const PredictedRun predicted,
                   of_database(answers::predicted_run(asked.database, asked.settings)));
  if (asked.json) {
    print_lines(json_text(answers::to_json(predicted), -1) + "\n");
  } else {
    print_text(predicted);
  }
  return ok_status();
}

}  // namespace sluice::cli
