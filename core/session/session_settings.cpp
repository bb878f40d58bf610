#include "core/session/session_settings.h"

#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <sstream>

#include "core/plan/run_plan.h"
#include "core/session/format_change.h"
#include "core/session/tensor_table.h"
#include "storage/state/state_store.h"

namespace sluice::session {
namespace {

// Settings whose work a session does not do, or that the program with the model does; left as they
// are, they ask for none.
constexpr std::array kNotInSessions = {"device",
                                       "backend",
                                       "gradient_work",
                                       "activations",
                                       "shard_parameters",
                                       "shard_gradients",
                                       "shard_state",
                                       "replan",
                                       "optimizer_state",
                                       "lora_rank",
                                       "batch",
                                       "sequence",
                                       "grad_accum_steps",
                                       "documents",
                                       "mask_token",
                                       "mask_share",
                                       "sentinel_token",
                                       "span_share",
                                       "span_length",
                                       "lora_alpha",
                                       "lora_targets",
                                       "lora_adapter",
                                       "validation_every",
                                       "validation_batches",
                                       "validation_fraction",
                                       "sample_tokens",
                                       "sample_prompt",
                                       "temperature",
                                       "text_format"};

std::string rates_text(std::span<const GroupRates> groups) {
  std::string text;
  const auto rate = [](const std::optional<double>& value) {
    return value ? fmt::format("{}", *value) : std::string("-");
  };
  for (const GroupRates& group : groups) {
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", rate(group.lr), rate(group.weight_decay));
    if (group.beta1) text += fmt::format(" beta1={}", *group.beta1);
    if (group.beta2) text += fmt::format(" beta2={}", *group.beta2);
    if (group.momentum) text += fmt::format(" momentum={}", *group.momentum);
    if (group.eps) text += fmt::format(" eps={}", *group.eps);
  }
  return text;
}

}  // namespace

Result<settings::RunConfig> config_of(const Session::Request& request) {
  settings::RunConfig start;
  start.files.model = start.files.text = plan::kNoModelFile;
  start.files.name = std::filesystem::path(request.folder).filename().string();
  std::vector<std::string> settings = {"output=" + request.folder};
  settings.insert(settings.end(), request.settings.begin(), request.settings.end());
  return settings::override_run_config(start, "session", settings, "setting");
}

Status check_goes_with_session(const settings::RunConfig& config) {
  if (config.files.platform.empty()) {
    return make_error(ErrorCode::config,
                      "a session needs \"platform=FILE\" among its settings; sluice calibrate -o "
                      "FILE makes one of this machine");
  }
  for (const char* key : kNotInSessions) {
    const std::string asked = settings::value_of(config, key);
    const std::string default_value = settings::value_of({}, key);
    if (asked == default_value) continue;
    return make_error(ErrorCode::config, "{}={} does not go with a session; set {}={}", key, asked,
                      key, default_value);
  }
  if (config.offload.overlap == offload::Overlap::local) {
    return make_error(
        ErrorCode::config,
        "overlap=local does not go with a session: its program clips all gradients by "
        "one norm, and that would clip each subgroup by its own; set overlap=exact or "
        "off");
  }
  if (config.offload.subgroup_elements % kPageElements == 0) return ok_status();
  return make_error(ErrorCode::config,
                    "subgroup_elements={}: a session's are multiples of {}, so that a gradient can "
                    "come in any order; the next one is {}",
                    config.offload.subgroup_elements, kPageElements,
                    round_up(config.offload.subgroup_elements, kPageElements));
}

Result<StartFrom> start_of(const std::string& directory) {
  RETURN_IF_ERROR(finish_format_change({.directory = directory}));
  if (!state::StateStore::exists(directory)) return StartFrom::new_state;
  const auto found = state::StateStore::open_read_only({.directory = directory});
  if (found.ok()) return StartFrom::last_commit;
  if (found.error().code() == ErrorCode::not_found) return StartFrom::new_state;
  return found.error();
}

std::string tensors_text(std::span<const Tensor> tensors) {
  std::string text;
  for (const Tensor& tensor : tensors) {
    if (tensor.is_frozen || !tensor.tied_to.empty()) continue;
    text += fmt::format("{} {} {}\n", tensor.group, fmt::join(tensor.shape, "x"), tensor.name);
  }
  return text;
}

Result<Session::Request> parse_tensors(const std::string& text) {
  Session::Request request;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Tensor tensor;
    std::string shape;
    words >> tensor.group >> shape >> std::ws;
    std::getline(words, tensor.name);
    for (const char* at = shape.data(); at < shape.data() + shape.size();) {
      std::int64_t& size = tensor.shape.emplace_back(0);
      const auto [end, error] = std::from_chars(at, shape.data() + shape.size(), size);
      if (error != std::errc() || size < 1) tensor.name.clear();
      at = end + 1;
    }
    constexpr std::size_t kGroupsMax = 1 << 20;  // more are a damaged file
    if (tensor.name.empty() || tensor.group >= kGroupsMax) {
      return make_error(ErrorCode::config, "\"{}\" is no tensor: GROUP SHAPE NAME", line);
    }
    request.groups.resize(std::max(request.groups.size(), tensor.group + 1));
    request.tensors.push_back(std::move(tensor));
  }
  return request;
}

Recipe recipe_of(const settings::RunConfig& config, const TensorTable& tensors,
                 std::span<const GroupRates> groups) {
  Recipe recipe = recipe_of_settings(config, [&](const std::string& key) {
    if (key != "model") return Recipe();
    return Recipe{{"tensors", fmt::format("{:016x}", tensors.layout().fingerprint()),
                   settings::Decides::origin}};
  });
  if (!tensors.groups_text().empty()) {
    recipe.push_back({"groups", tensors.groups_text(), settings::Decides::origin});
  }
  if (!groups.empty()) {
    recipe.push_back({"group_rates", rates_text(groups), settings::Decides::numbers});
  }
  recipe.push_back({"program", "sluice " SLUICE_VERSION, settings::Decides::numbers});
  return recipe;
}

}  // namespace sluice::session
