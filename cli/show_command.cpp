#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "base/escaped_text.h"
#include "base/figure_text.h"
#include "base/kernel_text.h"
#include "base/words.h"
#include "cli/answers_text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/explanation_text.h"
#include "cli/number_range.h"
#include "cli/output.h"
#include "cli/ranks_text.h"
#include "cli/run_argument.h"
#include "cli/samples_text.h"
#include "cli/step_choice.h"
#include "cli/stretches_text.h"
#include "cli/terminal.h"
#include "cli/verdict_text.h"
#include "core/tune/predicted_changes.h"
#include "profiler/answers/run_json.h"
#include "storage/rundb/recording_now.h"

namespace sluice::cli {
namespace {

using answers::RunAnswer;

struct ShowArguments {
  std::vector<std::string> databases;  // of one run: one, or one a rank
  std::int64_t last = 10;
  std::string step;  // "N" or "A..B": explained; empty: none
  bool samples = false;
  bool predict = true;
  bool json = false;
};

void print_losses(const RunAnswer& shown, int columns) {
  const analyze::Answer& answer = shown.analysis.answers.front();
  if (answer.outcome == analyze::Outcome::nothing_found)
    print_lines(wrapped(analyze::losses_sentence(answer), columns, "  "));
  if (shown.losses.empty()) return;
  print_lines(
      amber(wrapped("LOST while recording (what follows is not the whole run):", columns, "")));
  for (const rundb::StatRow& stat : shown.losses) {
    print_lines("  " + wrapped(fmt::format("{}: {}, {}", stat.name, format_whole(stat.value),
                                           stat.description),
                               columns - 2, "    "));
  }
}

// A simulated step has no loss.
std::string figure(double value) { return std::isnan(value) ? "-" : fmt::format("{:.4f}", value); }

// A simulated step has no learning rate.
std::string rate(double lr) { return std::isnan(lr) ? "-" : fmt::format("{:.3g}", lr); }

// As many as steps are listed, the last ones.
void print_validations(const RunAnswer& shown, std::int64_t last, int columns) {
  const auto count = std::ssize(shown.validations);
  std::string losses;
  for (std::int64_t i = std::max<std::int64_t>(0, count - last); i < count; ++i) {
    const rundb::ValidationRow& row = shown.validations[static_cast<std::size_t>(i)];
    const std::string accuracy =
        std::isnan(row.accuracy) ? "" : fmt::format(", accuracy {:.1f} %", 100 * row.accuracy);
    losses += fmt::format("{}{} (step {}{})", losses.empty() ? "" : ", ", figure(row.loss),
                          row.step_id + 1, accuracy);
  }
  if (losses.empty()) return;
  print_lines("  " + wrapped("Validation loss: " + losses, columns - 2, "    "));
}

// "-": the program that computes counts no tokens.
std::string tokens_a_second(const rundb::StepRow& step) {
  if (step.tokens == 0) return "-";
  return format_count(static_cast<double>(step.tokens) * 1e9 /
                      static_cast<double>(std::max<TimeNs>(1, step.dur)));
}

void print_steps(const RunAnswer& shown, std::int64_t last, int columns) {
  if (shown.steps.empty()) {
    print("\nNo step has ended.\n");
    return;
  }
  const bool is_wide = columns >= 50;
  const bool has_rates = columns >= 64;
  print("\n  step      loss{}{}      time   tokens/s\n", is_wide ? "   grad norm" : "",
        has_rates ? "        lr" : "");
  const auto count = static_cast<std::int64_t>(shown.steps.size());
  for (std::int64_t i = std::max<std::int64_t>(0, count - last); i < count; ++i) {
    const rundb::StepRow& step = shown.steps[static_cast<std::size_t>(i)];
    print("  {:>4}  {:>8}{}{}  {:>8}  {:>9}{}\n", step.id + 1, figure(step.loss),
          is_wide ? fmt::format("  {:>10}", figure(step.grad_norm)) : "",
          has_rates ? fmt::format("  {:>8}", rate(step.lr)) : "", format_duration(step.dur),
          tokens_a_second(step), step.skipped ? (is_wide ? "  skipped: overflow" : " x") : "");
  }
}

// Where a question about one of them is answered.
void print_how_to_explain(const RunAnswer& shown, int columns) {
  if (shown.steps.empty() || !shown.analysis.has_spans()) return;
  const std::string slowest =
      shown.analysis.slowest ? fmt::format("; the slowest is {}", shown.analysis.slowest->step + 1)
                             : "";
  print_lines("  " +
              wrapped(fmt::format("--step N explains a step, --step A..B several{}.", slowest),
                      columns - 2, "    "));
}

void print_how_to_see_samples(const RunAnswer& shown, int columns) {
  if (!shown.samples.are_there) return;
  print_lines("  " + wrapped("--samples shows which functions ran, and how long threads waited.",
                             columns - 2, "    "));
}

constexpr int kNameColumns = 16;  // the longest of our stages has as many or fewer
// Lines for names that are no stage of ours: a GPU has a hundred kernels, and most take nothing.
constexpr int kOtherNamesMax = 15;

// The colour that the database has for a stage; what others recorded has none.
std::optional<std::uint32_t> colour_of_stage(const RunAnswer& shown, const std::string& name) {
  for (const auto& [id, stage] : shown.info.stages) {
    const auto said = shown.info.strings.find(id);
    if (said != shown.info.strings.end() && said->second == name) return parse_colour(stage.colour);
  }
  return std::nullopt;
}

// A name that is too long for its column has a line of its own.
std::string name_column(const RunAnswer& shown, const std::string& name, int columns) {
  const std::size_t size_max = static_cast<std::size_t>(columns) - 2;
  const std::string text = escaped_for_terminal(short_kernel_name(name, size_max));
  if (columns_of(text) > kNameColumns) return fmt::format("{}\n  {:{}}", text, "", kNameColumns);
  const std::optional<std::uint32_t> colour = colour_of_stage(shown, name);
  return padded(colour ? painted(text, *colour) : text, kNameColumns);
}

// The names beyond `kOtherNamesMax`, in one line, so that nothing is missing unsaid.
void print_left_out(const rundb::SpanTotals& sum, std::int64_t name_count, int columns) {
  if (name_count == 0) return;
  print_lines(
      "  " +
      wrapped(fmt::format("and {} more names, {} in {} operations (--json lists them)", name_count,
                          format_duration(sum.dur_total), format_whole(sum.count)),
              columns - 2, "  "));
}

void print_spans(const RunAnswer& shown, int columns) {
  if (shown.spans.empty()) {
    print_lines("\n" +
                wrapped("No operation is in the record, or none has a name.", columns, "  "));
    return;
  }
  print_lines("\n" + wrapped(fmt::format("{} (operations overlap, so the sum exceeds the run):",
                                         words::kStatistics),
                             columns, "  "));
  const bool is_wide = columns >= 72;
  print("  {:<16}{} {:>10}{} {:>10}{}\n", "stage", is_wide ? "    count" : "", "total",
        is_wide ? "       mean" : "", "longest", is_wide ? "       bytes" : "");
  int other_count = 0;
  std::int64_t left_out_count = 0;
  rundb::SpanTotals left_out;
  for (const rundb::SpanTotals& span : shown.spans) {
    if (!colour_of_stage(shown, span.name) && ++other_count > kOtherNamesMax) {
      ++left_out_count;
      left_out.count += span.count;
      left_out.dur_total += span.dur_total;
      continue;
    }
    print_lines(fmt::format(
        "  {}{} {:>10}{} {:>10}{}\n", name_column(shown, span.name, columns),
        is_wide ? fmt::format(" {:>8}", format_whole(span.count)) : "",
        format_duration(span.dur_total),
        is_wide ? fmt::format(" {:>10}", format_duration(span.dur_mean)) : "",
        format_duration(span.dur_max),
        is_wide ? fmt::format(" {:>11}", span.bytes > 0 ? format_bytes(span.bytes) : "-") : ""));
  }
  print_left_out(left_out, left_out_count, columns);
}

// As much of the links of one kind ("csd3.drive" of "drive", "rank 2: host" of "host") as one line
// can say.
struct LinkLine {
  std::string name;
  std::array<double, 2> least{};  // by direction: bytes a step, or of a run without steps all
  std::array<double, 2> most{};
};

std::string kind_of_link(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot != std::string::npos) return name.substr(dot + 1);
  const std::size_t colon = name.starts_with("rank ") ? name.find(": ") : std::string::npos;
  return colon == std::string::npos ? name : name.substr(colon + 2);
}

std::vector<LinkLine> link_lines(const RunAnswer& shown) {
  std::map<std::string, std::map<std::string, std::array<double, 2>>> by_kind;
  for (const rundb::LinkTotals& link : shown.links) {
    const std::string kind = shown.steps.empty() ? link.link : kind_of_link(link.link);
    by_kind[kind][link.link][link.direction == rundb::Direction::read ? 0 : 1] =
        shown.steps.empty() ? static_cast<double>(link.bytes) : link.bytes_per_step_mean;
  }
  std::vector<LinkLine> lines;
  for (const auto& [kind, links] : by_kind) {
    LinkLine line;
    line.name =
        links.size() == 1 ? links.begin()->first : fmt::format("{} ({})", kind, links.size());
    line.least = links.begin()->second;
    for (const auto& [name, bytes] : links) {
      for (std::size_t d = 0; d < 2; ++d) {
        line.least[d] = std::min(line.least[d], bytes[d]);
        line.most[d] = std::max(line.most[d], bytes[d]);
      }
    }
    lines.push_back(line);
  }
  return lines;
}

std::string byte_range(double least, double most) {
  if (most <= 0) return "-";
  const std::string most_text = format_bytes(static_cast<std::int64_t>(most));
  const std::string least_text = format_bytes(static_cast<std::int64_t>(least));
  return least_text == most_text ? most_text : least_text + " to " + most_text;
}

void print_links(const RunAnswer& shown, int columns) {
  if (shown.links.empty()) {
    print_lines("\n" + wrapped("No link is known to have moved bytes.", columns, "  "));
    return;
  }
  const bool is_wide = columns >= 68;
  print("\n{}, payload:\n", shown.steps.empty() ? "Bytes" : "Bytes a step");
  if (is_wide) print("  {:<20} {:>22} {:>22}\n", "link", "read", "write");
  for (const LinkLine& line : link_lines(shown)) {
    const std::string read = byte_range(line.least[0], line.most[0]);
    const std::string write = byte_range(line.least[1], line.most[1]);
    if (is_wide) {
      print("  {:<20} {:>22} {:>22}\n", line.name, read, write);
    } else {
      print("  {}\n    read  {:>22}\n    write {:>22}\n", line.name, read, write);
    }
  }
  std::int64_t padding_bytes = 0;
  for (const rundb::LinkTotals& link : shown.links) padding_bytes += link.padding_bytes;
  print_lines(
      "  " + wrapped(fmt::format("(and padding to whole pages: {} over all links in the whole run)",
                                 format_bytes(padding_bytes)),
                     columns - 2, "  "));
}

// "48 ms a step for activations to leave (layer 3: 20 ms, layer 2: 15 ms and 2 more)".
std::string waits_of_layers(std::vector<analyze::LayerWaits> layers,
                            TimeNs analyze::LayerWaits::* ns, std::size_t steps) {
  constexpr std::size_t kNamed = 3;
  std::erase_if(layers, [ns](const analyze::LayerWaits& layer) { return layer.*ns == 0; });
  std::ranges::stable_sort(layers, std::greater<>(), ns);
  const auto a_step = [steps](TimeNs sum_ns) {
    return format_duration(sum_ns / static_cast<TimeNs>(std::max<std::size_t>(1, steps)));
  };
  TimeNs sum_ns = 0;
  std::string named;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    sum_ns += layers[i].*ns;
    if (i < kNamed) {
      named +=
          fmt::format("{}layer {}: {}", i == 0 ? "" : ", ", layers[i].layer, a_step(layers[i].*ns));
    }
  }
  if (layers.size() > kNamed) named += fmt::format(" and {} more", layers.size() - kNamed);
  return sum_ns == 0 ? "0 s a step" : fmt::format("{} a step ({})", a_step(sum_ns), named);
}

