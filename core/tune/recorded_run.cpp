#include "core/tune/recorded_run.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/saturating.h"
#include "core/plan/model_options.h"
#include "core/plan/run_plan.h"
#include "core/tune/detail/program_model.h"
#include "core/weights/model_folder.h"
#include "storage/rundb/catalog_reader.h"
#include "storage/rundb/completeness.h"
#include "storage/rundb/lateness.h"
#include "storage/rundb/reader.h"
#include "storage/rundb/span_reader.h"

namespace sluice::tune {
namespace {

constexpr std::size_t kWarmSteps = 2;
constexpr std::size_t kFewestSteps = 2;
constexpr std::size_t kMostSteps = 50;  // a median of more is no better, and reading takes time

std::optional<stages::Stage> stage_of(const std::string& name) {
  const auto stage = std::ranges::find(stages::kStages, name, &stages::StageInfo::name);
  return stage == stages::kStages.end() ? std::nullopt : std::optional(stage->stage);
}

class RecordedRunReader {
 public:
  explicit RecordedRunReader(const RecordedRunFiles& files) : files_(files) {}

  Result<RecordedRun> read() {
    ASSIGN_OR_RETURN(reader_, rundb::Reader::open(files_.database));
    run_.database = files_.database;
    ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, reader_->snapshot());
    ASSIGN_OR_RETURN(const auto meta, reader_->meta());
    for (const rundb::MetaRow& row : meta) meta_[row.key] = row.value;
    if (meta_.contains("merged_ranks")) {
      return refused(
          "has the operations of all ranks beside the steps of one; name the record of a rank, as "
          "OUTPUT/rank-0/run.db");
    }
    if (meta_.contains("sharding")) {
      return refused("is of a rank that has parts of the model (" + meta_["sharding"] +
                     "), whose step is none of a rank alone; sluice simulate MODEL --platform "
                     "CLUSTER --shard ... has such steps");
    }
    if (!meta_.contains("model")) {
      return refused("is another program's record, which names no model and no machine");
    }
    run_.name = meta_["name"];
    ASSIGN_OR_RETURN(const auto modes, reader_->modes());
    if (!modes.empty()) run_.mode = modes.back().line;
    run_.is_simulated = meta_["clock"] == "simulated";
    ASSIGN_OR_RETURN(std::vector<rundb::StepRow> steps, last_stretch());
    RETURN_IF_ERROR(read_settings(steps));
    RETURN_IF_ERROR(read_machine());
    RETURN_IF_ERROR(keep_steady(steps));
    RETURN_IF_ERROR(read_operations(steps));
    if (run_.model.is_of_program()) RETURN_IF_ERROR(read_costs());
    RETURN_IF_ERROR(add_caveats());
    return std::move(run_);
  }

 private:
  Error refused(const std::string& why) const {
    return make_error(ErrorCode::config, "{}: {}", files_.database, why);
  }

  // Those since the run began or last went on, by its clock, which may have begun anew.
  Result<std::vector<rundb::StepRow>> last_stretch() {
    ASSIGN_OR_RETURN(std::vector<rundb::StepRow> steps, reader_->steps());
    run_.step_count = std::ssize(steps);
    if (steps.empty()) {
      return refused("no step has ended in it; tune needs a run of a few steps, recorded");
    }
    if (run_.is_simulated) return steps;
    ASSIGN_OR_RETURN(const TimeNs begin, reader_->stretch_begin());
    std::size_t first = steps.size();
    while (first > 0 && steps[first - 1].ts >= begin &&
           (first == steps.size() || steps[first - 1].ts < steps[first].ts)) {
      first -= 1;
    }
    steps.erase(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(first));
    if (steps.empty()) {
      return refused("no complete step since the resume; predictions need 4");
    }
    return steps;
  }

  Status read_settings(const std::vector<rundb::StepRow>& steps) {
    for (const settings::SettingInfo& info : settings::settings()) {
      const auto value = meta_.find(info.key);
      if (value == meta_.end() || (info.key == "clock" && run_.is_simulated)) continue;
      if (info.key == "accelerators" && is_real()) continue;  // it computed without any
      run_.settings.push_back(info.key + "=" + value->second);
    }
    ASSIGN_OR_RETURN(const std::vector<rundb::KnobChangeRow> changes, reader_->knob_changes());
    for (const rundb::KnobChangeRow& change : changes) {
      if (change.step_id < steps.front().id || change.step_id > steps.back().id) continue;
      // A resume may have changed what is no setting, such as the number of ranks.
      if (settings::is_setting(change.knob)) {
        run_.settings.push_back(change.knob + "=" + change.new_value);
      }
      first_step_ = change.step_id;
    }
    ASSIGN_OR_RETURN(run_.config, recorded_config(run_, {}));
    const settings::OffloadConfig& offload = run_.config.offload;
    if (offload.density < 1) first_step_ = std::max(first_step_, offload.density_warmup_steps);
    if (run_.config.clock.kind == settings::ClockKind::emulated && !run_.is_simulated) {
      run_.time_scale = run_.config.clock.time_scale;
    }
    return ok_status();
  }

