#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/figure_text.h"
#include "base/shell_quoted.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/progress_line.h"
#include "cli/state_argument.h"
#include "cli/state_weights.h"
#include "cli/terminal.h"
#include "core/session/recipe_history.h"
#include "core/train/base_weights.h"
#include "core/train/training_recipe.h"
#include "core/weights/adapter_config.h"
#include "core/weights/checkpoint_index.h"
#include "core/weights/hf_config.h"
#include "core/weights/kept_model.h"
#include "core/weights/merged_weights.h"
#include "core/weights/model_folder.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using weights::ElementType;

struct ExportArguments {
  std::string state;
  std::string folder;
  std::string dtype = "fp32";
  std::string model;  // empty: what the run kept
  bool has_optimizer = false;
  bool is_merged = false;
};

struct NamedType {
  std::string_view word;        // of --dtype
  std::string_view torch_word;  // of config.json
  ElementType type;
};
constexpr std::array kNamedTypes = {NamedType{"bf16", "bfloat16", ElementType::bf16},
                                    NamedType{"fp16", "float16", ElementType::fp16},
                                    NamedType{"fp32", "float32", ElementType::fp32}};

// Elements of merged weights that are in memory at once.
constexpr std::int64_t kMergedElements = 1 << 20;

class ExportCommand {
 public:
  explicit ExportCommand(const ExportArguments& arguments) : arguments_(arguments) {}

  Status run() {
    RETURN_IF_ERROR(check_folder());
    RETURN_IF_ERROR(check_dtype());
    for (const NamedType& type : kNamedTypes) {
      if (type.word == arguments_.dtype) type_ = type;
    }
    ASSIGN_OR_RETURN(const std::string directory, state_in(arguments_.state));
    ASSIGN_OR_RETURN(state_, StateWeights::open(directory));
    RETURN_IF_ERROR(find_model(directory));
    if (arguments_.is_merged) RETURN_IF_ERROR(merge(directory));
    ASSIGN_OR_RETURN(const weights::CheckpointFiles files, files_to_write());
    return write(files);
  }

 private:
  // Before a long read.
  Status check_folder() const {
    std::error_code error;
    if (!fs::exists(fs::symlink_status(arguments_.folder, error))) return ok_status();
    return make_error(ErrorCode::config,
                      "{}: is there already, and an export goes over nothing; name another folder "
                      "with -o, or move this one away",
                      arguments_.folder);
  }

  // Training goes on from master weights, and 16 bits are not those.
  Status check_dtype() const {
    if (!arguments_.has_optimizer || arguments_.dtype == "fp32") return ok_status();
    return make_error(
        ErrorCode::config,
        "--optimizer goes with --dtype fp32, and not {}: the optimizer's arrays go on "
        "from the master weights, which only fp32 has; leave --dtype out, or export "
        "the {} weights without --optimizer to another folder",
        arguments_.dtype, arguments_.dtype);
  }

  // A state holds numbers; which model they are of stands beside it.
  Status find_model(const std::string& directory) {
    const std::optional<std::string> kept = weights::kept_model_above(directory);
    if (arguments_.model.empty() && !kept) {
      return make_error(ErrorCode::not_found,
                        "{}: no model lies beside this state (an older Sluice kept none); name "
                        "the one that it was trained as with --model",
                        directory);
    }
    const std::string path = arguments_.model.empty() ? *kept : arguments_.model;
    ASSIGN_OR_RETURN(shape_, weights::load_shape(path));
    source_ = arguments_.model.empty() ? fs::path(path).parent_path().string()
                                       : weights::hugging_face_folder(path).value_or("");
    RETURN_IF_ERROR(find_adapters(fs::path(path).parent_path().string(), directory));
    if (shape_.flat_layout().fingerprint() == state_->identity().model_fingerprint) {
      return ok_status();
    }
    return make_error(ErrorCode::config,
                      "{}: has other tensors than the state in {}, which is of model {}; name that "
                      "model with --model",
                      path, directory, state_->identity().model_name);
  }