void print_placement(const RunAnswer& shown, int columns) {
  const std::string placement = shown.meta_value("placement");
  if (placement != "?") print_lines("\n" + wrapped("Placement: " + placement, columns, "  "));
}

void print_activations(const RunAnswer& shown, int columns) {
  const std::string layers = shown.meta_value("activation_layers");
  if (layers != "?" && !layers.empty())
    print_lines("\n" + wrapped("Activations of layers: " + layers, columns, "  "));
  if (shown.waits.empty()) return;
  print_lines("  " + wrapped("Waited for them to leave: " +
                                 waits_of_layers(shown.waits, &analyze::LayerWaits::out_ns,
                                                 shown.steps.size()),
                             columns - 2, "    "));
  print_lines("  " + wrapped("Waited for them to come back: " +
                                 waits_of_layers(shown.waits, &analyze::LayerWaits::back_ns,
                                                 shown.steps.size()),
                             columns - 2, "    "));
}

// Where a run changed its mode; a run in one has said it in its first line.
void print_modes(const RunAnswer& shown, int columns) {
  if (shown.info.mode.stretches.size() < 2) return;
  print("In which mode its steps ran:\n");
  for (const analyze::ModeStretch& stretch : shown.info.mode.stretches) {
    const std::string steps =
        stretch.last_step < 0
            ? fmt::format("from step {} on", stretch.first_step + 1)
            : fmt::format("steps {} to {}", stretch.first_step + 1, stretch.last_step + 1);
    print_lines("  " + wrapped(fmt::format("{:<18} {}", steps, stretch.line), columns - 2,
                               std::string(21, ' ')));
  }
}