  Status read_machine() {
    const auto missing = [&](const char* what, const char* option) {
      return refused(
          fmt::format("holds no {}, since an older Sluice wrote it; name the file that "
                      "the run used with {}",
                      what, option));
    };
    const bool is_of_program = files_.model.empty() && meta_["model"] == plan::kNoModelFile;
    if (is_of_program && meta_["tensors"].empty()) {
      return refused("a program of its own computed the gradients, and its tensors are not in it");
    }
    if (!is_of_program && files_.model.empty() && meta_["model_text"].empty()) {
      return missing("model", "--model");
    }
    if (files_.platform.empty() && meta_["platform_text"].empty()) {
      return missing("platform", "--platform");
    }
    ASSIGN_OR_RETURN(run_.platform,
                     files_.platform.empty()
                         ? platform::parse_platform(meta_["platform_text"], meta_["platform"])
                         : platform::load_platform(files_.platform));
    if (is_of_program) {
      ASSIGN_OR_RETURN(run_.model, model_of_program(meta_["tensors"], run_.config));
    } else {
      RETURN_IF_ERROR(read_model());
    }
    const std::string parameters = fmt::format("{}", run_.model.parameter_count());
    if (parameters == meta_["parameters"]) return ok_status();
    return make_error(ErrorCode::config, "{}: the model has {} parameters, and that of {} has {}",
                      files_.model, parameters, files_.database, meta_["parameters"]);
  }

  Status read_model() {
    ASSIGN_OR_RETURN(model::ModelShape shape,
                     files_.model.empty()
                         ? model::parse_model_shape(meta_["model_text"], meta_["model"])
                         : weights::load_shape(files_.model));
    const settings::ObjectiveConfig& objective = run_.config.objective;
    shape.stacks.spans = {objective.span_share, objective.span_length};
    ASSIGN_OR_RETURN(run_.model.shape, model::with_adapters(shape, plan::lora_choice(run_.config)));
    run_.platform = plan::with_needed_accelerator(run_.platform, run_.config);
    if (is_real()) {
      ASSIGN_OR_RETURN(run_.platform, plan::with_real_accelerator(run_.platform, run_.config));
    }
    return ok_status();
  }

  Status read_costs() {
    const auto costs = costs_of_program(run_.steps, run_.model.tensors.layer_count());
    if (!costs.ok()) return refused(costs.error().message());
    run_.model.costs = *costs;
    return ok_status();
  }

  Status keep_steady(std::vector<rundb::StepRow>& steps) const {
    const std::size_t in_stretch = steps.size();
    if (!run_.is_simulated) {
      std::erase_if(steps, [&](const rundb::StepRow& step) { return step.id < first_step_; });
      const auto warm = static_cast<std::ptrdiff_t>(std::min(kWarmSteps, steps.size()));
      steps.erase(steps.begin(), steps.begin() + warm);
      std::erase_if(steps, [](const rundb::StepRow& step) { return step.skipped; });
      if (steps.size() < kFewestSteps) {
        return refused(fmt::format(
            "of the {} step{} since the run began or went on, {} {} steady (the first two do not "
            "count, also after a change of a knob, and those that were skipped), and tune needs "
            "{}; record more",
            in_stretch, in_stretch == 1 ? "" : "s", steps.size(), steps.size() == 1 ? "is" : "are",
            kFewestSteps));
      }
    }
    const std::size_t many = steps.size() - std::min(steps.size(), kMostSteps);
    steps.erase(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(many));
    return ok_status();
  }

  bool is_real() { return meta_["clock"] == "real"; }

  TimeNs scaled(TimeNs ts, TimeNs begin) const {
    return saturating_whole(static_cast<double>(ts - begin) / run_.time_scale);
  }

