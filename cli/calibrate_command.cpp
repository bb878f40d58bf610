#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/process_limits.h"
#include "cli/calibrate_progress.h"
#include "cli/calibrate_ranks.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/number_range.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "core/calibrate/drive_load.h"
#include "core/calibrate/layer_timing.h"
#include "core/calibrate/platform_text.h"
#include "core/model/model_library.h"
#include "core/weights/model_folder.h"

namespace sluice::cli {
namespace {

struct CalibrateArguments {
  std::vector<std::string> directories;
  std::string output = "platform.toml";
  std::string size;
  std::string model;
  std::string device;  // empty: forward and backward run in host memory
  int threads = 0;
  bool ranks = false;
  double seconds = 60;  // of ranks
  bool quick = false;
  bool emulated_csds = false;
  bool force = false;
  bool json = false;
};

nlohmann::ordered_json json_of(const calibrate::Figure& figure) {
  if (!figure.is_measured()) return nullptr;
  return {{"value", figure.value},
          {"low", figure.low},
          {"high", figure.high},
          {"repeats", figure.count}};
}

const char* word_of(platform::Duplex duplex) {
  return duplex == platform::Duplex::full ? "full" : "half";
}

nlohmann::ordered_json json_of(const calibrate::DriveFigures& drive) {
  nlohmann::ordered_json json;
  json["directory"] = drive.directory.path;
  json["file_system"] = drive.directory.file_system;
  json["capacity_bytes"] = drive.directory.capacity_bytes;
  json["duplex"] = word_of(drive.duplex);
  json["mixed_read_bytes_per_s"] = json_of(drive.mixed_read);
  json["mixed_write_bytes_per_s"] = json_of(drive.mixed_write);
  json["page_latency_seconds"] = json_of(drive.page_latency_seconds);
  json["curve"] = nlohmann::ordered_json::array();
  for (const calibrate::CurvePoint& point : drive.curve) {
    json["curve"].push_back({{"inflight_bytes", point.inflight_bytes},
                             {"read_bytes_per_s", json_of(point.read)},
                             {"write_bytes_per_s", json_of(point.write)}});
  }
  return json;
}

nlohmann::ordered_json json_of(const calibrate::TogetherFigures& together) {
  return {{"read_bytes_per_s", json_of(together.read)},
          {"write_bytes_per_s", json_of(together.write)},
          {"read_limit_found", together.read_limit.is_found},
          {"write_limit_found", together.write_limit.is_found}};
}

nlohmann::ordered_json json_of(const calibrate::AcceleratorFigures& figures) {
  nlohmann::ordered_json json;
  json["device"] = figures.description;
  json["memory_bytes"] = figures.memory_bytes;
  json["duplex"] = word_of(figures.duplex);
  json["latency_seconds"] = json_of(figures.latency_seconds);
  json["copies"] = nlohmann::ordered_json::array();
  for (const calibrate::AcceleratorCopies& of : figures.copies) {
    json["copies"].push_back({{"size_bytes", of.size_bytes},
                              {"pinned", of.is_pinned},
                              {"in_bytes_per_s", json_of(of.in)},
                              {"out_bytes_per_s", json_of(of.out)}});
  }
  json["products"] = nlohmann::ordered_json::array();
  for (const calibrate::AcceleratorProducts& of : figures.products)
    json["products"].push_back({{"side", of.side}, {"flop_per_s", json_of(of.flop_per_s)}});
  return json;
}

nlohmann::ordered_json kernels_json(const calibrate::Calibration& measured) {
  nlohmann::ordered_json json;
  for (const calibrate::UpdateFigure& update : measured.update)
    json[update.name] = json_of(update.elements_per_s);
  json["stage"] = json_of(measured.stage);
  json["checksum"] = json_of(measured.checksum);
  json["compress"] = json_of(measured.compress);
  json["decompress"] = json_of(measured.decompress);
  json["memory_copy_bytes_per_s"] = json_of(measured.memory_copy);
  return json;
}

class CalibrateCommand {
 public:
  explicit CalibrateCommand(const CalibrateArguments& arguments) : arguments_(arguments) {}

