#include <algorithm>
#include <filesystem>

#include "base/figure_text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/run_argument.h"
#include "profiler/report/merged_record.h"

namespace sluice::cli {
namespace {

struct MergeArguments {
  std::vector<std::string> runs;
  std::string output;
  bool force = false;
};

// Where it is found as the folder's record.
Result<std::string> output_of(const MergeArguments& arguments) {
  std::error_code error;
  if (!arguments.output.empty()) return arguments.output;
  if (arguments.runs.size() == 1 && std::filesystem::is_directory(arguments.runs.front(), error)) {
    return (std::filesystem::path(arguments.runs.front()) / "run.db").string();
  }
  return make_error(ErrorCode::config,
                    "where to? Name the database to write with -o, or instead of the ranks' "
                    "databases the run's output folder");
}

// One of those that `sluice record` ran.
Result<bool> is_recorded_process(const std::string& database) {
  ASSIGN_OR_RETURN(const auto reader, rundb::Reader::open(database));
  ASSIGN_OR_RETURN(const std::vector<rundb::MetaRow> meta, reader->meta());
  return std::ranges::find(meta, rundb::kRecordedTogether, &rundb::MetaRow::key) != meta.end();
}

Status merge(const MergeArguments& arguments) {
  ASSIGN_OR_RETURN(const std::string output, output_of(arguments));
  const std::vector<std::string> databases = analyze::databases_of(arguments.runs);
  for (const std::string& database : databases) {
    std::error_code error;
    if (!std::filesystem::equivalent(database, output, error)) continue;
    return make_error(ErrorCode::config, "{}: is read; name another file to write", output);
  }
  ASSIGN_OR_RETURN(const bool is_of_processes, is_recorded_process(databases.front()));
  ASSIGN_OR_RETURN(const std::vector<analyze::RankRecord> records,
                   is_of_processes ? analyze::open_process_records(databases)
                                   : analyze::open_rank_records(databases));
  ProgressLine progress;
  const auto counts = report::merge_records(
      records, output, arguments.force ? report::IfExists::replace : report::IfExists::refuse,
      [&progress](double share) { progress.show(share); });
  progress.finish();
  if (!counts.ok()) return counts.error();
  print("{}: {} {}, {} operations, {} flows, by {}.\n", output, records.size(),
        is_of_processes ? "processes" : "ranks", format_whole(counts->spans),
        format_whole(counts->flows), is_of_processes ? "one clock" : "rank 0's clock");
  return ok_status();
}

}  // namespace

void add_merge_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<MergeArguments>();
  CLI::App* command = app.add_subcommand(
      "merge",
      "The records of all ranks of a run, or of all processes of a program, as one database");
  command
      ->add_option(
          "runs", arguments->runs,
          "the run's output folder, or the database of each rank; the run may be live. Of\n"
          "`sluice record` its database, or those of some processes")
      ->required();
  command->add_option("-o,--output", arguments->output,
                      "the database to write (default: run.db in the run's folder)");
  command->add_flag("--force", arguments->force, "write over what is there");
  command->footer(
      "The window, show, report and export open it; they read the folder without it, too. Tracks\n"
      "begin with the rank; steps, devices and settings are rank 0's.\n"
      "Examples:\n"
      "  sluice merge out/tiny && sluice show out/tiny/run.db\n"
      "  sluice merge out/tiny/rank-*/run.db -o all.db\n"
      "  sluice record -o load.db -- torchrun --nproc-per-node 4 train.py\n"
      "  sluice merge load.db -o all.db");
  command->callback([arguments, &exit_code] {
    const Status status = merge(*arguments);
    if (!status.ok()) exit_code = report_error(wrong_database(status.error()));
  });
}

}  // namespace sluice::cli
