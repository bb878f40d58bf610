#include "profiler/report/tensorboard_export.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "profiler/analyze/step_verdicts.h"
#include "profiler/analyze/wall_clock.h"
#include "profiler/report/detail/event_file.h"
#include "storage/rundb/query.h"

namespace sluice::report {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// A figure of table step and its curve.
struct Figure {
  const char* tag;
  double (*of)(const rundb::StepRow& step);
};
double seconds_of(const rundb::StepRow& step) {
  return static_cast<double>(step.dur) / kNsPerSecond;
}
constexpr std::array kFigures = {
    Figure{"train/loss", [](const rundb::StepRow& step) { return step.loss; }},
    Figure{"train/learning_rate", [](const rundb::StepRow& step) { return step.lr; }},
    Figure{"train/grad_norm", [](const rundb::StepRow& step) { return step.grad_norm; }},
    Figure{"train/loss_scale", [](const rundb::StepRow& step) { return step.loss_scale; }},
    Figure{"train/skipped", [](const rundb::StepRow& step) { return step.skipped ? 1.0 : 0.0; }},
    Figure{"time/step_seconds", seconds_of},
    Figure{"time/tokens_per_second",
           [](const rundb::StepRow& step) {
             if (step.tokens == 0 || step.dur <= 0) return kNone;
             return static_cast<double>(step.tokens) / seconds_of(step);
           }},
};

using LinkBytes = std::map<std::int64_t, std::map<std::string, double>>;  // by step and tag

Result<LinkBytes> link_bytes_of(rundb::Reader& reader, const RunPart& part) {
  LinkBytes bytes;
  RETURN_IF_ERROR(rundb::Query(reader).each_row_with(
      "SELECT step_id, link, direction, bytes FROM link_bytes WHERE step_id BETWEEN ?1 AND ?2",
      {part.first_step_id, part.last_step_id}, [&bytes](std::span<const rundb::Cell> row) {
        const auto* step = std::get_if<std::int64_t>(&row[0]);
        const auto* link = std::get_if<std::string>(&row[1]);
        const auto* direction = std::get_if<std::string>(&row[2]);
        const auto* moved = std::get_if<std::int64_t>(&row[3]);
        if (step != nullptr && link != nullptr && direction != nullptr && moved != nullptr) {
          bytes[*step][fmt::format("link_bytes/{} {}", *link, *direction)] =
              static_cast<double>(*moved);
        }
        return ok_status();
      }));
  return bytes;
}

// Those that the record has, and computed ones of the steps behind them: a live or killed run has
// none.
Result<std::map<std::int64_t, analyze::Shares>> shares_of(rundb::Reader& reader,
                                                          const analyze::RunInfo& info,
                                                          const RunPart& part) {
  ASSIGN_OR_RETURN(auto shares, analyze::stored_verdicts(reader, part.first_step_id));
  const std::int64_t first = shares.empty() ? part.first_step_id : shares.rbegin()->first + 1;
  ASSIGN_OR_RETURN(const std::vector<rundb::VerdictRow> rows,
                   analyze::compute_verdicts(reader, info, first));
  for (const rundb::VerdictRow& row : rows) {
    const auto cause = analyze::cause_named(row.cause);
    if (cause) shares[row.step_id][analyze::index_of(*cause)] = row.share;
  }
  return shares;
}

class TensorboardExport {
 public:
  TensorboardExport(rundb::Reader& reader, const RunPart& part, const OnProgress& on_progress)
      : reader_(reader), part_(part), on_progress_(on_progress) {}

