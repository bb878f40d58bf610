#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/number_range.h"
#include "cli/output.h"
#include "cli/replay_report.h"
#include "cli/run_argument.h"
#include "cli/terminal.h"
#include "core/answers/replay.h"
#include "core/replay/what_if_answer.h"

namespace sluice::cli {
namespace {

using replay::Change;
using replay::ChangeKind;

constexpr int kDrivesMax = 1024;

struct ReplayArguments {
  std::string database;
  std::vector<std::string> links;
  std::vector<std::string> compressed;
  std::vector<std::string> without;
  std::int32_t drives = 0;
  bool on_csd = false;
  std::int32_t csd_count = 0;
  std::string platform;
  bool json = false;
};

Result<Change> csd_of(const ReplayArguments& arguments) {
  Change change{.kind = ChangeKind::on_csd, .text = {}, .name = {}};
  if (!arguments.platform.empty()) {
    ASSIGN_OR_RETURN(const platform::Platform platform,
                     platform::load_platform(arguments.platform));
    ASSIGN_OR_RETURN(change, replay::csd_change(platform, arguments.csd_count));
  }
  if (arguments.csd_count > 0) change.count = arguments.csd_count;
  change.text = "--on-csd";
  if (!arguments.platform.empty())
    change.text += " on " + std::filesystem::path(arguments.platform).stem().string();
  if (arguments.csd_count > 0) change.text += fmt::format(" --csd {}", arguments.csd_count);
  return change;
}

Result<std::vector<Change>> changes_of(const ReplayArguments& arguments) {
  std::vector<Change> changes;
  for (const std::string& text : arguments.links) {
    ASSIGN_OR_RETURN(const Change change, replay::parse_link_change(text));
    changes.push_back(change);
  }
  if (arguments.drives > 0) {
    changes.push_back({.kind = ChangeKind::drives,
                       .text = fmt::format("--drives {}", arguments.drives),
                       .name = {},
                       .count = arguments.drives});
  }
  if (arguments.on_csd) {
    ASSIGN_OR_RETURN(const Change change, csd_of(arguments));
    changes.push_back(change);
  }
  for (const std::string& text : arguments.compressed) {
    ASSIGN_OR_RETURN(const Change change, replay::parse_compression(text));
    changes.push_back(change);
  }
  for (const std::string& name : arguments.without) {
    changes.push_back({.kind = ChangeKind::without, .text = "--without " + name, .name = name});
  }
  return changes;
}

Result<int> replay_run(const ReplayArguments& arguments) {
  ASSIGN_OR_RETURN(const std::vector<Change> changes, changes_of(arguments));
  ASSIGN_OR_RETURN(const auto reader, of_database(rundb::Reader::open(arguments.database)));
  ASSIGN_OR_RETURN(const replay::ReplayAnswer answer,
                   of_database(replay::replay_record(*reader, changes)));
  if (arguments.json) {
    print_lines(json_text(answers::to_json(answer), 2) + "\n");
  } else {
    print_lines(replay_text(answer, terminal_columns()));
  }
  return !changes.empty() && !answer.why_not.empty() ? kFailed : kDone;
}

void add_changes(CLI::App& command, ReplayArguments& arguments) {
  command.add_option("--link", arguments.links,
                     "NAME=x2, NAME=x0.5 or NAME=3GB/s: a link as many times as fast, or at a "
                     "rate; 'drive' is every drive's; may be repeated");
  command
      .add_option("--drives", arguments.drives,
                  "each transfer spread evenly over so many drives like those of the record")
      ->check(number_range(1, kDrivesMax));
  CLI::Option* on_csd = command.add_flag("--on-csd", arguments.on_csd,
                                         "read, update and write the state within the drives");
  command.add_option("--csd", arguments.csd_count, "with --on-csd: so many of them")
      ->check(number_range(1, kDrivesMax))
      ->needs(on_csd);
  command
      .add_option("--platform", arguments.platform,
                  "with --on-csd: number and internal links of this machine's devices "
                  "(PLATFORM.toml); else the drives of the record")
      ->needs(on_csd);
  command.add_option("--compress", arguments.compressed,
                     "NAME=0.1: operations of that name move this share of their bytes; may be "
                     "repeated");
  command.add_option("--without", arguments.without,
                     "NAME: operations of that name take no time, an upper bound of what is to be "
                     "gained from them; may be repeated");
}

}  // namespace

void add_replay_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ReplayArguments>();
  CLI::App* command = app.add_subcommand(
      "replay", "Any recorded run again in simulated time: what another machine would do to it");
  add_run_argument(*command, "run", arguments->database, "the run database (RUN.db)");
  add_changes(*command, *arguments);
  command->add_flag("--json", arguments->json, "print one JSON object and nothing else");
  command->footer(
      "Takes the record of any program, also one of sluice record or of the C interface, as it\n"
      "stands: its operations, what each waited for, and how fast its links were. The first line\n"
      "is the error on the machine of the record itself. Above 15 %, or with 30 % of the time in\n"
      "no operation, nothing is said of other machines (exit code 1). Changes add up; each is a\n"
      "row, and all together the last one. sluice simulate --like and tune plan a run of sluice\n"
      "train anew, with other settings, too; a replay keeps the program's order.\n"
      "Examples:\n"
      "  sluice replay run.db\n"
      "  sluice replay run.db --link host=x2 --link drive=x0.5\n"
      "  sluice replay run.db --drives 4 --compress gradient_down=0.1\n"
      "  sluice replay run.db --on-csd --platform sample_models/platforms/smartssd-a5000.toml\n"
      "  sluice replay run.db --without write --json");
  command->callback([arguments, &exit_code] {
    const Result<int> code = replay_run(*arguments);
    exit_code = code.ok() ? *code : report_error(code.error());
  });
}

}  // namespace sluice::cli