void print_head(const RunAnswer& shown, int columns) {
  const std::string mode = shown.info.mode.line();
  print_lines(wrapped(fmt::format("{}: {}", shown.meta_value("name"),
                                  mode.empty() ? "in which mode it ran is not known" : mode),
                      columns, "  "));
  // Another program's record has no model.
  const bool has_model = shown.meta_value("parameters") != "?";
  const std::string model = has_model
                                ? fmt::format("{} parameters on {}; ",
                                              format_count(shown.info.meta_number("parameters", 0)),
                                              shown.meta_value("machine"))
                                : "";
  print_lines(
      wrapped(fmt::format("{}started {}", model, shown.meta_value("started_utc")), columns, "  "));
  if (const std::string from = shown.meta_value("weights"); from != "?") {
    print_lines(wrapped(fmt::format("weights from {}", from), columns, "  "));
  }
  if (const std::string from = shown.meta_value("optimizer_from"); from != "?") {
    print_lines(wrapped(fmt::format("optimizer's state from {}", from), columns, "  "));
  }
  print_modes(shown, columns);
  if (shown.steps.empty()) return;
  const std::int64_t planned = shown.info.planned_step_count();
  if (planned > std::ssize(shown.steps)) {
    const char* now = rundb::is_being_recorded(shown.database) ? "so far" : "ended before its last";
    print_lines(wrapped(fmt::format("{}: {} of {} steps", now,
                                    format_whole(std::ssize(shown.steps)), format_whole(planned)),
                        columns, "  "));
  }
  print_lines(wrapped(
      fmt::format("{} step{}, {} a step{}{}", format_whole(std::ssize(shown.steps)),
                  shown.steps.size() == 1 ? "" : "s", format_duration(shown.median_step_ns()),
                  shown.steps.size() == 1 ? "" : " (median of all)",
                  std::isnan(shown.steps.back().loss)
                      ? ""
                      : fmt::format(", loss {:.4f} -> {:.4f}", shown.steps.front().loss,
                                    shown.steps.back().loss)),
      columns, "  "));
}