  // Those that the state is of, where the run keeps what they are.
  Status find_adapters(const std::string& folder_of_model, const std::string& directory) {
    const std::optional<std::string> kept = weights::kept_model_above(directory);
    const std::string folder = kept ? fs::path(*kept).parent_path().string() : folder_of_model;
    std::error_code error;
    if (!fs::exists(folder + "/" + weights::kAdapterConfigFile, error)) return ok_status();
    ASSIGN_OR_RETURN(const weights::AdapterConfig adapters,
                     weights::load_adapter_config(folder, shape_.family));
    ASSIGN_OR_RETURN(shape_, model::with_adapters(shape_, adapters.choice));
    base_ = arguments_.model.empty() ? adapters.base : fs::absolute(source_).string();
    return ok_status();
  }

  // From here on the shape is the base's, and its weights are those with what the adapters add.
  Status merge(const std::string& directory) {
    if (!shape_.has_adapters() || arguments_.has_optimizer) {
      return make_error(ErrorCode::config, "{}: --merged {}", directory,
                        arguments_.has_optimizer
                            ? "goes without --optimizer: the optimizer's arrays are of adapters"
                            : "is for a state of adapters, and this one is of all parameters");
    }
    ASSIGN_OR_RETURN(found_base_, weights::open_checkpoint(base_, shape_));
    if (!found_base_) {
      return make_error(ErrorCode::not_found,
                        "{}: has no weights, and is the model that the adapters in {} were trained "
                        "on; say with --model where it is",
                        base_, directory);
    }
    RETURN_IF_ERROR(check_base(directory));
    std::vector<float> adapters;
    const auto take = [&adapters](std::span<const float> values) {
      adapters.insert(adapters.end(), values.begin(), values.end());
      return ok_status();
    };
    RETURN_IF_ERROR(state_->read_weights(0, shape_.flat_layout().parameter_count, take));
    merged_.emplace(shape_, *found_base_, std::move(adapters));
    shape_.lora = {};
    return ok_status();
  }

  // That of the state's first step.
  Status check_base(const std::string& directory) const {
    ASSIGN_OR_RETURN(const std::optional<session::RecipeHistory> history,
                     session::RecipeHistory::load(directory));
    if (!history) return ok_status();
    ASSIGN_OR_RETURN(const session::Fact fact, train::base_fact(*found_base_));
    settings::RunFiles files;
    files.model = base_;
    return train::check_origin(*history, {fact}, directory, files);
  }

  Status read_merged(std::int64_t first, std::int64_t count,
                     const weights::TakeElements& take) const {
    std::vector<float> piece;
    for (const std::int64_t end = first + count; first < end;) {
      piece.resize(static_cast<std::size_t>(std::min(kMergedElements, end - first)));
      RETURN_IF_ERROR(merged_->fill(first, piece));
      RETURN_IF_ERROR(take(piece));
      first += std::ssize(piece);
    }
    return ok_status();
  }

  Result<weights::CheckpointFiles> files_to_write() const {
    weights::CheckpointFiles files;
    files.folder = arguments_.folder;
    files.type = type_.type;
    ASSIGN_OR_RETURN(files.config, config());
    if (!source_.empty()) files.carried = weights::carried_files(source_);
    if (arguments_.has_optimizer) files.optimizer = optimizer_arrays();
    return files;
  }

  weights::OptimizerArrays optimizer_arrays() const {
    const state::StateIdentity& identity = state_->identity();
    const std::vector<std::string> names = state_->array_names();
    return {identity.optimizer,
            state_->optimizer_step(),
            {names.begin() + 1, names.end()},  // behind the master weights
            [this](std::int64_t first, std::int64_t count, const weights::TakeElements& take) {
              return state_->read_moments(first, count, take);
            }};
  }

  // The one that the run was begun from, or one made of the shape.
  Result<std::string> config() const {
    if (shape_.has_adapters()) return weights::adapter_config_text(shape_, base_);
    const std::string path = source_ + "/" + weights::kConfigFile;
    std::error_code error;
    if (source_.empty() || !fs::is_regular_file(path, error)) {
      return weights::config_text(shape_, type_.torch_word);
    }
    RETURN_IF_ERROR(weights::load_config(path));  // bounded, and of a class that is known
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return weights::with_dtype(text, path, type_.torch_word);
  }