  Status run() {
    RETURN_IF_ERROR(calibrate::check_output(arguments_.output, arguments_.force
                                                                   ? calibrate::IfThere::replace
                                                                   : calibrate::IfThere::refuse));
    ASSIGN_OR_RETURN(const calibrate::CalibrationOptions options, calibration_options());
    const TimeNs start_ns = monotonic_now_ns();
    const auto measured = calibrate::measure(options);
    progress_.finish();
    if (!measured.ok()) return measured.error();
    const auto devices = arguments_.emulated_csds ? calibrate::DevicesAre::emulated_csds
                                                  : calibrate::DevicesAre::plain_drives;
    RETURN_IF_ERROR(
        calibrate::write_platform(calibrate::platform_text(*measured, devices), arguments_.output));
    print_lines(arguments_.json
                    ? json(*measured) + "\n"
                    : fitted(text(*measured, monotonic_now_ns() - start_ns), terminal_columns()));
    return ok_status();
  }

 private:
  Result<calibrate::CalibrationOptions> calibration_options() {
    calibrate::CalibrationOptions options;
    options.directories = arguments_.directories;
    options.effort = effort();
    if (arguments_.quick) options.size_bytes = std::int64_t{256} << 20;
    if (!arguments_.size.empty()) {
      ASSIGN_OR_RETURN(options.size_bytes, parse_bytes(arguments_.size));
    }
    constexpr std::int64_t kLeastBytes = 2 * calibrate::kRunInflightBytes;
    if (options.size_bytes < kLeastBytes || options.size_bytes % calibrate::kRequestBytes != 0) {
      return make_error(ErrorCode::config,
                        "--size {}: must be at least {} MiB (twice what a run keeps in flight) and "
                        "a whole number of MiB",
                        arguments_.size, kLeastBytes >> 20);
    }
    options.thread_count = arguments_.threads > 0 ? arguments_.threads : usable_processor_count();
    ASSIGN_OR_RETURN(const std::vector<calibrate::TimedCase> cases, timed_cases());
    ASSIGN_OR_RETURN(const model::ModelLibrary* const models, model::load_model_library());
    options.compute = calibrate::layer_timer(
        models->host_factory(),
        {.cases = cases, .thread_count = options.thread_count, .effort = effort()});
    if (!arguments_.device.empty())
      options.accelerator = accelerator_timer(*models, options.thread_count);
    options.on_progress = [this](std::string_view what, double share, double left_seconds) {
      progress_.show(what, share, left_seconds);
    };
    return options;
  }

  calibrate::AcceleratorTimer accelerator_timer(const model::ModelLibrary& models,
                                                int thread_count) const {
    const model::DeviceTiming timing{.device = arguments_.device,
                                     .thread_count = thread_count,
                                     .repeat_count = arguments_.quick ? 3 : 7};
    return {10, [&models, timing] { return models.time_device(timing); }};
  }

  // Without a model of the user's gpt2-124m and tiny of sample_models: products count for most of
  // the one, and single values for much of the other.
  Result<std::vector<calibrate::TimedCase>> timed_cases() const {
    if (!arguments_.model.empty()) {
      ASSIGN_OR_RETURN(const model::ModelShape shape, weights::load_shape(arguments_.model));
      RETURN_IF_ERROR(model::check_trainable(shape));
      return calibrate::timed_cases(shape);
    }
    const model::ModelShape wide{"gpt2-124m", 12, 768, 12, 1024, 50257};
    const model::ModelShape narrow{"tiny", 4, 256, 4, 128, 256};
    return std::vector<calibrate::TimedCase>{
        {wide, 1, 256}, {narrow, 32, 128}, {wide, 1, 128}, {narrow, 8, 128}};
  }

  calibrate::Effort effort() const {
    return arguments_.quick ? calibrate::Effort::quick : calibrate::Effort::thorough;
  }

  std::string text(const calibrate::Calibration& measured, TimeNs dur_ns) const;
  std::string json(const calibrate::Calibration& measured) const;