void print_text(const RunAnswer& shown, std::int64_t last) {
  const int columns = terminal_columns();
  print_head(shown, columns);
  print_lines(doubts_text(analyze::doubts_of(shown.analysis), columns));
  print_losses(shown, columns);
  if (shown.analysis.ranks) {
    const std::string ranks = ranks_text(*shown.analysis.ranks, columns);
    if (!ranks.empty()) print_lines("\n" + ranks);
    print_lines("  " +
                wrapped("The causes, links and settings below are rank 0's.", columns - 2, "  "));
  }
  const std::string verdict = verdict_text(shown.analysis, shown.predicted, shown.info, columns);
  if (!verdict.empty()) print_lines("\n" + verdict);
  const std::string stretches =
      stretches_text(shown.stretches, shown.info, shown.analysis.lateness, columns);
  if (!stretches.empty()) print_lines("\n" + stretches);
  print_lines("\n" + answers_text(shown.answers(), columns));
  print_steps(shown, last, columns);
  print_how_to_explain(shown, columns);
  print_how_to_see_samples(shown, columns);
  print_validations(shown, last, columns);
  print_spans(shown, columns);
  print_links(shown, columns);
  print_placement(shown, columns);
  print_activations(shown, columns);
}

// The chosen steps alone, with what has to be known of the record.
void print_explanation(const RunAnswer& shown) {
  const int columns = terminal_columns();
  print_head(shown, columns);
  print_lines(doubts_text(analyze::doubts_of(shown.analysis), columns));
  print_losses(shown, columns);
  print_lines("\n" + explanation_text(*shown.explanation, columns));
  const bool has_window = shown.analysis.has_spans();
  print_lines(wrapped(fmt::format("--json has the operations behind each reason{}",
                                  has_window ? "; the window shows them:" : "."),
                      columns, "  "));
  if (!has_window) return;
  const analyze::StepRange& range = shown.explanation->steps;
  const std::string last = range.last > range.first ? fmt::format("..{}", range.last + 1) : "";
  const std::string command =
      fmt::format("sluice-gui {} --step {}{}", shown.database, range.first + 1, last);
  print_lines("  " + command_lines(command, columns, 2) + "\n");
}

