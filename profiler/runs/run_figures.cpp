#include "profiler/runs/run_figures.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>

#include "base/figure_text.h"
#include "profiler/analyze/fact_keys.h"
#include "profiler/analyze/lateness.h"
#include "profiler/analyze/rank_records.h"
#include "profiler/analyze/run_data.h"
#include "profiler/analyze/trend.h"
#include "storage/rundb/catalog_reader.h"
#include "storage/rundb/completeness.h"
#include "storage/rundb/query.h"
#include "storage/rundb/reader.h"
#include "storage/rundb/recording_now.h"

namespace sluice::runs {
namespace {

constexpr std::size_t kNoiseFrom = 3;  // steps: fewer do not tell how much they scatter

// Where a run keeps what it makes: another for each run, whatever was set.
constexpr std::array<std::string_view, 3> kPlacesOfOneRun = {"state_dir", "db", "optimizer_state"};
// Facts that somebody chose, beside the settings.
constexpr std::array<std::string_view, 3> kChosenFacts = {"model", "weights", "platform"};

bool is_setting(std::string_view key) {
  if (std::ranges::find(kChosenFacts, key) != kChosenFacts.end()) return true;
  if (std::ranges::find(kPlacesOfOneRun, key) != kPlacesOfOneRun.end()) return false;
  if (std::ranges::find(analyze::kNotSettings, key) != analyze::kNotSettings.end()) return false;
  const auto is_key = [key](const auto& fact) { return fact.first == key; };
  return key != "tensors" && key != "rank" && key != "ranks" &&
         std::ranges::none_of(analyze::kFactKeys, is_key);
}

// "2026-11-25T12:39:44Z" as people read it, to the minute.
std::string minute_of(std::string utc) {
  if (utc.size() < 16) return utc;
  utc[10] = ' ';
  return utc.substr(0, 16);
}

class FigureReader {
 public:
  FigureReader(std::string database, const ReadOptions& options, RunFigures& figures)
      : database_(std::move(database)), options_(options), figures_(figures) {}

  void read() {
    auto opened = rundb::Reader::open(database_);
    if (!opened.ok()) {
      figures_.error = opened.error().message();
      return;
    }
    reader_ = std::move(*opened);
    if (options_.stops) rundb::Query(*reader_).end_if(options_.stops);
    const auto snapshot = reader_->snapshot();
    if (!snapshot.ok()) {
      figures_.error = snapshot.error().message();
      return;
    }
    part("name and settings", [this] { return read_identity(); });
    part("steps", [this] { return read_steps(); });
    part("validation", [this] { return read_validation(); });
    part("state", [this] { return read_state(); });
    part("lost records", [this] { return read_losses(); });
    part("late operations", [this] { return read_lateness(); });
    part("bytes a step", [this] { return read_bytes(); });
    part("missing rows", [this] { return read_completeness(); });
  }

 private:
  void part(const char* figure, const std::function<Status()>& read) {
    if (!figures_.error.empty()) return;
    const Status status = read();
    if (status.ok()) return;
    if (status.error().code() == ErrorCode::cancelled) {
      figures_.left_out.push_back(fmt::format("{}: reading it took too long", figure));
    } else {
      figures_.error = status.error().message();
      figures_.state = RunState::unreadable;
    }
  }

  Status read_identity() {
    ASSIGN_OR_RETURN(info_.meta, reader_->meta());
    ASSIGN_OR_RETURN(const std::vector<rundb::ModeRow> modes, reader_->modes());
    info_.mode = analyze::run_mode(modes);
    ASSIGN_OR_RETURN(info_.knob_changes, reader_->knob_changes());
    ASSIGN_OR_RETURN(info_.devices, rundb::CatalogReader(*reader_).devices());
    figures_.name = info_.meta_value("name");
    figures_.started = minute_of(info_.meta_value("started_utc"));
    figures_.mode = info_.mode.line();
    figures_.device_count = info_.devices.size();
    const auto ranks = static_cast<std::int64_t>(info_.meta_number("ranks", 1));
    figures_.rank_count = std::clamp<std::int64_t>(ranks, 1, 1'000'000);
    for (const rundb::MetaRow& row : info_.meta) {
      if (!is_setting(row.key)) continue;
      const std::string now = info_.value_in_force(row.key);
      figures_.settings[row.key] = now == row.value ? row.value : row.value + " -> " + now;
    }
    return ok_status();
  }

  Status read_steps() {
    ASSIGN_OR_RETURN(steps_, reader_->steps());
    are_steps_read_ = true;
    figures_.step_count = std::ssize(steps_);
    const auto last = std::ranges::find_if(steps_.rbegin(), steps_.rend(),
                                           [](const auto& step) { return !std::isnan(step.loss); });
    if (last != steps_.rend()) figures_.loss = last->loss;
    const std::int64_t changed_at =
        info_.knob_changes.empty() ? 0 : info_.knob_changes.back().step_id;
    const auto skipped = std::ranges::count_if(steps_, &rundb::StepRow::skipped);
    if (skipped > 0) figures_.marks.push_back("skipped steps: " + format_whole(skipped));
    for (const rundb::StepRow& step : steps_) {
      if (step.id >= changed_at) steady_.push_back(step);
    }
    if (steady_.empty()) steady_ = steps_;
    if (steady_.size() > analyze::kSettlingSteps)
      steady_.erase(steady_.begin(), steady_.begin() + analyze::kSettlingSteps);
    std::erase_if(steady_, &rundb::StepRow::skipped);
    judge_times();
    return ok_status();
  }

