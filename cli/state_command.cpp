#include <nlohmann/json.hpp>
#include <optional>

#include "base/figure_text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/state_argument.h"
#include "cli/terminal.h"
#include "storage/state/state_store.h"

namespace sluice::cli {
namespace {

constexpr const char* kBeingWritten = "a run is writing this state; ask again when it has ended";

struct StateArguments {
  std::string directory;
  bool verify = false;
  bool json = false;
};

void draw_progress(const state::VerifyProgress& progress, void* context) {
  static_cast<ProgressLine*>(context)->show(
      static_cast<double>(progress.done_bytes) / static_cast<double>(progress.total_bytes),
      fmt::format("{} of {} read", format_bytes(progress.done_bytes),
                  format_bytes(progress.total_bytes)));
}

std::vector<std::int64_t> subgroups_by_device(state::StateStore& store) {
  const state::Geometry& geometry = store.layout().geometry();
  std::vector<std::int64_t> counts(static_cast<std::size_t>(geometry.device_count), 0);
  for (std::int32_t s = 0; s < geometry.subgroup_count(); ++s) {
    counts[static_cast<std::size_t>(index_of(store.layout().device(SubgroupId{s})))] += 1;
  }
  return counts;
}

// A committed state and its digest. Empty damages and no digest: a run wrote over it meanwhile.
struct Look {
  std::unique_ptr<state::StateStore> store;
  std::optional<std::string> digest;
  std::vector<std::string> damages;
};

// The checksums tell a state that was read whole from one that a run went on with.
Result<Look> look_at(const StateArguments& arguments) {
  constexpr int kAttempts = 3;
  state::StateStore::Options options;
  options.directory = arguments.directory;
  ProgressLine progress;
  Look look;
  ASSIGN_OR_RETURN(look.store, state::StateStore::open_read_only(options));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    ASSIGN_OR_RETURN(const state::StateDigest found,
                     state::digest_state(*look.store, arguments.json ? nullptr : draw_progress,
                                         &progress, &look.damages));
    if (look.damages.empty()) {
      look.digest = found.digest;
      return look;
    }
    const std::int64_t step = look.store->committed().position.step;
    ASSIGN_OR_RETURN(look.store, state::StateStore::open_read_only(options));
    if (look.store->committed().position.step == step) return look;
    look.damages.clear();
  }
  return look;
}

void print_json(state::StateStore& store, const std::vector<state::KeptCommit>& kept,
                const std::optional<std::string>& digest) {
  const state::Geometry& geometry = store.layout().geometry();
  const state::TrainingPosition& position = store.committed().position;
  nlohmann::ordered_json json;
  json["step"] = position.step;
  json["digest"] = digest ? nlohmann::ordered_json(*digest) : nullptr;
  json["model"] = store.identity().model_name;
  json["optimizer"] = store.identity().optimizer;
  json["state_format"] = format_text(format_of(geometry.stored()));
  json["parameters"] = geometry.parameter_count;
  json["subgroup_elements"] = geometry.subgroup_elements;
  json["subgroups"] = geometry.subgroup_count();
  json["optimizer_step"] = position.optimizer_step;
  json["loss_scale"] = position.loss_scale;
  json["seed"] = position.seed;
  json["data_position"] = position.data_position;
  const std::vector<std::int64_t> counts = subgroups_by_device(store);
  for (std::int32_t d = 0; d < geometry.device_count; ++d) {
    json["devices"].push_back({{"id", d},
                               {"file", store.file(DeviceId{d}).path()},
                               {"subgroups", counts[static_cast<std::size_t>(d)]},
                               {"bytes", store.layout().data_bytes(DeviceId{d})}});
  }
  json["kept"] = nlohmann::ordered_json::array();
  for (const state::KeptCommit& commit : kept) {
    json["kept"].push_back(
        {{"step", commit.id.step}, {"version", commit.id.version}, {"keeper", commit.keeper}});
  }
  print_lines(json_text(json, 2) + "\n");
}

void print_text(state::StateStore& store, const std::vector<state::KeptCommit>& kept,
                const std::optional<std::string>& digest) {
  const state::Geometry& geometry = store.layout().geometry();
  const state::TrainingPosition& position = store.committed().position;
  const StateFormat format = format_of(geometry.stored());
  print("{}: step {} committed ({} updates), {} parameters, {}{}\n", store.identity().model_name,
        position.step, position.optimizer_step,
        format_count(static_cast<double>(geometry.parameter_count)), store.identity().optimizer,
        format.is_split() ? ", state " + format_text(format) : "");
  print_lines(
      "  " +
      wrapped(fmt::format("{} subgroups of {} elements; seed {}, data position {}, loss scale {:g}",
                          format_whole(geometry.subgroup_count()),
                          format_whole(geometry.subgroup_elements), position.seed,
                          format_whole(position.data_position), position.loss_scale),
              terminal_columns() - 2, "    "));
  const std::vector<std::int64_t> counts = subgroups_by_device(store);
  for (std::int32_t d = 0; d < geometry.device_count; ++d) {
    print("  device {:<3} {:>6} subgroups  {:>9}  {}\n", d, counts[static_cast<std::size_t>(d)],
          format_bytes(store.layout().data_bytes(DeviceId{d})), store.file(DeviceId{d}).path());
  }
  for (const state::KeptCommit& commit : kept) {
    print("  kept: step {} for {}\n", commit.id.step, escaped_for_terminal(commit.keeper));
  }
  if (digest) print("  digest {}   every checksum holds\n", *digest);
  if (!digest) print("  no digest: {}\n", kBeingWritten);
}

Status show_state(StateArguments arguments) {
  ASSIGN_OR_RETURN(arguments.directory, state_in(arguments.directory));
  ASSIGN_OR_RETURN(const Look look, look_at(arguments));
  if (!look.damages.empty() && !arguments.verify) {
    return make_error(ErrorCode::corrupt, "{}", look.damages.front());
  }
  for (const std::string& damage : look.damages)
    std::fprintf(stderr, "  %s\n", escaped_for_terminal(damage).c_str());
  if (!look.damages.empty()) {
    const state::Geometry& geometry = look.store->layout().geometry();
    return make_error(ErrorCode::corrupt, "{}: {} of {} arrays are damaged (above)",
                      arguments.directory, look.damages.size(),
                      geometry.subgroup_count() * geometry.variable_count);
  }
  ASSIGN_OR_RETURN(const std::vector<state::KeptCommit> kept,
                   state::kept_commits(arguments.directory));
  if (arguments.json) {
    print_json(*look.store, kept, look.digest);
  } else {
    print_text(*look.store, kept, look.digest);
  }
  return ok_status();
}

}  // namespace

void add_state_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<StateArguments>();
  CLI::App* command = app.add_subcommand(
      "state", "What an optimizer state directory holds, and whether it is whole");
  command
      ->add_option("directory", arguments->directory,
                   "the state directory, or the run's folder (OUTPUT)")
      ->required();
  command->add_flag("--verify", arguments->verify, "name every damaged array, not only the first");
  command->add_flag("--json", arguments->json, "print one JSON object and nothing else");
  command->footer("Example: sluice state out/tiny --verify");
  command->callback([arguments, &exit_code] {
    const Status status = show_state(*arguments);
    if (!status.ok()) exit_code = report_error(status.error());
  });
}

}  // namespace sluice::cli
