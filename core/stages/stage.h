#pragma once
// The stages of a run, declared once (D16). Stage names are folder names are span names. A new
// stage is an enumerator and a row of kStages, and nothing else: recording, flows, analysis, views,
// exports, the page and the window read what it is from here, or from table `stage` of the run
// database, which is written from here.
//
// Thread contract: constants.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/colour.h"

namespace sluice::stages {

enum class Stage : std::uint8_t {
  host_work,        // a program's own, around forward and backward: its data, its log, its clipping
  batch_in,         // a micro-batch's tokens, or a part, to an accelerator
  parameter_read,   // a part of a layer's parameters, from a drive
  parameter_check,  // whether it is what was written; into their place
  layer_in,         // a layer's parameters, or a part, to an accelerator
  peer_in,          // the parts of the other accelerators
  all_gather,       // a layer's parameters from the ranks that have a part of them each
  forward,          // one layer, one micro-batch
  activation_out,   // what a layer keeps for its backward, from an accelerator to host memory
  activation_sum,   // its checksums
  activation_write,  // the same, to a drive
  activation_read,   // and back to host memory
  activation_check,  // whether what is back is what left
  activation_in,     // the same, to an accelerator
  loss_out,          // a micro-batch's loss, from an accelerator to host memory
  backward,          // the same, downwards
  reduce_scatter,    // a layer's gradients, summed over those ranks, to each its part
  all_reduce,        // a bucket of gradients, summed over the ranks that have the same part
  gradient_out,      // a layer's gradients, or what is sent of them, from an accelerator
  residual_in,       // error feedback's residual, or what goes back into it, to an accelerator
  residual_out,      // the residual from an accelerator, to be kept
  take_gradient,     // a gradient that a program has computed, copied from its memory
  gradient,          // overflow check and norm of a layer's gradients
  compress,          // the largest elements of a layer's gradients, selected
  stage_gradient,    // gradients into a bounce buffer, in the wire's format
  gradient_down,     // bounce buffer to the owner's drive
  state_read,        // the arrays of the state to where they are updated
  gradient_read,     // the subgroup's gradients to the same place
  update,            // the optimizer's kernel
  state_write,       // the next version of the arrays of the state
  parameters_up,     // updated parameters to the host
  parameters_in,     // updated parameters to where forward reads them
  parameter_write,   // updated parameters to the drive that they are read from
  broadcast,         // updated parameters from the rank that owns them to those that hold them
  commit,            // the new versions become current
  commit_ranks,      // and those of all other ranks have
  create_state,      // before the first step: the initial state, over the host link
  load_state,        // on resume: master weights, over the host link
  move_state,        // state from the drive of another device, where the subgroup lay so far
  validate,          // loss of held-out text
  sample,            // text from the model
  count_,
};
inline constexpr std::size_t kStageCount = static_cast<std::size_t>(Stage::count_);
constexpr std::size_t index_of(Stage stage) { return static_cast<std::size_t>(stage); }

enum class StageKind : std::uint8_t { transfer, kernel };

// Where it runs. `device`: the device of the operation, or the host where a kernel runs on the
// host's engine. `accelerator`: between host memory and one; `peer`: between two of them; `ranks`:
// between this rank and others.
enum class StagePlace : std::uint8_t { compute, host, device, accelerator, peer, ranks };

// The files that a device's drive keeps; each is a lane of its own: a new one is an enumerator and
// a name.
enum class DriveFile : std::uint8_t { state, gradients, activations, parameters, count_ };
inline constexpr std::size_t kDriveFileCount = static_cast<std::size_t>(DriveFile::count_);
inline constexpr std::array<const char*, kDriveFileCount> kDriveFileNames = {
    "state.slc", "gradients.slc", "activations.slc", "parameters.slc"};
constexpr const char* drive_file_name(DriveFile file) {
  return kDriveFileNames[static_cast<std::size_t>(file)];
}

// Which part of a step ends with it. `parameters`: the updated parameters are where forward reads
// them, from which on a step's forward counts.
enum class StagePhase : std::uint8_t { none, forward, backward, parameters };

// The cause that a stage spends a step's time on, in a verdict, wherever it runs. `by_track`: a
// transfer on its fullest link, a kernel on what runs it.
enum class StageCause : std::uint8_t { by_track, compression, commit, ranks, program };

// Which rate of its engine a kernel is charged by (docs/platform_format.md).
enum class StageRate : std::uint8_t { none, layer, stage, checksum, compress, rule };

// The latest operation of this stage sets one off: of the same subgroup, of the same layer, or any.
enum class SetOffBy : std::uint8_t { subgroup, layer, any };
struct StageTrigger {
  Stage stage = Stage::count_;  // count_: none
  SetOffBy of = SetOffBy::any;
};
inline constexpr std::size_t kTriggersMax = 7;

struct StageInfo {
  Stage stage = Stage::count_;
  std::string_view name = {};
  StageKind kind = StageKind::kernel;
  StagePlace place = StagePlace::host;
  StagePhase phase = StagePhase::none;
  std::uint32_t colour = 0;  // 0xRRGGBB, on a dark and on a light page
  // Between a device's drive and the host or the engine; none: past the drive, or no transfer.
  std::optional<DriveFile> file = {};
  StageCause cause = StageCause::by_track;
  bool every_step = true;  // false: as a run begins, at a change, or now and then
  std::array<StageTrigger, kTriggersMax> set_off_by = {};  // those that a run has
  StageRate rate = StageRate::none;
};

// docs/offload.md draws what sets off what.
inline constexpr std::array<StageInfo, kStageCount> kStages = [] {
  using enum Stage;
  using enum StageKind;
  using enum StagePlace;
  using enum SetOffBy;
  using Phase = StagePhase;
  namespace colour = palette;
  return std::array<StageInfo, kStageCount>{{
      {.stage = host_work,
       .name = "host_work",
       .colour = colour::kProgram,
       .cause = StageCause::program},
      {.stage = batch_in,
       .name = "batch_in",
       .kind = transfer,
       .place = accelerator,
       .colour = colour::kHostLink},
      {.stage = parameter_read,
       .name = "parameter_read",
       .kind = transfer,
       .place = device,
       .colour = colour::kRead,
       .file = DriveFile::parameters,
       .set_off_by = {{{parameter_write, any}}}},
      {.stage = parameter_check,
       .name = "parameter_check",
       .colour = colour::kHostKernel,
       .set_off_by = {{{parameter_read, layer}}},
       .rate = StageRate::stage},
      {.stage = layer_in,
       .name = "layer_in",
       .kind = transfer,
       .place = accelerator,
       .colour = colour::kHostLink,
       .set_off_by = {{{parameter_check, layer}}}},
      {.stage = peer_in,
       .name = "peer_in",
       .kind = transfer,
       .place = peer,
       .colour = colour::kHostLink},
      {.stage = all_gather,
       .name = "all_gather",
       .kind = transfer,
       .place = ranks,
       .colour = colour::kRanks,
       .cause = StageCause::ranks,
       .set_off_by = {{{broadcast, any}}}},
      {.stage = forward,
       .name = "forward",
       .place = compute,
       .phase = Phase::forward,
       .colour = colour::kForward,
       .set_off_by = {{{layer_in, layer},
                       {batch_in, any},
                       {parameter_check, layer},
                       {parameters_in, any},
                       {parameters_up, any},
                       {all_gather, layer},
                       {broadcast, any}}},
       .rate = StageRate::layer},
      {.stage = activation_out,
       .name = "activation_out",
       .kind = transfer,
       .place = accelerator,
       .colour = colour::kHostLink,
       .set_off_by = {{{forward, layer}}}},
      {.stage = activation_sum,
       .name = "activation_sum",
       .colour = colour::kHostKernel,
       .set_off_by = {{{forward, layer}, {activation_out, layer}}},
       .rate = StageRate::checksum},
      {.stage = activation_write,
       .name = "activation_write",
       .kind = transfer,
       .place = device,
       .colour = colour::kWrite,
       .file = DriveFile::activations,
       .set_off_by = {{{activation_sum, layer}}}},
      {.stage = activation_read,
       .name = "activation_read",
       .kind = transfer,
       .place = device,
       .colour = colour::kRead,
       .file = DriveFile::activations,
       .set_off_by = {{{activation_write, layer}}}},
      {.stage = activation_check,
       .name = "activation_check",
       .colour = colour::kHostKernel,
       .set_off_by = {{{activation_read, layer}}},
       .rate = StageRate::checksum},
      {.stage = activation_in,
       .name = "activation_in",
       .kind = transfer,
       .place = accelerator,
       .colour = colour::kHostLink,
       .set_off_by = {{{activation_check, layer}}}},
      {.stage = loss_out,
       .name = "loss_out",
       .kind = transfer,
       .place = accelerator,
       .colour = colour::kHostLink,
       .set_off_by = {{{forward, layer}}}},
      {.stage = backward,
       .name = "backward",
       .place = compute,
       .phase = Phase::backward,
       .colour = colour::kBackward,
       .set_off_by = {{{layer_in, layer},
                       {parameter_check, layer},
                       {activation_check, layer},
                       {activation_in, layer},
                       {all_gather, layer}}},
       .rate = StageRate::layer},
      {.stage = reduce_scatter,
       .name = "reduce_scatter",
       .kind = transfer,
       .place = ranks,
       .phase = Phase::backward,
       .colour = colour::kRanks,
       .cause = StageCause::ranks,
       .set_off_by = {{{backward, layer}}}},
      {.stage = all_reduce,
       .name = "all_reduce",
       .kind = transfer,
       .place = ranks,
       .phase = Phase::backward,
       .colour = colour::kRanks,
       .cause = StageCause::ranks,
       .set_off_by = {{{backward, any}, {gradient_out, any}, {reduce_scatter, any}}}},
      {.stage = gradient_out,
       .name = "gradient_out",
       .kind = transfer,
       .place = accelerator,
       .colour = colour::kHostLink,
       .set_off_by = {{{backward, layer}, {gradient, layer}, {compress, layer}}}},
      {.stage = residual_in,
       .name = "residual_in",
       .kind = transfer,
       .place = accelerator,
       .colour = colour::kHostLink,
       .every_step = false},
      {.stage = residual_out,
       .name = "residual_out",
       .kind = transfer,
       .place = accelerator,
       .colour = colour::kHostLink,
       .every_step = false},
      {.stage = take_gradient,
       .name = "take_gradient",
       .phase = Phase::backward,
       .colour = colour::kHostKernel},
      {.stage = gradient,
       .name = "gradient",
       .phase = Phase::backward,
       .colour = colour::kHostKernel,
       .set_off_by = {{{backward, layer},
                       {take_gradient, layer},
                       {gradient_out, layer},
                       {all_reduce, layer}}},
       .rate = StageRate::stage},
      {.stage = compress,
       .name = "compress",
       .phase = Phase::backward,
       .colour = colour::kCompress,
       .cause = StageCause::compression,
       .set_off_by = {{{gradient, layer}}},
       .rate = StageRate::compress},
      {.stage = stage_gradient,
       .name = "stage_gradient",
       .phase = Phase::backward,
       .colour = colour::kHostKernel,
       .set_off_by = {{{gradient, layer}, {compress, any}, {gradient_out, layer}}},
       .rate = StageRate::stage},
      {.stage = gradient_down,
       .name = "gradient_down",
       .kind = transfer,
       .place = device,
       .phase = Phase::backward,
       .colour = colour::kHostLink,
       .file = DriveFile::gradients,
       .set_off_by = {{{stage_gradient, subgroup}}}},
      {.stage = state_read,
       .name = "state_read",
       .kind = transfer,
       .place = device,
       .colour = colour::kRead,
       .file = DriveFile::state},
      {.stage = gradient_read,
       .name = "gradient_read",
       .kind = transfer,
       .place = device,
       .colour = colour::kRead,
       .file = DriveFile::gradients,
       .set_off_by = {{{gradient_down, subgroup}}}},
      {.stage = update,
       .name = "update",
       .place = device,
       .phase = Phase::parameters,
       .colour = colour::kUpdate,
       .set_off_by = {{{gradient_read, subgroup},
                       {state_read, subgroup},
                       {move_state, subgroup},
                       {all_reduce, any}}},
       .rate = StageRate::rule},
      {.stage = state_write,
       .name = "state_write",
       .kind = transfer,
       .place = device,
       .colour = colour::kWrite,
       .file = DriveFile::state,
       .set_off_by = {{{update, subgroup}}}},
      {.stage = parameters_up,
       .name = "parameters_up",
       .kind = transfer,
       .place = device,
       .phase = Phase::parameters,
       .colour = colour::kParameters,
       .set_off_by = {{{update, subgroup}}}},
      {.stage = parameters_in,
       .name = "parameters_in",
       .phase = Phase::parameters,
       .colour = colour::kParameters,
       .set_off_by = {{{parameters_up, subgroup}}},
       .rate = StageRate::stage},
      {.stage = parameter_write,
       .name = "parameter_write",
       .kind = transfer,
       .place = device,
       .phase = Phase::parameters,
       .colour = colour::kParameters,
       .file = DriveFile::parameters,
       .set_off_by = {{{update, subgroup}}}},
      {.stage = broadcast,
       .name = "broadcast",
       .kind = transfer,
       .place = ranks,
       .phase = Phase::parameters,
       .colour = colour::kRanks,
       .cause = StageCause::ranks,
       .set_off_by = {{{update, any}}}},
      {.stage = commit,
       .name = "commit",
       .colour = colour::kCommit,
       .cause = StageCause::commit,
       .set_off_by = {{{state_write, any}}}},
      {.stage = commit_ranks,
       .name = "commit_ranks",
       .place = ranks,
       .colour = colour::kRanks,
       .cause = StageCause::ranks,
       .set_off_by = {{{commit, any}}}},
      {.stage = create_state,
       .name = "create_state",
       .kind = transfer,
       .place = device,
       .colour = colour::kWrite,
       .file = DriveFile::state,
       .every_step = false},
      {.stage = load_state,
       .name = "load_state",
       .kind = transfer,
       .place = device,
       .colour = colour::kRead,
       .file = DriveFile::state,
       .every_step = false},
      {.stage = move_state,
       .name = "move_state",
       .kind = transfer,
       .place = device,
       .colour = colour::kWrite,
       .file = DriveFile::state,
       .every_step = false},
      {.stage = validate,
       .name = "validate",
       .place = compute,
       .colour = colour::kForward,
       .every_step = false},
      {.stage = sample,
       .name = "sample",
       .place = compute,
       .colour = colour::kForward,
       .every_step = false},
  }};
}();

constexpr const StageInfo& stage_info(Stage stage) { return kStages[index_of(stage)]; }
constexpr std::string_view stage_name(Stage stage) { return stage_info(stage).name; }

namespace detail {
// A hole in the table, a row in another's place or a name that stands twice does not compile.
constexpr bool are_stages_whole() {
  for (std::size_t s = 0; s < kStageCount; ++s) {
    const StageInfo& info = kStages[s];
    if (index_of(info.stage) != s || info.name.empty() || info.colour == 0) return false;
    if (info.file && info.kind != StageKind::transfer) return false;
    for (std::size_t other = 0; other < s; ++other) {
      if (kStages[other].name == info.name) return false;
    }
  }
  return true;
}
}  // namespace detail
static_assert(detail::are_stages_whole());

// The words of table `stage`: docs/rundb_schema.md. "" is NULL there.
constexpr std::string_view word_of(StageKind kind) {
  return kind == StageKind::transfer ? "transfer" : "kernel";
}
constexpr std::string_view word_of(StagePlace place) {
  constexpr std::array<std::string_view, 6> kWords = {"compute",     "host", "device",
                                                      "accelerator", "peer", "ranks"};
  return kWords[static_cast<std::size_t>(place)];
}
constexpr std::string_view word_of(StagePhase phase) {
  constexpr std::array<std::string_view, 4> kWords = {"", "forward", "backward", "parameters"};
  return kWords[static_cast<std::size_t>(phase)];
}
constexpr std::string_view word_of(DriveFile file) {
  constexpr std::array<std::string_view, kDriveFileCount> kWords = {"state", "gradients",
                                                                    "activations", "parameters"};
  return kWords[static_cast<std::size_t>(file)];
}
constexpr std::string_view word_of(StageCause cause) {
  constexpr std::array<std::string_view, 5> kWords = {"", "compression", "commit", "ranks",
                                                      "program"};
  return kWords[static_cast<std::size_t>(cause)];
}
constexpr std::string_view word_of(SetOffBy of) {
  constexpr std::array<std::string_view, 3> kWords = {"subgroup", "layer", "any"};
  return kWords[static_cast<std::size_t>(of)];
}

}  // namespace sluice::stages
