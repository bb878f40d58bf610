#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/answers_text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/fail_condition.h"
#include "cli/output.h"
#include "cli/terminal.h"

namespace sluice::cli {
namespace {

using analyze::ComparedFigure;
using analyze::Comparison;
using analyze::SettingDifference;

struct CompareArguments {
  std::string a;
  std::string b;
  std::vector<std::string> fail_if;
  bool json = false;
};

std::string figure_text(const ComparedFigure& figure, double value) {
  if (figure.unit == "s") return format_duration(static_cast<TimeNs>(value * 1e9));
  if (figure.unit == "B") return format_bytes(static_cast<std::int64_t>(value));
  return figure.key == "loss" ? fmt::format("{:.4f}", value) : format_count(value);
}

// A loss is one value, and bytes are exact: they have no noise.
std::string judgement(const ComparedFigure& figure) {
  const bool has_noise = figure.noise > 0 && figure.a != 0;
  const std::string noise =
      has_noise ? fmt::format("noise +-{:.1f} %", 100 * figure.noise / std::abs(figure.a)) : "";
  if (figure.a == figure.b) return has_noise ? "the same, " + noise : "the same";
  if (!figure.is_more_than_noise()) return "within the " + noise;
  const std::string word = figure.b > figure.a ? "MORE" : "LESS";
  return has_noise ? word + ", " + noise : word;
}

// Texts of a model or a setting's long list do not fit a line.
std::string shortened(const std::string& text) {
  constexpr std::size_t kLongest = 40;
  return text.size() <= kLongest ? text : text.substr(0, kLongest - 3) + "...";
}

void print_figures(const Comparison& comparison, bool is_wide) {
  if (is_wide) {
    print("{:<24} {:>11} {:>11} {:>9}\n", "medians a step", "a", "b", "change");
  } else {
    print("Medians a step:\n");
  }
  for (const ComparedFigure& figure : comparison.figures) {
    const std::string a = figure_text(figure, figure.a);
    const std::string b = figure_text(figure, figure.b);
    if (is_wide) {
      print("{:<24} {:>11} {:>11} {:>+7.1f} %  {}\n", figure.key, a, b, 100 * figure.change(),
            judgement(figure));
    } else {
      print("{}: {} -> {}\n  {:+.1f} %, {}\n", figure.key, a, b, 100 * figure.change(),
            judgement(figure));
    }
  }
}

void print_text(const CompareArguments& arguments, const Comparison& comparison) {
  const int columns = terminal_columns();
  const auto of_steps = [](auto count) {
    return fmt::format("{} step{}", count, count == 1 ? "" : "s");
  };
  print("a: {} ({})\nb: {} ({})\n\n", arguments.a, of_steps(comparison.steps_a), arguments.b,
        of_steps(comparison.steps_b));
  print_figures(comparison, columns >= 72);
  if (comparison.differences.empty()) {
    if (comparison.answers.back().outcome == analyze::Outcome::could_not_look) return;
    print_lines("\n" +
                wrapped("Both ran with the same settings on the same machine.", columns, ""));
    return;
  }
  print("\nWhat was different:\n");
  for (const SettingDifference& difference : comparison.differences) {
    const std::string text = fmt::format("{:<{}} {} -> {}", difference.key, columns >= 72 ? 22 : 0,
                                         shortened(difference.a), shortened(difference.b));
    print_lines("  " + wrapped(text, columns >= 72 ? std::numeric_limits<int>::max() : columns - 2,
                               "    "));
  }
}

nlohmann::ordered_json json_of(const Comparison& comparison) {
  nlohmann::ordered_json json;
  json["steps"] = {{"a", comparison.steps_a}, {"b", comparison.steps_b}};
  for (const ComparedFigure& figure : comparison.figures) {
    json["figures"][figure.key] = {{"a", figure.a},
                                   {"b", figure.b},
                                   {"change", figure.change()},
                                   {"noise", figure.noise},
                                   {"is_more_than_noise", figure.is_more_than_noise()}};
  }
  json["differences"] = nlohmann::ordered_json::object();
  for (const SettingDifference& difference : comparison.differences) {
    json["differences"][difference.key] = {{"a", difference.a}, {"b", difference.b}};
  }
  json["answers"] = answers_json(comparison.answers);
  return json;
}

Result<int> compare(const CompareArguments& arguments) {
  ASSIGN_OR_RETURN(const Comparison comparison, analyze::compare_runs(arguments.a, arguments.b));
  std::vector<std::string> tripped;
  std::vector<std::string> held;
  for (const std::string& text : arguments.fail_if) {
    ASSIGN_OR_RETURN(const FailCondition condition, parse_fail_condition(text, comparison));
    (is_tripped(condition, comparison) ? tripped : held).push_back(text);
  }
  if (arguments.json) {
    nlohmann::ordered_json json = json_of(comparison);
    json["tripped"] = tripped;
    print_lines(json_text(json, 2) + "\n");
  } else {
    print_text(arguments, comparison);
    print_lines("\n" + answers_text(comparison.answers, terminal_columns()));
    for (const std::string& text : held) print("\nHeld: --fail-if '{}'\n", text);
    for (const std::string& text : tripped) print("\nTRIPPED: --fail-if '{}'\n", text);
  }
  return tripped.empty() ? kDone : kTripped;
}

}  // namespace

void add_compare_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<CompareArguments>();
  CLI::App* command = app.add_subcommand(
      "compare", "Two runs, phase by phase, with the noise of the runs themselves");
  command->add_option("a", arguments->a, "the run database to compare with")->required();
  command->add_option("b", arguments->b, "the run database that is compared")->required();
  command->add_option("--fail-if", arguments->fail_if,
                      "exit with 3 if b is so much more or less than a, and the difference is more "
                      "than noise: 'step_time>+3%', 'loss>0.05'; may be repeated");
  command->add_flag("--json", arguments->json, "print one JSON object and nothing else");
  command->footer(
      "Figures are medians of the steps without the first two; noise is three standard errors of "
      "the two medians.\n"
      "Example: sluice compare before.db after.db --fail-if 'step_time>+3%'");
  command->callback([arguments, &exit_code] {
    const Result<int> code = compare(*arguments);
    exit_code = code.ok() ? *code : report_error(wrong_database(code.error()));
  });
}

}  // namespace sluice::cli