  const CalibrateArguments& arguments_;
  CalibrateProgress progress_;
};

std::string CalibrateCommand::text(const calibrate::Calibration& measured, TimeNs dur_ns) const {
  std::string text = fmt::format("Measured in {}: {}, {} processors.\n\n", format_duration(dur_ns),
                                 measured.machine.processor, measured.machine.processor_count);
  for (const calibrate::DriveFigures& drive : measured.drives) {
    const calibrate::BothWays alone = drive.alone();
    text += fmt::format("  {:<28} read {:>10}, write {:>10}; at once {} + {}: {} duplex\n",
                        drive.directory.path, format_rate(alone.read), format_rate(alone.write),
                        format_rate(drive.mixed_read.value), format_rate(drive.mixed_write.value),
                        word_of(drive.duplex));
  }
  if (measured.together) {
    const auto& together = *measured.together;
    const auto limit = [](const calibrate::SharedLimit& of) {
      return of.is_found ? "a shared limit" : "no shared limit";
    };
    text += fmt::format("  {:<28} read {:>10} ({}), write {:>10} ({})\n", "all at once",
                        format_rate(together.read.value), limit(together.read_limit),
                        format_rate(together.write.value), limit(together.write_limit));
  }
  const auto rate = [](double per_second) { return format_count(per_second); };
  for (const calibrate::UpdateFigure& update : measured.update) {
    text += fmt::format("  {:<28}  {} elements a second\n", "update by " + update.name,
                        rate(update.elements_per_s.value));
  }
  if (measured.accelerator) {
    const auto& copies = measured.accelerator->of_a_run();
    text += fmt::format("  {:<28}  in {:>10}, out {:>10}; {}FLOP/s of bf16 products; {} duplex\n",
                        measured.accelerator->description, format_rate(copies.in.value),
                        format_rate(copies.out.value), rate(measured.accelerator->matmul().value),
                        word_of(measured.accelerator->duplex));
  } else {
    const std::string single_values =
        measured.compute.elementwise > 0
            ? fmt::format("{} single values a second", rate(measured.compute.elementwise))
            : "single values not told apart from products";
    text += fmt::format(
        "  forward and backward          {}FLOP/s, {}; worst fit {:.0f} % of a pass\n",
        rate(measured.compute.matmul), single_values, 100 * measured.compute.worst_error);
  }
  text += fmt::format("  computing beside transfers    {:+.1f} % longer beside {}{}\n",
                      100 * measured.toll.longer.value, format_rate(measured.toll.bytes_per_s),
                      measured.toll.processor_bytes_per_s > 0 ? "" : ", which may be chance");
  for (const std::string& note : measured.notes) text += "\nNote: " + note + ".";
  text += arguments_.emulated_csds
              ? "\nEMULATED: engine and internal link of each device are the host's processor and "
                "the drive itself."
              : "\nNo update engines: runs with method=host only (--emulated-csds writes emulated "
                "ones).";
  return text + fmt::format("\nWritten: {}", arguments_.output);
}

std::string CalibrateCommand::json(const calibrate::Calibration& measured) const {
  nlohmann::ordered_json json;
  json["platform"] = arguments_.output;
  json["emulated_csds"] = arguments_.emulated_csds;
  json["processor"] = measured.machine.processor;
  json["drives"] = nlohmann::ordered_json::array();
  for (const auto& drive : measured.drives) json["drives"].push_back(json_of(drive));
  json["together"] = nullptr;
  if (measured.together) json["together"] = json_of(*measured.together);
  json["kernels"] = kernels_json(measured);
  json["transfer_toll"] = {{"longer", json_of(measured.toll.longer)},
                           {"bytes_per_s", measured.toll.bytes_per_s},
                           {"processor_bytes_per_s", measured.toll.processor_bytes_per_s}};
  json["compute"] = {{"matmul_flop_per_s", measured.compute.matmul},
                     {"elementwise_per_s", measured.compute.elementwise},
                     {"worst_error", measured.compute.worst_error},
                     {"samples", nlohmann::ordered_json::array()}};
  for (const calibrate::ComputeSample& sample : measured.compute_samples) {
    json["compute"]["samples"].push_back({{"what", sample.what},
                                          {"seconds", sample.seconds},
                                          {"fitted_seconds", measured.compute.predict(sample)}});
  }
  json["accelerator"] = nullptr;
  if (measured.accelerator) json["accelerator"] = json_of(*measured.accelerator);
  json["notes"] = measured.notes;
  return json_text(json, 2);
}

Status calibrate_as_asked(const CalibrateArguments& arguments) {
  if (arguments.ranks) {
    return calibrate_ranks(
        {.platform = arguments.output,
         .seconds_max = arguments.seconds,
         .if_there = arguments.force ? calibrate::IfThere::replace : calibrate::IfThere::refuse,
         .json = arguments.json});
  }
  if (arguments.directories.empty()) {
    return make_error(ErrorCode::config,
                      "what shall be measured? Name a folder on each drive, or, under mpirun, "
                      "--ranks");
  }
  return CalibrateCommand(arguments).run();
}

void add_calibrate_options(CLI::App& command, CalibrateArguments& arguments) {
  CLI::Option* directories = command.add_option(
      "directories", arguments.directories,
      "a folder on each drive; each becomes a device of the file, in this order");
  CLI::Option* ranks =
      command
          .add_flag("--ranks", arguments.ranks,
                    "under mpirun: measure collectives among these ranks instead, into the "
                    "platform file that -o names")
          ->excludes(directories);
  command.add_option("--seconds", arguments.seconds, "that --ranks may take, about; 60")
      ->check(number_range(1.0, 86400.0))
      ->needs(ranks);
  command.add_option("-o,--output", arguments.output, "the platform file to write")
      ->capture_default_str();
  command.add_option("--size", arguments.size,
                     "of the test file in each folder (default 1GiB, with --quick 256MiB)");
  command.add_option("--model", arguments.model,
                     "time this model's layers (MODEL.toml) in place of gpt2-124m's and tiny's");
  command.add_option(
      "--device", arguments.device,
      "measure this accelerator, too (cuda, cuda:1, soft): its link and its products "
      "are the file's [compute]");
  command.add_option("--threads", arguments.threads, "of the host's kernels; 0 = all processors")
      ->check(number_range(0, 1024));
  command.add_flag("--quick", arguments.quick, "fewer points and repeats: about 40 s for a drive");
  command.add_flag("--emulated-csds", arguments.emulated_csds,
                   "write engines and internal links that are EMULATED by this host and its "
                   "drives, for method=csd");
  for (const char* of_drives :
       {"--size", "--model", "--device", "--threads", "--quick", "--emulated-csds"}) {
    ranks->excludes(command.get_option(of_drives));
  }
  command.add_flag("--force", arguments.force, "replace the output file, or its cluster");
  command.add_flag("--json", arguments.json, "print one JSON object and nothing else");
  command.footer(
      "Measures drives (reading, writing, both; latency), what they share, the host's kernels and\n"
      "forward and backward, and writes what simulate, tune and train read with --platform. Let\n"
      "nothing else run meanwhile. Test files have no names: Ctrl-C leaves nothing behind.\n"
      "Examples:\n"
      "  sluice calibrate /mnt/nvme0 /mnt/nvme1 -o mine.toml\n"
      "  sluice calibrate --quick . -o mine.toml --force\n"
      "  sluice calibrate --device cuda /mnt/nvme0 -o mine.toml\n"
      "  sluice simulate sample_models/models/gpt2-124m.toml --platform mine.toml \\\n"
      "      --set method=host --set devices=2\n"
      "  mpirun -n 4 sluice calibrate --ranks -o mine.toml");
}

}  // namespace

void add_calibrate_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<CalibrateArguments>();
  CLI::App* command = app.add_subcommand(
      "calibrate", "Measure this machine and write a platform file that simulates it");
  add_calibrate_options(*command, *arguments);
  command->callback([arguments, &exit_code] {
    // Ctrl-C ends it also where a shell started it in the background: its files have no names.
    std::signal(SIGINT, SIG_DFL);
    const Status status = calibrate_as_asked(*arguments);
    if (!status.ok()) exit_code = report_error(status.error());
  });
}

}  // namespace sluice::cli