  Status write(const weights::CheckpointFiles& files) {
    ProgressLine progress;
    const auto written = weights::write_checkpoint(
        files, shape_,
        [this](std::int64_t first, std::int64_t count, const weights::TakeElements& take) {
          return merged_ ? read_merged(first, count, take)
                         : state_->read_weights(first, count, take);
        },
        [&progress](std::int64_t done, std::int64_t total) {
          progress.show(static_cast<double>(done) / static_cast<double>(total),
                        fmt::format("{} of {} written", format_bytes(done), format_bytes(total)));
          return is_interrupted()
                     ? Status(make_error(ErrorCode::cancelled, "stopped; nothing was exported"))
                     : ok_status();
        });
    progress.finish();
    RETURN_IF_ERROR(written);
    print_lines(wrapped(summary(*written), terminal_columns(), "  "));
    return ok_status();
  }

  std::string summary(const weights::WrittenCheckpoint& written) const {
    const auto files = [](std::int64_t size_bytes, std::size_t count) {
      return fmt::format("{} in {} file{}", format_bytes(size_bytes), count, count == 1 ? "" : "s");
    };
    const std::string text =
        fmt::format("{}: the {} of step {} of {}, {} parameters as {}, {}", arguments_.folder,
                    shape_.has_adapters() ? "adapters"
                    : merged_             ? "merged weights"
                                          : "weights",
                    state_->step(), shape_.name,
                    format_count(static_cast<double>(shape_.flat_layout().parameter_count)),
                    arguments_.dtype, files(written.size_bytes, written.file_count));
    if (!arguments_.has_optimizer) return text;
    return text + fmt::format(
                      "; the state of {} after {} update{}, {}. The fp32 weights are the master "
                      "weights: they and the state go on together",
                      state_->identity().optimizer, state_->optimizer_step(),
                      state_->optimizer_step() == 1 ? "" : "s",
                      files(written.optimizer_bytes, written.optimizer_file_count));
  }

  const ExportArguments& arguments_;
  NamedType type_ = kNamedTypes.back();
  std::unique_ptr<StateWeights> state_;
  model::ModelShape shape_;
  std::optional<weights::Checkpoint> found_base_;  // with --merged
  std::optional<weights::MergedWeights> merged_;
  std::string base_;    // of adapters: the folder of the model that they are trained on
  std::string source_;  // folder with a config.json, if any, and the tokenizer's files
};

}  // namespace

void add_weights_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command =
      app.add_subcommand("weights", "Write a run's weights as a folder that transformers opens");
  command->require_subcommand(1);
  command->footer("Example: sluice weights export out/tiny -o tiny-hf --dtype bf16");
  CLI::App* of_export = command->add_subcommand(
      "export", "Master weights of the last commit as safetensors, with config.json");
  of_export
      ->add_option("state", arguments->state, "the run's folder (OUTPUT), or a state's directory")
      ->required();
  of_export->add_option("-o,--output", arguments->folder, "the folder to make")->required();
  std::vector<std::string> words;
  for (const NamedType& type : kNamedTypes) words.emplace_back(type.word);
  of_export
      ->add_option("--dtype", arguments->dtype,
                   "bf16, fp16 or fp32; fp32 is what the state has, the others are rounded")
      ->capture_default_str()
      ->check(CLI::IsMember(words));
  of_export->add_flag("--optimizer", arguments->has_optimizer,
                      "also the optimizer's arrays, as optimizer.safetensors with torch's names; a "
                      "new run begins with them by --set optimizer_state=FOLDER");
  of_export->add_flag("--merged", arguments->is_merged,
                      "of a state of adapters (lora_rank): the model's weights with what they add, "
                      "in the place of the adapters");
  of_export->add_option("--model", arguments->model,
                        "the model that the state was trained as, where the run has kept none: a "
                        "model file, or a folder of Hugging Face's");
  of_export->footer(
      "Examples:\n"
      "  sluice weights export out/tiny -o tiny-hf\n"
      "  sluice weights export out/tiny/snapshots/step-100 -o tiny-hf --dtype bf16\n"
      "  sluice weights export out/tiny -o tiny-hf --optimizer\n"
      "  sluice weights export out/lora -o tiny-hf --merged");
  of_export->callback([arguments, &exit_code] {
    install_interrupt_handler();
    const Status status = ExportCommand(*arguments).run();
    if (!status.ok()) exit_code = report_error(status.error());
  });
}

}  // namespace sluice::cli