  Result<TensorboardCounts> write(const std::string& folder, IfExists if_exists) {
    ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, reader_.snapshot());
    RETURN_IF_ERROR(read());
    const double begin_s = static_cast<double>(clock_.realtime_of(begin_ts_)) / kNsPerSecond;
    // TensorBoard looks for "tfevents" in a name, and reads files in the order of their names. The
    // name is the run's, whatever part is written: two files of one run were read as one curve.
    counts_.file =
        fmt::format("{}/events.out.tfevents.{:010.0f}.sluice", folder, std::floor(begin_s));
    ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(counts_.file, if_exists));
    file_ = &file;
    RETURN_IF_ERROR(file.write(detail::event_file_version(begin_s)));
    RETURN_IF_ERROR(write_steps());
    RETURN_IF_ERROR(file.close());
    return std::move(counts_);
  }

 private:
  Status read() {
    ASSIGN_OR_RETURN(const analyze::RunInfo info, analyze::load_run_info(reader_));
    ASSIGN_OR_RETURN(clock_, analyze::WallClock::of_run(reader_));
    ASSIGN_OR_RETURN(begin_ts_, reader_.stretch_begin());
    ASSIGN_OR_RETURN(steps_, reader_.steps());
    if (!steps_.empty()) begin_ts_ = steps_.front().ts;
    std::erase_if(steps_, [&](const rundb::StepRow& step) { return !part_.has_step(step.id); });
    ASSIGN_OR_RETURN(const std::vector<rundb::ValidationRow> validations, reader_.validations());
    for (const rundb::ValidationRow& row : validations) validations_[row.step_id].push_back(row);
    ASSIGN_OR_RETURN(bytes_, link_bytes_of(reader_, part_));
    ASSIGN_OR_RETURN(shares_, shares_of(reader_, info, part_));
    for (const auto& [step, shares] : shares_) {
      for (std::size_t c = 0; c < shares.size(); ++c) has_cause_[c] |= shares[c] > 0;
    }
    for (const auto& [step, links] : bytes_) {
      for (const auto& [tag, bytes] : links) link_tags_[tag] = 0;
    }
    return ok_status();
  }

  Status write_steps() {
    std::vector<Figure> figures;
    for (const Figure& figure : kFigures) {
      const bool is_there = std::ranges::any_of(
          steps_, [&](const rundb::StepRow& step) { return !std::isnan(figure.of(step)); });
      if (is_there) {
        figures.push_back(figure);
      } else if (!steps_.empty()) {
        counts_.absent.emplace_back(figure.tag);
      }
    }
    for (const rundb::StepRow& step : steps_) {
      const TimeNs end_ts = step.ts + step.dur;
      for (const Figure& figure : figures)
        RETURN_IF_ERROR(write_scalar(end_ts, step.id, figure.tag, figure.of(step)));
      RETURN_IF_ERROR(write_links(step, end_ts));
      RETURN_IF_ERROR(write_shares(step, end_ts));
      RETURN_IF_ERROR(write_validations(step));
      counts_.steps += 1;
      if (on_progress_)
        on_progress_(static_cast<double>(counts_.steps) / static_cast<double>(steps_.size()));
    }
    return ok_status();
  }

  // A link over which a step moved nothing has moved 0 bytes there, where operations were recorded.
  Status write_links(const rundb::StepRow& step, TimeNs end_ts) {
    const auto found = bytes_.find(step.id);
    if (found == bytes_.end()) return ok_status();
    for (const auto& [tag, none] : link_tags_) {
      const auto moved = found->second.find(tag);
      const double bytes = moved == found->second.end() ? none : moved->second;
      RETURN_IF_ERROR(write_scalar(end_ts, step.id, tag, bytes));
    }
    return ok_status();
  }

  Status write_shares(const rundb::StepRow& step, TimeNs end_ts) {
    const auto found = shares_.find(step.id);
    if (found == shares_.end()) return ok_status();
    for (std::size_t c = 0; c < found->second.size(); ++c) {
      if (!has_cause_[c]) continue;
      const std::string tag =
          fmt::format("cause_share/{}", analyze::cause_name(static_cast<analyze::Cause>(c)));
      RETURN_IF_ERROR(write_scalar(end_ts, step.id, tag, found->second[c]));
    }
    return ok_status();
  }

  Status write_validations(const rundb::StepRow& step) {
    const auto found = validations_.find(step.id);
    if (found == validations_.end()) return ok_status();
    for (const rundb::ValidationRow& row : found->second) {
      RETURN_IF_ERROR(write_scalar(row.ts, step.id, "validation/loss", row.loss));
      if (std::isnan(row.accuracy)) continue;
      RETURN_IF_ERROR(write_scalar(row.ts, step.id, "validation/accuracy", row.accuracy));
    }
    return ok_status();
  }

  // Steps are counted from 1, as everywhere that people read.
  Status write_scalar(TimeNs ts, std::int64_t step_id, std::string_view tag, double value) {
    const double wall_time_s = static_cast<double>(clock_.realtime_of(ts)) / kNsPerSecond;
    counts_.scalars += 1;
    return file_->write(
        detail::scalar_event(wall_time_s, step_id + 1, tag, static_cast<float>(value)));
  }

  rundb::Reader& reader_;
  const RunPart& part_;
  const OnProgress& on_progress_;
  OutputFile* file_ = nullptr;
  analyze::WallClock clock_{{}};
  TimeNs begin_ts_ = 0;
  std::vector<rundb::StepRow> steps_;
  std::map<std::int64_t, std::vector<rundb::ValidationRow>> validations_;
  LinkBytes bytes_;
  std::map<std::string, double> link_tags_;  // each 0
  std::map<std::int64_t, analyze::Shares> shares_;
  std::array<bool, analyze::kCauseCount> has_cause_{};
  TensorboardCounts counts_;
};

}  // namespace

Result<TensorboardCounts> export_tensorboard(rundb::Reader& reader, const std::string& folder,
                                             IfExists if_exists, const RunPart& part,
                                             const OnProgress& on_progress) {
  RETURN_IF_ERROR(take_output_folder(folder, if_exists));
  return TensorboardExport(reader, part, on_progress).write(folder, if_exists);
}

}  // namespace sluice::report
