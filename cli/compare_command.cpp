#include <cmath>
#include <limits>

#include "base/units.h"
#include "cli/answers_text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/fail_condition.h"
#include "cli/output.h"
#include "cli/run_argument.h"
#include "cli/terminal.h"
#include "profiler/analyze/comparison_words.h"
#include "profiler/answers/comparison_json.h"

namespace sluice::cli {
namespace {

using analyze::Comparability;
using analyze::ComparedFigure;
using analyze::Comparison;
using analyze::Mismatch;
using analyze::SettingDifference;

struct CompareArguments {
  std::string a;
  std::string b;
  std::vector<std::string> fail_if;
  bool even_if_incomparable = false;
  bool json = false;
};

std::string figure_text(const ComparedFigure& figure, double value) {
  if (figure.unit == "s") return format_seconds(value);
  if (figure.unit == "B") return format_bytes(static_cast<std::int64_t>(value));
  return figure.key == "loss" ? fmt::format("{:.4f}", value) : format_count(value);
}

// Texts of a model or a setting's long list do not fit a line.
constexpr std::size_t kTextColumns = 40;

void print_figures(const Comparison& comparison, bool is_wide) {
  if (is_wide) {
    print("{:<20} {:>10} {:>10} {:>9}\n", "medians a step", "A", "B", "change");
  } else {
    print("Medians a step:\n");
  }
  for (const ComparedFigure& figure : comparison.figures) {
    const std::string a = figure_text(figure, figure.a);
    const std::string b = figure_text(figure, figure.b);
    if (is_wide) {
      print("{:<20} {:>10} {:>10} {:>+7.1f} %  {}\n", figure.key, a, b, 100 * figure.change(),
            analyze::judgement_of(figure));
    } else {
      print("{}: {} -> {}\n  {:+.1f} %, {}\n", figure.key, a, b, 100 * figure.change(),
            analyze::judgement_of(figure));
    }
  }
}

void print_comparability(const Comparability& comparability, int columns) {
  if (!comparability.is_comparable()) {
    print_lines(
        wrapped("NOT COMPARABLE: " + analyze::incomparable_words(comparability), columns, ""));
    for (const Mismatch& mismatch : comparability.mismatches) {
      const std::string text =
          fmt::format("{}: {} -> {}. {}", mismatch.what, mismatch.a, mismatch.b, mismatch.meaning);
      print_lines("  " + wrapped(text, columns - 2, "    "));
    }
    print("\n");
  }
  for (const std::string& caution : comparability.cautions)
    print_lines(wrapped("Mind: " + caution, columns, "  "));
  if (!comparability.unknown.empty()) {
    print_lines(wrapped("Mind: neither run says its " + analyze::listed(comparability.unknown) +
                            ", so whether that is the same is not known.",
                        columns, "  "));
  }
  if (!comparability.cautions.empty() || !comparability.unknown.empty()) print("\n");
}

void print_differences(const Comparison& comparison, int columns) {
  if (comparison.differences.empty()) {
    if (comparison.answers.back().outcome == analyze::Outcome::could_not_look) return;
    print_lines("\n" +
                wrapped("Both ran with the same settings on the same machine.", columns, ""));
    return;
  }
  print("\nWhat was different:\n");
  for (const SettingDifference& difference : comparison.differences) {
    const std::string text =
        fmt::format("{:<{}} {} -> {}", difference.key, columns >= 72 ? 22 : 0,
                    cut_to(difference.a, kTextColumns), cut_to(difference.b, kTextColumns));
    print_lines("  " + wrapped(text, columns >= 72 ? std::numeric_limits<int>::max() : columns - 2,
                               "    "));
  }
}

// Whether they can be compared comes first, then the answer, then the figures.
void print_text(const CompareArguments& arguments, const Comparison& comparison) {
  const int columns = terminal_columns();
  const auto of_steps = [](auto count) {
    return fmt::format("{} step{}", count, count == 1 ? "" : "s");
  };
  print_comparability(comparison.comparability, columns);
  print("A: {} ({})\nB: {} ({})\n\n", arguments.a, of_steps(comparison.steps_a), arguments.b,
        of_steps(comparison.steps_b));
  const analyze::ComparisonWords words = analyze::words_of(comparison);
  print_lines(wrapped(words.headline, columns, ""));
  if (!words.where.empty()) print_lines(wrapped(words.where, columns, ""));
  print("\n");
  print_figures(comparison, columns >= 72);
  print_differences(comparison, columns);
}

// The conditions, each by its outcome.
struct Judged {
  std::vector<std::string> tripped;
  std::vector<std::string> held;
  std::vector<std::string> not_judged;  // the runs cannot be compared

