#include "cli/calibrate_ranks.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/clock.h"
#include "base/shell_quoted.h"
#include "base/units.h"
#include "cli/calibrate_progress.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/terminal.h"
#include "core/calibrate/ranks/cluster_file.h"
#include "core/collective/open_ranks.h"

namespace sluice::cli {
namespace {

Result<std::string> read_text(const std::string& path) {
  std::error_code error;  // a pipe would be waited for, and what is made takes the file's place
  std::ifstream file;
  if (std::filesystem::is_regular_file(path, error)) file.open(path);
  std::stringstream text;
  text << file.rdbuf();
  if (file.is_open() && file) return text.str();
  return make_error(ErrorCode::not_found,
                    "{}: cannot be read: --ranks adds to a platform file; make it with {} "
                    "calibrate FOLDER -o {}",
                    path, program(), shell_quoted(path));
}

std::string ranks_note(const calibrate::RankFigures& figures) {
  return fmt::format(
      "Measured by sluice calibrate --ranks among {} ranks (in a node x nodes): "
      "medians, the slowest rank counts",
      platform::scope_text(figures.mesh));
}

std::string figures_text(const calibrate::RankFigures& figures) {
  std::string text;
  for (const calibrate::CollectiveFigures& row : figures.rows) {
    const calibrate::CollectiveTime& least = row.times.front();
    const calibrate::CollectiveTime& most = row.times.back();
    const auto rate = [](const calibrate::CollectiveTime& time) {
      return format_rate(static_cast<double>(time.size_bytes) / time.seconds);
    };
    text += fmt::format("  {:<15} {:<7} {:>9} of {:<8} to {:>9} of {}\n",
                        platform::collective_name(row.collective), platform::scope_text(row.group),
                        rate(least), format_bytes(least.size_bytes), rate(most),
                        format_bytes(most.size_bytes));
  }
  return text;
}

nlohmann::ordered_json json_of(const calibrate::CollectiveFigures& row) {
  nlohmann::ordered_json json = {{"operation", platform::collective_name(row.collective)},
                                 {"group", platform::scope_text(row.group)},
                                 {"points", nlohmann::ordered_json::array()}};
  for (const calibrate::CollectiveTime& time : row.times) {
    json["points"].push_back({{"size_bytes", time.size_bytes},
                              {"seconds", time.seconds},
                              {"low", time.low},
                              {"high", time.high},
                              {"rounds", time.round_count}});
  }
  return json;
}

class RankCommand {
 public:
  RankCommand(const RankCalibration& arguments, collective::Communicator& communicator)
      : arguments_(arguments), communicator_(communicator) {}

  Status run() {
    const TimeNs start_ns = monotonic_now_ns();
    // Before anything is measured it is known that the file can be written.
    if (is_first()) RETURN_IF_ERROR(read_platform());
    RETURN_IF_ERROR(communicator_.barrier("platform file"));
    calibrate::CollectiveTimingOptions options;
    options.sizes_bytes = calibrate::usual_sizes_bytes();
    options.seconds_max = arguments_.seconds_max;
    if (is_first()) {
      options.on_progress = [this](std::string_view what, double share, double left_seconds) {
        progress_.show(what, share, left_seconds);
      };
    }
    const auto figures = calibrate::time_collectives(communicator_, options);
    progress_.finish();
    if (!figures.ok()) return figures.error();
    return is_first() ? write(*figures, monotonic_now_ns() - start_ns) : ok_status();
  }

 private:
  bool is_first() const { return communicator_.rank() == 0; }

  Status read_platform() {
    ASSIGN_OR_RETURN(text_, read_text(arguments_.platform));
    RETURN_IF_ERROR(calibrate::check_output(arguments_.platform, calibrate::IfThere::replace));
    ASSIGN_OR_RETURN(platform_, platform::parse_platform(text_, arguments_.platform));
    if (!platform_.cluster || arguments_.if_there == calibrate::IfThere::replace) {
      return ok_status();
    }
    return make_error(ErrorCode::config, "{}: has a [cluster] already; --force replaces it",
                      arguments_.platform);
  }

  Status write(const calibrate::RankFigures& figures, TimeNs dur_ns) const {
    const platform::Cluster* before = platform_.cluster ? &*platform_.cluster : nullptr;
    ASSIGN_OR_RETURN(
        const std::string text,
        calibrate::with_cluster(text_, arguments_.platform,
                                calibrate::measured_cluster(figures, before), ranks_note(figures)));
    RETURN_IF_ERROR(calibrate::write_platform(text, arguments_.platform));
    print_lines(arguments_.json ? json(figures) + "\n"
                                : fitted(report(figures, dur_ns), terminal_columns()));
    return ok_status();
  }

  std::string report(const calibrate::RankFigures& figures, TimeNs dur_ns) const {
    std::string text = fmt::format(
        "Measured in {}: collectives among {} ranks (in a node x nodes).\n\n{}",
        format_duration(dur_ns), platform::scope_text(figures.mesh), figures_text(figures));
    if (figures.skipped_count > 0) {
      text +=
          fmt::format("\nThe time did not allow {} of the largest sizes: --seconds allows more.\n",
                      figures.skipped_count);
    }
    return text + fmt::format("\nWritten: {}", arguments_.platform);
  }

  std::string json(const calibrate::RankFigures& figures) const {
    nlohmann::ordered_json json = {{"platform", arguments_.platform},
                                   {"ranks", platform::scope_text(figures.mesh)},
                                   {"collectives", nlohmann::ordered_json::array()},
                                   {"skipped", figures.skipped_count}};
    for (const auto& row : figures.rows) json["collectives"].push_back(json_of(row));
    return json_text(json, 2);
  }

  const RankCalibration& arguments_;
  collective::Communicator& communicator_;
  std::string text_;  // rank 0, as the next
  platform::Platform platform_;
  CalibrateProgress progress_;
};

}  // namespace

Status calibrate_ranks(const RankCalibration& arguments) {
  ASSIGN_OR_RETURN(const std::unique_ptr<collective::Communicator> communicator,
                   collective::open_ranks({}));
  const Status measured = RankCommand(arguments, *communicator).run();
  if (measured.ok()) return communicator->close();
  if (communicator->rank_count() > 1) communicator->end_all(measured.error());
  return measured;
}

}  // namespace sluice::cli
