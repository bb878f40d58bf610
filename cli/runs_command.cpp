// `sluice runs`: many runs as one table, in the terminal, as CSV, JSON and a page with curves.

#include <filesystem>

#include "base/figure_text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/runs_text.h"
#include "cli/terminal.h"
#include "profiler/report/csv_export.h"
#include "profiler/report/runs_report.h"
#include "profiler/runs/run_table.h"

namespace sluice::cli {
namespace {

using runs::Column;
using runs::RunFigures;

constexpr const char* kDefaultFolder = "out";
constexpr TimeNs kBudgetOfRun = 2'000'000'000;  // then figures of it are left out

struct RunsArguments {
  std::vector<std::string> paths;
  std::string sort = "-when";
  std::vector<std::string> where;
  std::string columns;
  std::string csv;
  std::string page;
  bool json = false;
  bool force = false;
};

struct Runs {
  std::vector<RunFigures> rows;
  std::size_t found_count = 0;
  bool is_whole = true;
};

Result<Runs> read_runs(const RunsArguments& arguments) {
  const bool is_default = arguments.paths.empty();
  const auto found =
      runs::runs_of(is_default ? std::vector<std::string>{kDefaultFolder} : arguments.paths);
  if (!found.ok() && is_default) {
    return make_error(
        ErrorCode::not_found,
        "there is no folder {}/ here, where runs lie by default; name a folder or run "
        "databases",
        kDefaultFolder);
  }
  if (!found.ok()) return found.error();
  Runs runs{.rows = {}, .found_count = found->paths.size(), .is_whole = found->is_whole};
  ProgressLine progress;
  for (const std::string& path : found->paths) {
    progress.show(static_cast<double>(runs.rows.size()) / static_cast<double>(found->paths.size()),
                  "reading runs");
    runs.rows.push_back(runs::read_figures(path, {.stops = runs::stops_after(kBudgetOfRun)}));
  }
  progress.finish();
  RETURN_IF_ERROR(runs::keep_runs(runs.rows, arguments.where));
  RETURN_IF_ERROR(runs::sort_runs(runs.rows, arguments.sort));
  return runs;
}

// "path,loss,buffers"; "all".
Result<std::vector<Column>> chosen_columns(const std::string& names,
                                           std::span<const RunFigures> runs) {
  const std::vector<Column> all = runs::all_columns(runs);
  if (names == "all") return all;
  std::vector<Column> columns;
  for (std::size_t at = 0; at <= names.size();) {
    const std::size_t end = std::min(names.find(',', at), names.size());
    ASSIGN_OR_RETURN(columns.emplace_back(), runs::column_named(all, names.substr(at, end - at)));
    at = end + 1;
  }
  return columns;
}

// All figures, and the settings that differ.
std::vector<Column> columns_of_files(std::span<const RunFigures> runs) {
  std::vector<Column> columns = runs::figure_columns();
  for (const Column& setting : runs::differing_settings(runs)) columns.push_back(setting);
  return columns;
}

std::string csv_text(const Runs& runs, std::span<const Column> columns, const char* line_end) {
  std::string text;
  for (const Column& column : columns)
    text += (text.empty() ? "" : ",") + report::csv_field(column.key);
  text += line_end;
  for (const RunFigures& run : runs.rows) {
    std::string line;
    for (const Column& column : columns)
      line += (&column == columns.data() ? "" : ",") + report::csv_field(cell_of(run, column));
    text += line + line_end;
  }
  return text;
}

Status write_runs_file(const std::string& path, const std::string& text, bool force) {
  const report::IfExists if_exists = force ? report::IfExists::replace : report::IfExists::refuse;
  ASSIGN_OR_RETURN(report::OutputFile file, report::OutputFile::create(path, if_exists));
  RETURN_IF_ERROR(file.write(text));
  return file.close();
}

nlohmann::ordered_json json_of(const rundb::Cell& cell) {
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return *whole;
  if (const auto* real = std::get_if<double>(&cell)) return *real;
  if (const auto* words = std::get_if<std::string>(&cell)) return *words;
  return nullptr;
}

void print_json(const Runs& runs) {
  nlohmann::ordered_json all = {{"runs", nlohmann::ordered_json::array()},
                                {"differing_settings", nlohmann::ordered_json::array()},
                                {"is_whole", runs.is_whole}};
  for (const Column& column : runs::differing_settings(runs.rows))
    all["differing_settings"].push_back(column.key);
  for (const RunFigures& run : runs.rows) {
    nlohmann::ordered_json row;
    for (const Column& column : runs::figure_columns())
      row[column.key] = json_of(cell_of(run, column));
    row["marks"] = run.marks;
    row["left_out"] = run.left_out;
    row["bytes_steps"] = run.bytes ? nlohmann::ordered_json(run.bytes->steps) : nullptr;
    row["settings"] = run.settings;
    all["runs"].push_back(std::move(row));
  }
  print_lines(json_text(all, 2) + "\n");
}

void print_table(const Runs& runs, std::span<const Column> columns, Room room) {
  const int width = terminal_columns();
  const RunsText text = runs_text(runs.rows, columns, width, room);
  print_lines(text.table);
  const std::string remarks = remarks_text(runs.rows, width);
  if (!remarks.empty()) print_lines("\n" + remarks);
  if (!text.left_out.empty()) {
    print_lines("\n" + wrapped(fmt::format("No room for: {} (--columns, --csv or -o has them).",
                                           fmt::join(text.left_out, ", ")),
                               width, "  "));
  }
  if (!runs.is_whole) {
    print_lines(
        wrapped("There are more runs, or deeper folders, than were looked at; name a folder "
                "further in.",
                width, "  "));
  }
}

Status write_runs_page(const Runs& runs, const RunsArguments& arguments) {
  ASSIGN_OR_RETURN(const std::string page, report::runs_report(runs.rows));
  RETURN_IF_ERROR(write_runs_file(arguments.page, page, arguments.force));
  print("{}: {} runs, {}; open it in any browser.\n", arguments.page, runs.rows.size(),
        format_bytes(static_cast<std::int64_t>(page.size())));
  return ok_status();
}

Status refuse_to_overwrite_any(const Runs& runs, const std::string& output) {
  for (const RunFigures& run : runs.rows) {
    std::error_code error;
    if (!std::filesystem::equivalent(runs::database_of_run(run.path), output, error)) continue;
    return make_error(ErrorCode::config, "{}: is a run that is read; name another file to write",
                      output);
  }
  return ok_status();
}

Status show_runs(const RunsArguments& arguments) {
  ASSIGN_OR_RETURN(const Runs runs, read_runs(arguments));
  std::vector<Column> columns = columns_of_files(runs.rows);
  if (!arguments.columns.empty()) {
    ASSIGN_OR_RETURN(columns, chosen_columns(arguments.columns, runs.rows));
  }
  if (arguments.json) {
    print_json(runs);
    return ok_status();
  }
  if (!arguments.csv.empty() && arguments.csv != "-") {
    RETURN_IF_ERROR(refuse_to_overwrite_any(runs, arguments.csv));
    RETURN_IF_ERROR(
        write_runs_file(arguments.csv, csv_text(runs, columns, "\r\n"), arguments.force));
    print("{}: {} runs.\n", arguments.csv, runs.rows.size());
  } else if (!arguments.csv.empty()) {
    print_lines(csv_text(runs, columns, "\n"));
  }
  if (!arguments.page.empty()) {
    RETURN_IF_ERROR(refuse_to_overwrite_any(runs, arguments.page));
    return write_runs_page(runs, arguments);
  }
  if (!arguments.csv.empty()) return ok_status();
  if (runs.rows.empty()) {
    print_lines(wrapped(runs.found_count == 0
                            ? std::string("There is no run database.")
                            : fmt::format("None of {} runs holds every --where.", runs.found_count),
                        terminal_columns(), ""));
    return ok_status();
  }
  const bool is_chosen = !arguments.columns.empty();
  print_table(runs, is_chosen ? columns : columns_of_table(runs.rows),
              is_chosen ? Room::any : Room::of_the_terminal);
  return ok_status();
}

}  // namespace

void add_runs_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<RunsArguments>();
  CLI::App* command = app.add_subcommand(
      "runs",
      "Many runs as one table: how far each came, what it reached, how its settings differ");
  command->add_option("paths", arguments->paths,
                      "folders, which are searched, and run databases (default: out/)");
  command->add_option("--sort", arguments->sort,
                      "a column's key; '-loss': the largest first (default: -when, the newest)");
  command
      ->add_option("--where", arguments->where,
                   "only runs that hold it: 'method=csd', 'step_time<2s', 'loss<=3', "
                   "'state!=live', 'path~tiny' (a part of the text); may be repeated")
      ->allow_extra_args(false);
  command->add_option("--columns", arguments->columns,
                      "keys, as 'path,loss,step_time,buffers'; any setting is one; all: every one");
  command->add_option("--csv", arguments->csv, "write the table there; -: to the terminal");
  command->add_option("-o,--output", arguments->page,
                      "an HTML page with the table and curves of up to eight runs laid over each "
                      "other");
  command->add_flag("--json", arguments->json, "print one JSON object and nothing else");
  command->add_flag("--force", arguments->force, "write over what is there");
  command->footer(
      "A step's time is the median of the steps since the last change of a knob, by the run's own "
      "clock; its noise is three standard errors. Bytes are of the last eight steps or fewer. Of "
      "the settings those are shown in which the runs differ.\n"
      "Examples:\n"
      "  sluice runs\n"
      "  sluice runs out/ --sort step_time --where method=csd\n"
      "  sluice runs before.db after.db other/ --columns path,loss,buffers\n"
      "  sluice runs out/ --csv runs.csv\n"
      "  sluice runs out/ -o runs.html");
  command->callback([arguments, &exit_code] {
    const Status status = show_runs(*arguments);
    if (!status.ok()) exit_code = report_error(wrong_database(status.error()));
  });
}

}  // namespace sluice::cli
