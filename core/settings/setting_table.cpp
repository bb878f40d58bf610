// One list, in the order people read it: long because there are that many settings, and in one
// place so that a key, its range and its sentence are never said twice.

#include "core/settings/detail/setting_table.h"

#include <array>

#include "core/model/window_shape.h"

namespace sluice::settings::detail {
namespace {

constexpr std::int64_t kMebi = 1 << 20;
// The optimizer's numbers are fp32 where they are used; beyond these they would be 0 or infinite.
constexpr double kFp32Min = 1e-30;
constexpr double kFp32Max = 1e30;
// A petabyte: sums of some of them stay within 64 bits.
constexpr double kBytesMax = 1e15;

constexpr Range between(double min, double max) { return {.min = min, .max = max}; }
constexpr Range auto_or_between(double min, double max) {
  return {.min = min, .max = max, .automatic = true};
}
constexpr Range from_to_below(double min, double max) {
  return {.min = min, .max = max, .open_max = true};
}
constexpr Range whole_pages(double max) {
  return {.min = static_cast<double>(kPageBytes), .max = max, .multiple = kPageBytes};
}
constexpr Range kNone{};

template <typename Enum>
WordField word_field(Enum& value, std::initializer_list<std::pair<const char*, Enum>> words) {
  WordField field;
  for (const auto& [word, meaning] : words) {
    field.words.emplace_back(word, static_cast<int>(meaning));
  }
  field.current = static_cast<int>(value);
  field.assign = [&value](int meaning) { value = static_cast<Enum>(meaning); };
  return field;
}

#define AT(member) [](RunConfig& config) -> Field { return &config.member; }
#define WORDS(member, ...) \
  [](RunConfig& config) -> Field { return word_field(config.member, {__VA_ARGS__}); }
#define WORD(word, meaning) \
  std::pair { word, meaning }

using enum SettingType;
using enum Decides;

const Setting kSettings[] = {
    {"name", "run", own, text, AT(files.name), kNone, "",
     "Name of the run; by default that of the file, without .toml."},
    {"model", "run", origin, path, AT(files.model), kNone, "",
     "Model file: the shape of the model; or a folder of Hugging Face's, with its weights.", true},
    {"optimizer_state", "run", own, path, AT(files.optimizer_state), kNone, "",
     "Folder with optimizer.safetensors, whose moments a new state begins with (docs/weights.md); "
     "by default they begin at zero."},
    {"platform", "run", own, path, AT(files.platform), kNone, "",
     "Platform file: devices, links and engines.", true},
    {"text", "run", origin, path, AT(files.text), kNone, "",
     "The text to learn; its bytes are the tokens. Or a token file (docs/tokens.md).", true},
    {"text_format", "run", together, word,
     WORDS(files.text_format, WORD("auto", TextFormat::automatic), WORD("bytes", TextFormat::bytes),
           WORD("sluice", TextFormat::sluice), WORD("llmc", TextFormat::llm_c),
           WORD("nanogpt", TextFormat::nanogpt)),
     kNone, "",
     "How that file is read: as bytes, or as tokens of Sluice, llm.c or nanoGPT. auto goes by its "
     "first bytes; what has no known beginning is nanoGPT's if its name ends in .bin, else bytes."},
    {"output", "run", own, path, AT(files.output), kNone, "",
     "Folder for what the run writes; by default out/NAME in the working directory."},
    {"state_dir", "run", own, path, AT(files.state_directory), kNone, "",
     "Folder of the optimizer state; by default OUTPUT/state."},
    {"db", "run", own, path, AT(files.database), kNone, "",
     "The run database; by default OUTPUT/run.db."},
    {"record", "run", together, word,
     WORDS(record, WORD("off", record::Level::off), WORD("steps", record::Level::steps),
           WORD("transfers", record::Level::transfers), WORD("all", record::Level::all)),
     kNone, "", "What goes into the database; each level adds to the one before."},
    {"record_steps", "run", own, integer, AT(record_steps), between(0, 1e9), "steps",
     "Steps at the end of the run that the database keeps in full; of those before them it keeps "
     "the rows of step and coarse levels of detail. 0 keeps all in full."},
    {"record_size", "run", own, bytes, AT(record_size_bytes), between(0, kBytesMax), "bytes",
     "Size that the database may have: fewer steps are kept in full where it would be passed. 0 is "
     "no limit."},
    {"record_samples", "run", own, integer, AT(record_samples), between(0, 1000),
     "samples a second",
     "How often the call chain of each thread that runs goes into the database, and with it how "
     "long threads ran, waited and were preempted (docs/sampling.md). 0 samples nothing."},

    {"batch", "batch", numbers, integer, AT(batch.batch), between(1, 65536), "sequences",
     "Sequences in a micro-batch."},
    {"sequence", "batch", numbers, integer, AT(batch.sequence), between(1, 1 << 20), "tokens",
     "Tokens in a sequence; at most the model's (docs/model_format.md)."},
    {"grad_accum_steps", "batch", numbers, integer, AT(batch.grad_accum_steps), between(1, 65536),
     "micro-batches", "Micro-batches whose gradients are added up for one update."},

    {"steps", "schedule", together, integer, AT(schedule.steps), between(1, 1e9), "steps",
     "The step at which the run ends, counted from the very first one, also after a resume."},
    {"seed", "schedule", origin, integer, AT(schedule.seed), between(0, 9007199254740992.0), "",
     "Gives the first weights and the order of the text."},
    {"lr", "schedule", numbers, number, AT(update.lr), between(kFp32Min, kFp32Max), "",
     "Learning rate after warm-up."},
    {"min_lr", "schedule", numbers, number, AT(schedule.min_lr), between(0, kFp32Max), "",
     "Learning rate at the end of the cosine."},
    {"warmup_steps", "schedule", numbers, integer, AT(schedule.warmup_steps), between(0, 1e9),
     "steps", "Steps over which the learning rate rises linearly."},
    {"schedule_steps", "schedule", numbers, integer, AT(schedule.schedule_steps), between(0, 1e9),
     "steps", "Step at which the cosine ends; 0 means `steps`."},

    {"optimizer", "optimizer", numbers, word,
     WORDS(update.rule, WORD("adamw", RuleKind::adamw), WORD("sgd", RuleKind::sgd),
           WORD("adagrad", RuleKind::adagrad)),
     kNone, "", "The update rule: AdamW, SGD with momentum or AdaGrad."},
    {"beta1", "optimizer", numbers, number, AT(update.beta1), from_to_below(0, 1), "",
     "Decay of the first moment (adamw only)."},
    {"beta2", "optimizer", numbers, number, AT(update.beta2), from_to_below(0, 1), "",
     "Decay of the second moment (adamw only)."},
    {"momentum", "optimizer", numbers, number, AT(update.momentum), from_to_below(0, 1), "",
     "Part of the last update's direction that is kept (sgd only)."},
    {"eps", "optimizer", numbers, number, AT(update.eps), between(kFp32Min, kFp32Max), "",
     "Added to the root of the second moment (adamw) or of the sum of squares (adagrad)."},
    {"weight_decay", "optimizer", numbers, number, AT(update.weight_decay), between(0, 1), "",
     "Decay of every parameter: apart from the gradient (adamw), or as a part of it (L2)."},
    {"max_grad_norm", "optimizer", numbers, number, AT(arithmetic.max_grad_norm),
     between(0, kFp32Max), "",
     "The gradients' global norm is clipped to this; 0 means no clipping."},

    {"precision", "arithmetic", numbers, word,
     WORDS(arithmetic.precision, WORD("bf16", ParameterKind::bf16),
           WORD("fp16", ParameterKind::fp16), WORD("fp32", ParameterKind::fp32)),
     kNone, "",
     "The format of parameters, forward and backward; fp16 uses a dynamic loss scale, and in fp32 "
     "the parameters are the master weights."},
    {"initial_loss_scale", "arithmetic", together, number, AT(loss_scale.initial),
     between(1, 4294967296.0), "", "Loss scale of the first step (fp16 only)."},
    {"loss_scale_growth_interval", "arithmetic", numbers, integer, AT(loss_scale.growth_interval),
     between(1, 1e9), "steps", "Good steps in a row before the loss scale doubles (fp16 only)."},
    {"min_loss_scale", "arithmetic", numbers, number, AT(loss_scale.smallest), between(1e-9, 65536),
     "", "The loss scale falls no further than to this (fp16 only)."},
    {"max_skipped_steps", "arithmetic", together, integer, AT(arithmetic.max_skipped_steps),
     between(1, 1e9), "steps",
     "So many steps in a row that are skipped for overflow end the run where no loss scale helps: "
     "it is at its smallest, or the loss itself is not finite (fp16 only)."},
    {"activations", "arithmetic", together, layers, AT(arithmetic.activations), kNone, "",
     "What forward computes for backward: keep it, recompute it layer by layer, offload it to the "
     "drives, or offload_inputs: only the input of each layer, which is recomputed from there. A "
     "mix names layers, such as offload:1-3,recompute:4-7,keep; the last word is for all others. "
     "Layer 0 is the embedding, the last one the head; tables that are cut are several layers each "
     "(docs/model_format.md)."},
    {"activation_buffer", "arithmetic", own, bytes, AT(arithmetic.activation_buffer_bytes),
     between(0, kBytesMax), "bytes",
     "Host memory that offloaded activations take on their way to and from the drives, beside the "
     "layer that is computed; 0 means twice the widest layer's. If all of them fit into what is "
     "asked for, nothing moves."},
    {"activation_host", "arithmetic", own, bytes, AT(arithmetic.activation_host_bytes),
     between(0, kBytesMax), "bytes",
     "Host memory for offloaded activations that go no further: what backward needs first stays in "
     "it, up to so much, and the rest goes to the drives. Needs an accelerator: what the processor "
     "computes is in host memory already."},

    {"documents", "objective", numbers, word,
     WORDS(objective.documents, WORD("together", model::Documents::together),
           WORD("apart", model::Documents::apart)),
     kNone, "",
     "Whether a token sees the other documents of its window. apart: it sees its own alone, where "
     "positions begin anew; the token file says where documents begin (docs/tokens.md)."},
    {"mask_token", "objective", numbers, integer, AT(objective.mask_token), between(-1, 2e9), "",
     "The token that hides another from a model that looks both ways (family bert): 103 in BERT's "
     "own vocabularies. Such a model cannot be trained without, unless it classifies; no other one "
     "has a use for it."},
    {"mask_share", "objective", numbers, number, AT(objective.mask_share), between(1e-3, 1), "",
     "Part of the tokens that such a model has to answer: 80 % of them are hidden, 10 % are others "
     "by chance, and 10 % stay."},
    {"sentinel_token", "objective", numbers, integer, AT(objective.sentinel_token),
     between(-1, 2e9), "",
     "The token that stands in the place of the first span that is taken out of a text, for a "
     "model "
     "with a decoder (family t5); the next spans' are the tokens below it. 32099 in T5's own "
     "vocabularies. Such a model cannot be trained without; no other one has a use for it."},
    {"span_share", "objective", numbers, number, AT(objective.span_share), between(0.01, 0.9), "",
     "Part of a text's tokens that are in spans that such a model has to answer. With "
     "'span_length' "
     "and 'sequence', the tokens of a source, it says how long texts and targets are."},
    {"span_length", "objective", numbers, number, AT(objective.span_length), between(1, 1000),
     "tokens", "Mean length of these spans."},

    {"lora_rank", "lora", origin, integer, AT(lora.rank), between(0, 65536), "",
     "Rank of the low-rank adapters that are trained in the place of all parameters, whose weights "
     "stay as they are (docs/lora.md); 0: there are none, and all parameters are trained."},
    {"lora_alpha", "lora", origin, number, AT(lora.alpha), between(1e-6, 1e6), "",
     "Divided by lora_rank it is the factor on what an adapter adds."},
    {"lora_targets", "lora", origin, text, AT(lora.targets), kNone, "",
     "The linear layers that have an adapter: ends of their names with commas between, such as "
     "q_proj,v_proj or layers.1*.mlp.*, or all-linear; by default those that PEFT takes for the "
     "family."},
    {"lora_adapter", "lora", own, path, AT(lora.adapter), kNone, "",
     "Folder in PEFT's layout whose adapter a new state begins with; by default what adapters add "
     "is zero at first."},

    {"validation_every", "validation", together, integer, AT(validation.every_steps),
     between(0, 1e9), "steps", "Steps between validations; 0 means only at the end."},
    {"validation_batches", "validation", together, integer, AT(validation.batches), between(1, 1e6),
     "batches", "Batches in a validation, or as many as the held-out text gives."},
    {"validation_fraction", "validation", numbers, number, AT(validation.fraction),
     between(1e-9, 0.5), "", "Part of the text's end that is held out."},

    {"sample_tokens", "sample", together, integer, AT(sample.tokens), between(0, 65536), "tokens",
     "Tokens of text written by the model at the end; 0 means none."},
    {"sample_prompt", "sample", together, text, AT(sample.prompt), kNone, "",
     "What that text begins with."},
    {"temperature", "sample", together, number, AT(sample.temperature), between(0, 10), "",
     "How freely tokens are drawn; 0 takes the likeliest token each time."},

    {"method", "offload", own, word,
     WORDS(offload.method, WORD("host", Method::host), WORD("csd", Method::csd)), kNone, "",
     "Update on the host (state crosses the host link) or on the devices (it does not)."},
    {"backend", "offload", own, word,
     WORDS(offload.backend, WORD("emulated", Backend::emulated), WORD("xrt", Backend::xrt)), kNone,
     "",
     "What the devices of method=csd are: emulated by files and host memory, or cards (SmartSSDs) "
     "that XRT drives. A simulation has neither."},
    {"xclbin", "offload", own, path, AT(offload.xclbin), kNone, "",
     "With backend=xrt: the file that the cards are programmed with; it holds the update kernels "
     "(docs/hls.md)."},
    {"device_patience", "offload", own, number, AT(offload.device_patience), between(0.001, 86400),
     "seconds",
     "What a card (backend=xrt) or an accelerator has not ended after so long ends the run, by "
     "name."},
    {"pipeline", "offload", own, word,
     WORDS(offload.pipeline, WORD("serial", Pipeline::serial), WORD("handover", Pipeline::handover),
           WORD("nbuffer", Pipeline::nbuffer)),
     kNone, "", "How read, update and write of the subgroups overlap (docs/offload.md)."},
    {"buffers", "offload", own, integer, AT(offload.buffers), between(1, 64), "subgroups",
     "Subgroups that may be under way at once in each device (pipeline=nbuffer)."},
    {"devices", "offload", own, integer, AT(offload.devices), between(1, 1024), "devices",
     "How many of the platform's devices are used."},
    {"accelerators", "offload", own, integer, AT(offload.accelerators), between(0, 64),
     "accelerators",
     "How many of the platform's accelerators share forward and backward; 0 means all. With the "
     "real clock `device` says what computes."},
    {"device_map", "offload", own, shares, AT(offload.device_shares), kNone, "",
     "Each device's share of the subgroups: even, or one number a device, such as 3,1,1,1. The "
     "share 0 drains a device: after the next commit nothing is left on it, and a resume with "
     "fewer "
     "devices can do without it."},
    {"subgroup_elements", "offload", numbers, integer, AT(offload.subgroup_elements),
     between(1, 17179869184.0), "elements", "Size of a subgroup, the unit of transfer and update."},
    {"state_format", "offload", numbers, word,
     WORDS(offload.state_format.kind, WORD("fp32", StateFormatKind::fp32),
           WORD("exact", StateFormatKind::exact), WORD("compact", StateFormatKind::compact)),
     kNone, "",
     "How optimizer state is stored: in fp32; exact, without what the 16-bit parameters say "
     "already, which changes no number; or compact, in a third of the bytes, which changes numbers "
     "(docs/compact_state.md)."},
    {"remainder_bits", "offload", numbers, integer, AT(offload.state_format.remainder_bits),
     between(8, 16), "bits",
     "With state_format=compact: what is stored of a master weight beside the 16-bit parameter, 16 "
     "bits or 8."},
    {"wire", "offload", own, word,
     WORDS(offload.wire, WORD("fp32", Wire::fp32), WORD("native", Wire::native)), kNone, "",
     "Gradients and parameters on the host link: fp32, or 16 bits where that loses nothing."},
    {"gradient_tier", "offload", own, word,
     WORDS(offload.gradient_tier, WORD("storage", GradientTier::storage),
           WORD("memory", GradientTier::memory)),
     kNone, "",
     "Where gradients wait for the update; memory needs room for all of them, and method=host."},
    {"parameter_tier", "offload", together, word,
     WORDS(offload.parameters, WORD("memory", ParameterTier::memory),
           WORD("storage", ParameterTier::storage)),
     kNone, "",
     "Where the parameters are: all of them in host memory, or on the drives, from which a "
     "layer comes before its forward and again before its backward (docs/parameters.md)."},
    {"parameter_buffer", "offload", own, bytes, AT(offload.parameter_buffer_bytes),
     between(0, kBytesMax), "bytes",
     "With parameter_tier=storage: host memory that layers' parameters take, beside those of the "
     "embedding where its table is whole; at least the widest layer. 0 means twice the widest "
     "layer."},
    {"density", "offload", numbers, number, AT(offload.density), Range{.min = 1e-6, .max = 1}, "",
     "Part of each gradient's elements that is sent, the largest; 1 sends all, uncompressed."},
    {"density_warmup_steps", "offload", numbers, integer, AT(offload.density_warmup_steps),
     between(0, 1e9), "steps",
     "Steps over which the density falls from 1 to `density`, in four stages."},
    {"error_feedback", "offload", numbers, boolean, AT(offload.error_feedback), kNone, "",
     "With density below 1: what is not sent is added to the next gradient (4 B a parameter)."},
    {"gradient_work", "offload", own, word,
     WORDS(offload.gradient_work, WORD("host", offload::GradientWork::host),
           WORD("accelerator", offload::GradientWork::accelerator)),
     kNone, "",
     "Who checks gradients and selects the largest: the host, to which all of them come, or the "
     "accelerator, from which only what is sent comes (docs/accelerator.md)."},
    {"prefetch", "offload", own, boolean, AT(offload.prefetch), kNone, "",
     "Read the first subgroups' state while backward still runs."},
    {"replan", "offload", own, boolean, AT(offload.replan), kNone, "",
     "Plan again when the drives have become slower or faster by a quarter, and turn the knobs "
     "that "
     "the plan turns; no plan changes a training result (docs/tuning.md)."},
    {"overlap", "offload", numbers, word,
     WORDS(offload.overlap, WORD("off", offload::Overlap::off),
           WORD("exact", offload::Overlap::exact), WORD("local", offload::Overlap::local)),
     kNone, "",
     "Update during backward: exact updates a subgroup as soon as its own gradients are final, and "
     "once more where the step turns out to be clipped or skipped; local clips each by its own "
     "norm, so none waits for the others: other numbers than overlap=off (docs/offload.md)."},
    {"commit_every", "offload", together, integer, AT(offload.commit_every), between(1, 1000),
     "steps",
     "Steps from one commit of the state to the next; a crash loses those since the last one "
     "(docs/offload.md)."},
    {"state_cache", "offload", own, bytes, AT(offload.state_cache_bytes),
     auto_or_between(0, kBytesMax), "bytes",
     "Memory that keeps optimizer state between steps: of the host in all (method=host), or of "
     "each "
     "device (method=csd). auto is what the memory plan leaves under host_memory and device_memory "
     "(docs/offload.md)."},
    {"bounce_memory", "offload", own, bytes, AT(offload.bounce_memory_bytes),
     between(8.0 * kMebi, 1e12), "bytes",
     "Host memory that gradients wait in until their drives have taken them."},

    {"shard_parameters", "shards", together, text, AT(shards.parameters), kNone, "",
     "Over how many ranks the parameters are sharded: ranks of a node x nodes, such as 4x1; "
     "1x1: each rank has all. A layer is gathered before it is computed (docs/sharding.md)."},
    {"shard_gradients", "shards", together, text, AT(shards.gradients), kNone, "",
     "The same of the gradients: the scope of the parameters or of the state."},
    {"shard_state", "shards", together, text, AT(shards.state), kNone, "",
     "The same of the optimizer state: each rank updates its part, on its own drives, and sends "
     "the "
     "updated parameters to the others. One word for all three may be a scheme, such as zero1, or "
     "auto: the planner chooses for the platform's cluster."},
    {"mesh", "shards", together, text, AT(shards.mesh), kNone, "",
     "Ranks of a node x nodes; auto: as the launcher has placed them."},
    {"shard_overlap", "shards", together, text, AT(shards.overlap), kNone, "",
     "What ranks bring to one another beside computing: all, none, or some of gather_forward, "
     "gather_backward, reduce_backward and share_forward, with commas (docs/sharding.md)."},
    {"rank_patience", "shards", own, number, AT(shards.patience), between(1, 86400), "seconds",
     "With several ranks: a rank that the others have waited for so long, and that gives no sign "
     "of having come, is named, and the run ends (docs/more_than_one_machine.md). Longer than one "
     "rank may take over what the others have already done."},

    {"io_engine", "storage", own, word,
     WORDS(storage.engine, WORD("io_uring", io::IoEngineKind::io_uring),
           WORD("posix", io::IoEngineKind::posix)),
     kNone, "", "How the kernel is asked; posix is for machines that forbid io_uring."},
    {"caching", "storage", own, word,
     WORDS(storage.caching, WORD("direct", io::Caching::direct),
           WORD("buffered", io::Caching::buffered)),
     kNone, "", "O_DIRECT, or through the page cache where the file system has no O_DIRECT."},
    {"queue_depth", "storage", own, integer, AT(storage.queue_depth), between(1, 4096), "requests",
     "Requests in flight on each file of a device and in each direction."},
    {"io_bytes", "storage", own, bytes, AT(storage.io_bytes), whole_pages(64.0 * kMebi), "bytes",
     "Size of one request; a whole number of pages."},
    {"durability", "storage", own, word,
     WORDS(storage.durability, WORD("every_commit", state::Durability::every_commit),
           WORD("never", state::Durability::never)),
     kNone, "",
     "When the state is forced to the drives; never means that only a crash of the program, not "
     "of the machine, leaves it whole."},

    {"clock", "clock", together, word,
     WORDS(clock.kind, WORD("real", ClockKind::real), WORD("emulated", ClockKind::emulated)), kNone,
     "", "As fast as this machine is, or no faster than the platform file says."},
    {"time_scale", "clock", together, number, AT(clock.time_scale), between(0.001, 1e6), "",
     "The modelled hardware is this many times slower (emulated clock only)."},

    {"host_memory", "resources", own, bytes, AT(resources.host_memory_bytes), between(0, kBytesMax),
     "bytes",
     "The run stays below this much resident memory, or refuses to start; 0 means all that this "
     "process may have. No more than a limit of its own or of its cgroups (docs/guide.md)."},
    {"device_memory", "resources", own, bytes, AT(resources.device_memory_bytes),
     between(0, kBytesMax), "bytes",
     "Memory of each device that a run may use; 0 means what the platform file says."},
    {"device", "resources", numbers, text, AT(resources.device), kNone, "",
     "What computes forward and backward: cpu, a GPU (cuda, cuda:1), or soft, a software "
     "accelerator that stands in for one (docs/accelerator.md)."},
    {"accelerator_memory", "resources", own, bytes, AT(resources.accelerator_memory_bytes),
     between(0, kBytesMax), "bytes",
     "Memory of that device that a run may use, unless it is cpu; 0 means all it has."},
    {"threads", "resources", own, integer, AT(resources.threads), between(0, 1024), "threads",
     "Threads that compute; 0 means one for each processor that this process may use."},
    {"worker_threads", "resources", own, integer, AT(resources.worker_threads), between(0, 1024),
     "threads", "Threads that update, check and copy; 0 means as many as `threads`."},
};

#undef AT
#undef WORDS
#undef WORD

}  // namespace

std::span<const Setting> setting_table() { return kSettings; }

const Setting* find_setting(std::string_view key) {
  for (const Setting& setting : kSettings) {
    if (setting.key == key) return &setting;
  }
  return nullptr;
}

std::span<const std::string_view> knob_keys() {
  static constexpr std::array<std::string_view, 19> kKnobs = {
      "method",        "pipeline",    "buffers",           "device_map",     "wire",
      "gradient_tier", "density",     "error_feedback",    "prefetch",       "overlap",
      "commit_every",  "state_cache", "bounce_memory",     "queue_depth",    "io_bytes",
      "record",        "activations", "activation_buffer", "activation_host"};
  return kKnobs;
}

std::vector<std::string> setting_keys() {
  std::vector<std::string> keys;
  for (const Setting& setting : kSettings) keys.emplace_back(setting.key);
  return keys;
}

}  // namespace sluice::settings::detail
