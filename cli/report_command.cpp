#include <filesystem>

#include "base/figure_text.h"
#include "base/shell_quoted.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/number_range.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/run_argument.h"
#include "cli/step_choice.h"
#include "cli/whole_run.h"
#include "core/tune/predicted_changes.h"
#include "profiler/analyze/rank_records.h"
#include "profiler/report/chrome_trace.h"
#include "profiler/report/comparison_report.h"
#include "profiler/report/csv_export.h"
#include "profiler/report/html_report.h"
#include "profiler/report/nsys_export.h"
#include "profiler/report/tensorboard_export.h"

namespace sluice::cli {
namespace {

struct ReportArguments {
  std::string database;
  std::string database_b;  // report: the run to compare with it; "": none
  std::string output;
  std::string format;
  StepChoice choice;
  bool force = false;
  bool predict = true;

  report::IfExists if_exists() const {
    return force ? report::IfExists::replace : report::IfExists::refuse;
  }
};

// Never over the run itself, with --force or without.
Status refuse_to_overwrite_a_run(const ReportArguments& arguments) {
  std::vector<std::string> read = analyze::databases_of({arguments.database});
  read.push_back(arguments.database_b);
  for (const std::string& database : read) {
    std::error_code error;
    if (!std::filesystem::equivalent(database, arguments.output, error)) continue;
    return make_error(ErrorCode::config, "{}: is the run that is read; name another file to write",
                      arguments.output);
  }
  return ok_status();
}

Status write_page(report::OutputFile& file, const std::string& page,
                  const ReportArguments& arguments) {
  RETURN_IF_ERROR(file.write(page));
  RETURN_IF_ERROR(file.close());
  print("{}: {}; open it in any browser.\n", arguments.output,
        format_bytes(static_cast<std::int64_t>(page.size())));
  return ok_status();
}

Status write_comparison(const ReportArguments& arguments) {
  if (!analyze::rank_databases_in(arguments.database).empty()) {
    return make_error(ErrorCode::config,
                      "{0}: has the records of several ranks, and one record is compared with "
                      "another; name one of them, as {0}/rank-0/run.db",
                      arguments.database);
  }
  RETURN_IF_ERROR(refuse_to_overwrite_a_run(arguments));
  ASSIGN_OR_RETURN(report::OutputFile file,
                   report::OutputFile::create(arguments.output, arguments.if_exists()));
  ASSIGN_OR_RETURN(const std::string page,
                   report::comparison_report(arguments.database, arguments.database_b));
  return write_page(file, page, arguments);
}

Status write_report(const ReportArguments& arguments) {
  if (!arguments.database_b.empty()) return write_comparison(arguments);
  RETURN_IF_ERROR(refuse_to_overwrite_a_run(arguments));
  // Refused before the work, not after it.
  ASSIGN_OR_RETURN(report::OutputFile file,
                   report::OutputFile::create(arguments.output, arguments.if_exists()));
  ASSIGN_OR_RETURN(WholeRun run, WholeRun::open(arguments.database));
  report::Predict predicts;
  if (arguments.predict) {
    predicts = [&] { return tune::predict(run.own_database()); };
  }
  ASSIGN_OR_RETURN(const std::string page, report::html_report(run.reader(), predicts));
  return write_page(file, page, arguments);
}

// "steps 11 to 20, "; "" for all of a run.
std::string part_text(const report::RunPart& part) {
  if (part.is_whole()) return "";
  const std::int64_t first = part.first_step_id + 1;
  const std::int64_t last = part.last_step_id + 1;
  return first == last ? fmt::format("step {}, ", first)
                       : fmt::format("steps {} to {}, ", first, last);
}

Status export_chrome(rundb::Reader& reader, const ReportArguments& arguments,
                     const report::RunPart& part, const report::OnProgress& on_progress) {
  ASSIGN_OR_RETURN(report::OutputFile file,
                   report::OutputFile::create(arguments.output, arguments.if_exists(),
                                              report::compression_of(arguments.output)));
  ASSIGN_OR_RETURN(const report::ChromeTraceCounts counts,
                   report::write_chrome_trace(reader, file, part, on_progress));
  RETURN_IF_ERROR(file.close());
  if (counts.flows_left_out > 0) {
    fmt::print(
        stderr,
        "sluice: warning: {} of {} flows were left out: their cause is not in the record, or "
        "more than half a million operations before them\n",
        counts.flows_left_out, counts.flows + counts.flows_left_out);
  }
  if (counts.spans == 0)
    fmt::print(stderr, "sluice: warning: no operation of these steps was recorded\n");
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(arguments.output, error);
  print("{}: {}{}, {} operations, {} flows; open it at ui.perfetto.dev or chrome://tracing.\n",
        arguments.output, part_text(part), format_bytes(static_cast<std::int64_t>(bytes)),
        format_whole(counts.spans), format_whole(counts.flows));
  return ok_status();
}

Status export_tensorboard(rundb::Reader& reader, const ReportArguments& arguments,
                          const report::RunPart& part, const report::OnProgress& on_progress) {
  ASSIGN_OR_RETURN(const report::TensorboardCounts counts,
                   report::export_tensorboard(reader, arguments.output, arguments.if_exists(), part,
                                              on_progress));
  if (counts.steps == 0)
    fmt::print(stderr, "sluice: warning: no step of this run has ended: the curves are empty\n");
  print("{}: {}{} scalars; open it with tensorboard --logdir {}\n", counts.file, part_text(part),
        format_whole(counts.scalars), shell_quoted(arguments.output));
  if (!counts.absent.empty())
    print("No curve, since no step has a value: {}\n", fmt::join(counts.absent, ", "));
  return ok_status();
}

Status write_export(const ReportArguments& arguments) {
  RETURN_IF_ERROR(refuse_to_overwrite_a_run(arguments));
  ASSIGN_OR_RETURN(WholeRun run, WholeRun::open(arguments.database));
  rundb::Reader& reader = run.reader();
  ASSIGN_OR_RETURN(const report::RunPart part, chosen_part(reader, arguments.choice));
  ProgressLine progress;
  const report::OnProgress on_progress = [&progress](double share) { progress.show(share); };
  Status status;
  if (arguments.format == "chrome") {
    status = export_chrome(reader, arguments, part, on_progress);
  } else if (arguments.format == "csv") {
    status = report::export_csv(reader, arguments.output, arguments.if_exists(), part, on_progress);
    if (status.ok()) print("{}: {}a CSV file for each table.\n", arguments.output, part_text(part));
  } else if (arguments.format == "tensorboard") {
    status = export_tensorboard(reader, arguments, part, on_progress);
  } else {
    status =
        report::export_nsys(reader, arguments.output, arguments.if_exists(), part, on_progress);
    if (status.ok())
      print("{}: {}tables as Nsight Systems names them.\n", arguments.output, part_text(part));
  }
  progress.finish();
  return status;
}

void add_common(CLI::App* command, const std::shared_ptr<ReportArguments>& arguments) {
  add_run_argument(*command, "database", arguments->database,
                   "the run database, or its folder, also of a run of several ranks, which are "
                   "read as one; the run may be live",
                   FolderOfRanks::allow);
  command->add_flag("--force", arguments->force, "write over what is there");
}

}  // namespace

void add_report_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command = app.add_subcommand(
      "report",
      "A run as one HTML file: why a step takes as long, curves, links, a timeline; "
      "or two runs compared");
  add_common(command, arguments);
  take_database_of(
      *command->add_option("b", arguments->database_b,
                           "another run, or its folder: the page then compares it (B) with the "
                           "first (A)"));
  command->add_option("-o,--output", arguments->output, "the HTML file to write")->required();
  command->add_flag("!--no-predict", arguments->predict,
                    "do not simulate what settings would gain (which takes a second or so; the "
                    "page of a comparison has no predictions)");
  command->footer(
      "Example: sluice report out/tiny/run.db -o report.html\n"
      "         sluice report out/four-ranks -o report.html\n"
      "         sluice report before/run.db after/run.db -o comparison.html");
  command->callback([arguments, &exit_code] {
    const Status status = write_report(*arguments);
    if (!status.ok()) exit_code = report_error(wrong_database(status.error()));
  });
}

