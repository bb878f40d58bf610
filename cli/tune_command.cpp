// `sluice tune`: what to choose for the shortest step, and why. One command for two searches:
// settings_search.h and, with --placement, placement_search.h.

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/number_range.h"
#include "cli/placement_search.h"
#include "cli/run_argument.h"
#include "cli/settings_search.h"

namespace sluice::cli {
namespace {

// Options of the search of settings; --placement refuses each by its name.
void add_settings_options(CLI::App& command, TuneArguments& arguments, CLI::Option* overrides,
                          CLI::Option* placement) {
  command
      .add_option("--model", arguments.model,
                  "MODEL.toml of a recorded run whose database does not hold it")
      ->excludes(placement);
  command
      .add_option("--density", arguments.density,
                  "gradients may be compressed down to this density, which changes what is learned")
      ->check(number_range(1e-6, 1.0))
      ->excludes(placement);
  command
      .add_option("--devices", arguments.devices,
                  "1..10 or 2,4,8: tune each number of devices, with prices and what a step costs")
      ->excludes(placement);
  command
      .add_option("--write-platform", arguments.written_platform,
                  "write the platform that was fitted to the recorded run to this file")
      ->excludes(placement);
  command.add_flag("--force", arguments.force, "replace that file if it is there")
      ->needs("--write-platform");
  command
      .add_flag("--apply", arguments.apply,
                "change the live run to what is proposed: knobs only, all of them between two "
                "steps or none")
      ->excludes(overrides)  // the proposal is one for the run as it is
      ->excludes(placement);
  command
      .add_flag("--activations", arguments.activations,
                "choose each layer's activations, too, under the caps of memory; not with --apply")
      ->excludes("--apply")
      ->excludes(placement);
}

// Options of the search of a placement; each refuses to be without --placement.
void add_placement_options(CLI::App& command, TuneArguments& arguments, CLI::Option* platform,
                           CLI::Option* placement) {
  CLI::Option* ranks =
      command
          .add_option("--ranks", arguments.ranks,
                      "with --placement and a cluster: how to shard over 4x2 of its ranks (in a "
                      "node x nodes)")
          ->needs(platform)
          ->needs(placement);
  command
      .add_option("--state", arguments.state,
                  "with --ranks: where a rank's state lies, memory or drives; else chosen")
      ->needs(ranks);
  command
      .add_option("--commit-every", arguments.commit_every,
                  "with --placement: steps that a crash may lose; commit_every may rise to this")
      ->check(number_range(1.0, 1000.0))
      ->needs(placement)
      ->excludes(ranks);
  command
      .add_option("--simulations", arguments.simulations,
                  "with --placement: steps that the search may simulate, about; 600")
      ->check(number_range(1.0, 1e6))
      ->needs(placement);
}

constexpr const char* kFooter =
    "The search varies method, pipeline, subgroup_elements, buffers, wire, overlap, "
    "gradient_tier\n"
    "and, where the devices are not alike, device_map; none changes the training result. "
    "--density\n"
    "also allows compressed gradients, which does. A run may be finished, stopped or live; it "
    "needs\n"
    "four recorded steps. Its findings about the machine come first: how far simulation was off,\n"
    "which rates differ, what remains.\n"
    "With --placement: for each layer whether its activations stay, are recomputed, or leave for\n"
    "the drives, and gradient_tier, state_cache, activation_buffer, buffers, pipeline and wire, "
    "under\n"
    "host_memory, accelerator_memory and device_memory, with a lower bound beside the answer. "
    "Ctrl-C\n"
    "ends that search and prints the best so far. With --ranks also over how many ranks "
    "parameters,\n"
    "gradients and state are sharded, and whether the state lies on drives.\n"
    "Examples:\n"
    "  sluice tune out/tiny/run.db --hold subgroup_elements\n"
    "  sluice tune out/tiny/run.db --apply\n"
    "  sluice tune sample_models/models/gpt2-4.0b.toml \\\n"
    "      --platform sample_models/platforms/smartssd-a5000.toml --set devices=10\n"
    "  sluice tune sample_models/models/gpt2-4.0b.toml --devices 1..10 \\\n"
    "      --platform sample_models/platforms/smartssd-a5000.toml --density 0.01\n"
    "  sluice tune --placement sample_models/runs/tiny.toml --set host_memory=400MB\n"
    "  sluice tune --placement sample_models/models/llama-13b.toml \\\n"
    "      --platform sample_models/platforms/a800-64.toml --ranks 8x8 --set batch=1\n"
    "  sluice tune --placement out/tiny/run.db --hold activations --json";

}  // namespace

void add_tune_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<TuneArguments>();
  CLI::App* command = app.add_subcommand(
      "tune",
      "Which settings, or with --placement which place of everything, make a step shortest");
  add_run_argument(
      *command, "start", arguments->start,
      "the model's shape (MODEL.toml, or a folder of Hugging Face's), or a recorded run "
      "(RUN.db), to which the platform is fitted first; with --placement also a run's settings "
      "(RUN.toml)");
  CLI::Option* platform =
      command->add_option("--platform", arguments->platform,
                          "the machine (PLATFORM.toml); a recorded run brings its own");
  CLI::Option* placement =
      command->add_flag("--placement", arguments->placement,
                        "choose where each layer's activations, gradients and state live, under "
                        "caps of memory");
  CLI::Option* overrides =
      command
          ->add_option("--set", arguments->overrides,
                       "key=value: where the search begins, as in sluice simulate, or over the "
                       "settings of the run; also a cap (host_memory, accelerator_memory, "
                       "device_memory); may be repeated")
          ->take_all()
          ->allow_extra_args(false);
  command->add_option("--hold", arguments->held, "a setting to leave as it is; may be repeated")
      ->take_all()
      ->allow_extra_args(false);
  add_settings_options(*command, *arguments, overrides, placement);
  add_placement_options(*command, *arguments, platform, placement);
  command->add_flag("--json", arguments->json, "print one JSON object and nothing else");
  command->footer(kFooter);
  command->callback([arguments, &exit_code] {
    const Status status =
        arguments->placement ? search_placement(*arguments) : search_settings(*arguments);
    if (!status.ok()) exit_code = report_error(status.error());
  });
}

}  // namespace sluice::cli