  void judge_times() {
    std::vector<double> seconds;
    for (const rundb::StepRow& step : steady_)
      seconds.push_back(static_cast<double>(step.dur) / 1e9);
    figures_.steady.steps = seconds.size();
    if (seconds.empty()) return;
    const double median = analyze::median_of(seconds);
    figures_.steady.median_s = median;
    if (seconds.size() >= kNoiseFrom) {
      figures_.steady.noise_s = analyze::noise_of_difference(seconds, std::array{median});
    }
  }

  Status read_validation() {
    ASSIGN_OR_RETURN(const std::vector<rundb::ValidationRow> rows, reader_->validations());
    if (!rows.empty()) figures_.validation_loss = rows.back().loss;
    return ok_status();
  }

  Status read_state() {
    const std::string writer = database_ + std::string(rundb::kWriterLockSuffix);
    std::error_code error;
    if (rundb::is_being_recorded(database_)) {
      figures_.state = RunState::live;
    } else if (std::filesystem::exists(writer, error)) {
      figures_.state = RunState::killed;
    } else if (info_.meta_value("clock") == "simulated") {
      figures_.state = RunState::simulated;
    } else if (!are_steps_read_) {
      figures_.state = RunState::unknown;
    } else {
      figures_.state = RunState::finished;
      if (is_before_its_last_step()) {
        ASSIGN_OR_RETURN(const bool was_killed, lacks_what_is_written_last());
        figures_.state = was_killed ? RunState::killed : RunState::ended_early;
      }
    }
    return ok_status();
  }

  bool is_before_its_last_step() const {
    return info_.planned_step_count() > (steps_.empty() ? 0 : steps_.back().id + 1);
  }

  // A copy of a killed run may lie without the file of its writer; verdicts come as a run ends.
  Result<bool> lacks_what_is_written_last() {
    bool lacks = false;
    RETURN_IF_ERROR(rundb::Query(*reader_).each_row(
        "SELECT EXISTS (SELECT 1 FROM span_run) AND NOT EXISTS (SELECT 1 FROM verdict) AND NOT "
        "EXISTS (SELECT 1 FROM stat WHERE name = 'recording_stopped' AND value > 0)",
        [&lacks](std::span<const rundb::Cell> row) {
          const auto* answer = std::get_if<std::int64_t>(&row[0]);
          lacks = answer != nullptr && *answer != 0;
          return ok_status();
        }));
    return lacks;
  }

  Status read_losses() {
    ASSIGN_OR_RETURN(const std::vector<rundb::StatRow> losses, reader_->losses());
    for (const rundb::StatRow& row : losses)
      figures_.marks.push_back(fmt::format("LOST {}: {}", row.name, format_whole(row.value)));
    return ok_status();
  }

  Status read_lateness() {
    ASSIGN_OR_RETURN(const analyze::Lateness lateness, analyze::lateness_of(*reader_, info_));
    if (lateness.is_late()) figures_.marks.push_back(lateness.short_words());
    return ok_status();
  }

  Status read_bytes() {
    ASSIGN_OR_RETURN(const analyze::RunInfo whole, analyze::load_run_info(*reader_));
    ASSIGN_OR_RETURN(const SampledBytes sampled,
                     sampled_bytes(*reader_, whole, steady_, options_.operations_max));
    figures_.bytes = sampled.bytes;
    if (sampled.operations_refused > 0) {
      figures_.left_out.push_back(
          fmt::format("bytes a step: a step has {} operations, more than are read for a table",
                      format_whole(sampled.operations_refused)));
    } else if (!sampled.bytes && !steady_.empty()) {
      figures_.left_out.emplace_back("bytes a step: no operations are recorded");
    }
    return ok_status();
  }

  Status read_completeness() {
    ASSIGN_OR_RETURN(const rundb::Completeness rows,
                     rundb::completeness_of(*reader_, options_.counted_max));
    if (!rows.is_whole()) figures_.marks.push_back("MISSING " + rows.missing_words());
    return ok_status();
  }

  const std::string database_;
  const ReadOptions& options_;
  RunFigures& figures_;
  std::unique_ptr<rundb::Reader> reader_;
  analyze::RunInfo info_;  // without tracks, links and names
  std::vector<rundb::StepRow> steps_;
  bool are_steps_read_ = false;
  std::vector<rundb::StepRow> steady_;
};

// A run of several ranks is live while one of them is, and was killed if one was.
void add_ranks(const std::vector<std::string>& databases, RunFigures& figures) {
  figures.rank_count = std::max(figures.rank_count, std::ssize(databases));
  if (!figures.error.empty() || figures.state == RunState::live) return;
  for (const std::string& database : databases) {
    std::error_code error;
    const std::string writer = database + std::string(rundb::kWriterLockSuffix);
    if (rundb::is_being_recorded(database)) {
      figures.state = RunState::live;
      return;
    }
    if (std::filesystem::exists(writer, error)) figures.state = RunState::killed;
  }
}

}  // namespace

const char* state_word(RunState state) {
  switch (state) {
    case RunState::live:
      return "live";
    case RunState::finished:
      return "finished";
    case RunState::ended_early:
      return "ended early";
    case RunState::killed:
      return "killed";
    case RunState::simulated:
      return "simulated";
    case RunState::unknown:
      return "not known";
    case RunState::unreadable:
      break;
  }
  return "unreadable";
}

Stops stops_after(TimeNs budget_ns) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(budget_ns);
  return [until] { return std::chrono::steady_clock::now() > until; };
}

std::string database_of_run(const std::string& path) {
  return analyze::databases_of({path}).front();
}

RunFigures read_figures(const std::string& path, const ReadOptions& options) {
  RunFigures figures;
  figures.path = path;
  const std::vector<std::string> databases = analyze::databases_of({path});
  FigureReader(databases.front(), options, figures).read();
  if (databases.size() > 1) add_ranks(databases, figures);
  return figures;
}

}  // namespace sluice::runs