// The samples alone, of the chosen steps or of all, with what has to be known of the record.
void print_samples(const RunAnswer& shown) {
  const int columns = terminal_columns();
  print_head(shown, columns);
  print_losses(shown, columns);
  if (shown.analysis.ranks) print_lines(wrapped("The samples are those of rank 0.", columns, "  "));
  print_lines("\n" + samples_text(*shown.samples.said, columns));
}

Status show(const ShowArguments& arguments) {
  answers::RunQuestion question{.databases = arguments.databases,
                                .steps_with_shares = arguments.json ? arguments.last : 0,
                                .wants_samples = arguments.samples};
  if (!arguments.step.empty()) {
    ASSIGN_OR_RETURN(question.explained, analyze::parse_step_range("--step", arguments.step));
  }
  ASSIGN_OR_RETURN(RunAnswer run, answers::ask_run(question));
  if (run.samples.said && !arguments.json) {
    print_samples(run);
    return ok_status();
  }
  if (run.explanation && !arguments.json) {
    print_explanation(run);
    return ok_status();
  }
  if (arguments.predict) run.predicted = tune::predict(run.database);
  if (arguments.json) {
    print_lines(json_text(answers::to_json(run), 2) + "\n");
  } else {
    print_text(run, arguments.last);
  }
  return ok_status();
}

}  // namespace

void add_show_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ShowArguments>();
  CLI::App* command = app.add_subcommand(
      "show", "Steps of a run, where its time went, its bytes, what was not recorded");
  command
      ->add_option(
          "database", arguments->databases,
          "the run database, or its folder; of a run of several ranks those of all, or the "
          "run's output folder; the run may be live")
      ->required();
  command
      ->add_option("--last", arguments->last,
                   "how many steps to list (default 10); with --json also what "
                   "each of them spent its time on")
      ->check(at_least(0));
  command->add_option("--step", arguments->step,
                      "explain one step, N, or several, A..B (the first is 1): what each cause "
                      "took beside a usual step, and why");
  command->add_flag("--samples", arguments->samples,
                    "what threads did on the processors, in all of the run or with --step in those "
                    "steps: which functions ran, how long threads waited; of a run with "
                    "record_samples above 0");
  command->add_flag("!--no-predict", arguments->predict,
                    "do not simulate what settings would gain (which takes a second or so)");
  command->add_flag("--json", arguments->json, "print one JSON object and nothing else");
  command->footer(
      "Examples:\n"
      "  sluice show out/tiny/run.db --last 20\n"
      "  sluice show out/tiny/run.db --step 20\n"
      "  sluice show out/tiny/run.db --samples --step 10..20\n"
      "  sluice show out/tiny                     (OUTPUT of mpirun -n 4 sluice train)");
  command->callback([arguments, &exit_code] {
    const Status status = show(*arguments);
    if (!status.ok()) exit_code = report_error(wrong_database(status.error()));
  });
}

}  // namespace sluice::cli