void add_export_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command = app.add_subcommand("export", "A run for other tools");
  add_common(command, arguments);
  command
      ->add_option(
          "--format", arguments->format,
          "chrome: JSON in the Trace Event Format, for Perfetto, compressed where the output's "
          "name ends in .gz; csv: a folder with a file for each table; nsys: SQLite with Nsight "
          "Systems' table names; tensorboard: a folder with an event file of TensorBoard's")
      ->required()
      ->check(one_of({"chrome", "csv", "nsys", "tensorboard"}));
  command
      ->add_option("-o,--output", arguments->output,
                   "the file, or for csv and tensorboard the folder, to write")
      ->required();
  CLI::Option* steps = command->add_option(
      "--steps", arguments->choice.steps,
      "A..B: only these steps, whole, and what was under way in them; the first is 1");
  command->add_option("--last", arguments->choice.last, "only the last N steps")
      ->check(at_least(1))
      ->excludes(steps);
  command->footer(
      "Examples:\n"
      "  sluice export out/tiny/run.db --format chrome --last 10 -o trace.json.gz\n"
      "  sluice export out/tiny/run.db --format tensorboard -o logs/tiny");
  command->callback([arguments, &exit_code] {
    const Status status = write_export(*arguments);
    if (!status.ok()) exit_code = report_error(wrong_database(status.error()));
  });
}

}  // namespace sluice::cli