  int exit_code() const {
    return !not_judged.empty() ? kIncomparable : !tripped.empty() ? kTripped : kDone;
  }
};

Result<Judged> judge(const CompareArguments& arguments, const Comparison& comparison) {
  Judged judged;
  const bool can_judge = comparison.comparability.is_comparable() || arguments.even_if_incomparable;
  for (const std::string& text : arguments.fail_if) {
    ASSIGN_OR_RETURN(const FailCondition condition, parse_fail_condition(text, comparison));
    auto& where = !can_judge                          ? judged.not_judged
                  : is_tripped(condition, comparison) ? judged.tripped
                                                      : judged.held;
    where.push_back(text);
  }
  return judged;
}

Result<int> compare(const CompareArguments& arguments) {
  ASSIGN_OR_RETURN(const Comparison comparison, analyze::compare_runs(arguments.a, arguments.b));
  ASSIGN_OR_RETURN(const Judged judged, judge(arguments, comparison));
  if (arguments.json) {
    answers::Json json = answers::to_json(comparison);
    json["tripped"] = judged.tripped;
    json["held"] = judged.held;
    json["not_judged"] = judged.not_judged;
    print_lines(json_text(json, 2) + "\n");
    return judged.exit_code();
  }
  print_text(arguments, comparison);
  print_lines("\n" + answers_text(comparison.answers, terminal_columns()));
  for (const std::string& text : judged.held) print("\nHeld: --fail-if '{}'\n", text);
  for (const std::string& text : judged.tripped) print("\nTRIPPED: --fail-if '{}'\n", text);
  for (const std::string& text : judged.not_judged) {
    print("\nNOT JUDGED: --fail-if '{}': the runs cannot be compared.\n", text);
  }
  if (!judged.not_judged.empty()) print("(--even-if-incomparable judges it all the same.)\n");
  return judged.exit_code();
}

}  // namespace

void add_compare_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<CompareArguments>();
  CLI::App* command = app.add_subcommand(
      "compare", "Two runs, phase by phase, with the noise of the runs themselves");
  add_run_argument(*command, "a", arguments->a, "A: the run database to compare with");
  add_run_argument(*command, "b", arguments->b, "B: the run database that is compared");
  command->add_option("--fail-if", arguments->fail_if,
                      "exit with 3 if B is so much more or less than A, and the difference is more "
                      "than noise: 'step_time>+3%', 'loss>0.05'; may be repeated");
  command->add_flag("--even-if-incomparable", arguments->even_if_incomparable,
                    "judge --fail-if also where the runs cannot be compared");
  command->add_flag("--json", arguments->json, "print one JSON object and nothing else");
  command->footer(
      "Figures are medians of the steps without the first two; noise is three standard errors of "
      "the two medians, beside each figure that has one. Runs of another model, text, batch,\n"
      "optimizer, platform, processor, clock or level of recording cannot be compared: that is "
      "said "
      "first.\n"
      "Exit codes: 3 a --fail-if tripped; 4 one was not judged, since the runs cannot be "
      "compared.\n"
      "Example: sluice compare before.db after.db --fail-if 'step_time>+3%'");
  command->callback([arguments, &exit_code] {
    const Result<int> code = compare(*arguments);
    exit_code = code.ok() ? *code : report_error(wrong_database(code.error()));
  });
}

}  // namespace sluice::cli