  Status read_operations(const std::vector<rundb::StepRow>& steps) {
    ASSIGN_OR_RETURN(const rundb::Completeness rows, rundb::completeness_of(*reader_));
    if (rows.operations_missing > 0) {
      return refused(
          fmt::format("{} of {} operations have no rows, and the others do not say what "
                      "a step does",
                      rows.operations_missing, rows.operations_recorded));
    }
    const TimeNs begin = steps.front().ts;
    const rundb::StepRow& last = steps.back();
    ASSIGN_OR_RETURN(const auto spans,
                     rundb::SpanReader(*reader_).spans_ended(begin, last.ts + last.dur));
    run_.steps.kernel_order = is_real() ? KernelOrder::at_once : KernelOrder::in_turn;
    for (const rundb::StepRow& step : steps) {
      run_.steps.steps.push_back({scaled(step.ts, begin), scaled(step.ts + step.dur, begin)});
    }
    ASSIGN_OR_RETURN(const auto crossings, rundb::CatalogReader(*reader_).track_links());
    std::map<std::int64_t, rundb::Direction> direction_of_track;
    for (const rundb::TrackLinkRow& row : crossings) {
      direction_of_track[row.track_id] = row.direction;
    }
    for (const rundb::NamedSpan& span : spans) {
      // The clock of an earlier stretch, before a restart of the machine, may have shown the same.
      if (span.row.step_id >= 0 && span.row.step_id + 1 < steps.front().id) continue;
      const std::optional<stages::Stage> stage = stage_of(span.name);
      if (!stage) continue;
      OperationTimes times;
      times.stage = *stage;
      times.device = DeviceId{static_cast<std::int32_t>(span.row.device_id)};
      times.layer = LayerId{static_cast<std::int32_t>(span.row.layer_id)};
      times.subgroup = SubgroupId{static_cast<std::int32_t>(span.row.subgroup_id)};
      times.start_ns = scaled(is_real() ? span.row.ts : span.row.submit_ts, begin);
      times.end_ns = scaled(span.row.ts + span.row.dur, begin);
      times.size_bytes = span.row.bytes + span.row.padding_bytes;
      const auto direction = direction_of_track.find(span.row.track_id);
      if (direction != direction_of_track.end() && direction->second == rundb::Direction::write) {
        times.direction = platform::Direction::write;
      }
      run_.steps.operations.push_back(times);
    }
    keep_those_of_steps(run_.steps);
    if (!run_.steps.operations.empty()) return ok_status();
    return refused("holds steps, but none of their operations; record with record=all");
  }

  Status add_caveats() {
    ASSIGN_OR_RETURN(const auto losses, reader_->losses());
    for (const rundb::StatRow& loss : losses) {
      run_.caveats.push_back(
          fmt::format("The recording is not whole ({}: {}).", loss.name, loss.value));
    }
    return add_lateness();
  }

  // The operations since the last change, among which are those that the fit is of.
  Status add_lateness() {
    ASSIGN_OR_RETURN(std::vector<rundb::LatenessRow> rows, reader_->lateness());
    if (rows.empty()) return ok_status();
    const std::int64_t last = rows.back().step_id;
    std::erase_if(rows, [last](const rundb::LatenessRow& row) { return row.step_id < last; });
    const rundb::LatenessSum sum = rundb::sum_of(rows);
    if (!sum.is_late()) return ok_status();
    run_.caveats.push_back(
        fmt::format("LATE: {}: the fitted rates are partly this computer's. With --set "
                    "time_scale={:g} it would keep up.",
                    sum.words(), rundb::needed_time_scale(rows, run_.time_scale)));
    return ok_status();
  }

  const RecordedRunFiles& files_;
  std::unique_ptr<rundb::Reader> reader_;
  std::map<std::string, std::string> meta_;
  std::int64_t first_step_ = 0;  // with the settings as they are at the end
  RecordedRun run_;
};

}  // namespace

bool is_database_path(const std::string& path) {
  std::error_code error;  // what was read of a pipe would be gone for whoever reads it next
  if (!std::filesystem::is_regular_file(path, error)) return path.ends_with(".db");
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  std::array<char, kMagic.size()> head{};
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), head.size());
  return path.ends_with(".db") || std::string_view(head.data(), head.size()) == kMagic;
}

Result<RecordedRun> open_recorded_run(const RecordedRunFiles& files) {
  return RecordedRunReader(files).read();
}

Result<settings::RunConfig> recorded_config(const RecordedRun& run,
                                            const std::vector<std::string>& overrides,
                                            const std::string& option) {
  std::vector<std::string> settings = run.settings;
  settings.insert(settings.end(), overrides.begin(), overrides.end());
  return settings::parse_run_config("", run.database, settings, option);
}

}  // namespace sluice::tune
