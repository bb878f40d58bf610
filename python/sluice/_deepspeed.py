"""A configuration of DeepSpeed's, answered by what its fields are here."""

import difflib
import json
import pathlib

from sluice._error import Error

# Session's tensors begin at multiples of it (core/session/tensor_table.h).
PAGE_ELEMENTS = 2048

LOOP = "the program's own, as without DeepSpeed"
NOTHING = "nothing to say: "
ON_REQUEST = NOTHING + "every run is recorded (record=off leaves it out)"


class FromDeepSpeed:
    """`settings`: keywords for sluice.AdamW, `state` among them where the file names a drive.
    `answers`: (field, value, answer) for each field of the file, in its order; as text a table."""

    def __init__(self):
        self.settings = {}
        self.answers = []

    def __str__(self):
        rows = [(field, short(value), answer) for field, value, answer in self.answers]
        widths = [max(len(row[column]) for row in rows) for column in (0, 1)] if rows else [0, 0]
        lines = [f"{a:{widths[0]}}  {b:{widths[1]}}  {c}" for a, b, c in rows]
        call = ", ".join(f"{key}={value!r}" for key, value in self.settings.items())
        return "\n".join([*lines, f"sluice.AdamW(params, {call})"])


def short(value):
    text = json.dumps(value)
    return text if len(text) <= 24 else text[:21] + "..."


def from_deepspeed(config, state=None):
    """`config`: the path of a ds_config.json, or its dictionary. `state`: the folder, where the
    file's nvme_path is not to have it. An unknown field is an error that names it."""
    found = FromDeepSpeed()
    fields = config if isinstance(config, dict) else read(config)
    flat = dict(flattened(fields))
    for field, value in flat.items():
        if field not in ANSWERS and not field.startswith("scheduler.params."):
            raise Error(unknown(field))
        answer = ANSWERS.get(field, LOOP)
        found.answers.append((field, value, answer(found, value, flat) if callable(answer)
                              else answer))
    if state is not None:
        found.settings["state"] = str(state)
    return found


def read(path):
    try:
        fields = json.loads(pathlib.Path(path).read_text())
    except OSError as error:
        raise Error(f"{path}: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise Error(f"{path}: no JSON at line {error.lineno}, column {error.colno}: {error.msg}") \
            from None
    if not isinstance(fields, dict):
        raise Error(f"{path}: a configuration of DeepSpeed is an object")
    return fields


def flattened(fields, prefix=""):
    for key, value in fields.items():
        if isinstance(value, dict) and value:
            yield from flattened(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def unknown(field):
    near = difflib.get_close_matches(field, ANSWERS, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{field}: no field of DeepSpeed's that is known here{hint}"


# Answers ------------------------------------------------------------------------------------------


def setting(key, convert=lambda value: value):
    def answer(found, value, _):
        if value == "auto":
            return LOOP
        found.settings[key] = convert(value)
        return f"{key}={found.settings[key]}"
    return answer


def whole_pages(elements):
    return max(1, round(float(elements) / PAGE_ELEMENTS)) * PAGE_ELEMENTS


def drive(found, value, _):
    found.settings["state"] = str(pathlib.PurePath(value) / "sluice")
    return f"state={found.settings['state']!r}; a list of folders spreads it over drives"


def optimizer_device(found, value, _):
    if value == "nvme":
        return "the optimizer's state lies in state="
    found.settings["state_cache"] = "auto"
    return "state_cache=auto: the state lies in state=, and as much of it in memory as the cap has"


def parameter_device(_, value, __):
    return ("parameters stay where the program has them" if value in ("none", None) else
            "parameters stay where the program has them: they are not offloaded")


def stage(_, value, __):
    return (f"stage {value}: under DistributedDataParallel each rank has a share of the "
            "optimizer's state, on its drives; parameters and gradients stay whole")


def ratio(found, value, _):
    if float(value) == 1:
        return NOTHING + "all of the state lies on the drives"
    found.settings["state_cache"] = "auto"
    return "state_cache=auto: as much of the state in memory as the cap has"


def pipeline(found, value, flat):
    base = "zero_optimization.offload_optimizer."
    both = [flat.get(base + name, False) for name in ("pipeline_read", "pipeline_write")]
    found.settings["pipeline"] = "nbuffer" if any(both) else "serial"
    return f"pipeline={found.settings['pipeline']}"


def optimizer_type(_, value, __):
    if str(value).lower() not in ("adamw", "adam"):
        raise Error(f"optimizer.type: {value}; sluice has AdamW, SGD and Adagrad")
    return "sluice.AdamW" + ("" if str(value).lower() == "adamw" else
                             ": decay apart from the gradient, as DeepSpeed's Adam has it, too")


def decoupled(_, value, __):
    if value is not True:
        raise Error("optimizer.params.adam_w_mode: decay as a part of the gradient is not there; "
                    "sluice.AdamW has it apart")
    return "sluice.AdamW"


def clipping(_, value, __):
    return LOOP + ": clip_grad_norm_ before step(), or Trainer's max_grad_norm"


ZERO = "zero_optimization."
OFFLOAD = ZERO + "offload_optimizer."
ANSWERS = {
    ZERO + "stage": stage,
    OFFLOAD + "device": optimizer_device,
    OFFLOAD + "nvme_path": drive,
    OFFLOAD + "buffer_count": setting("buffers", int),
    OFFLOAD + "pin_memory": NOTHING + "buffers are registered with the drives",
    OFFLOAD + "pipeline_read": pipeline,
    OFFLOAD + "pipeline_write": pipeline,
    OFFLOAD + "pipeline": pipeline,
    OFFLOAD + "fast_init": NOTHING + "the state is written at the first step",
    OFFLOAD + "ratio": ratio,
    OFFLOAD + "super_offload": NOTHING + "updates go on beside reads and writes",
    OFFLOAD + "cpuadam_cores_perc": "threads= and worker_threads= say it",
    ZERO + "offload_param.device": parameter_device,
    **{ZERO + "offload_param." + name: "parameters stay where the program has them"
       for name in ("nvme_path", "buffer_count", "buffer_size", "max_in_cpu", "pin_memory")},
    ZERO + "sub_group_size": setting("subgroup_elements", whole_pages),
    **{ZERO + name: NOTHING + "nothing is gathered or scattered"
       for name in ("overlap_comm", "contiguous_gradients", "reduce_bucket_size", "reduce_scatter",
                    "allgather_partitions", "allgather_bucket_size", "stage3_prefetch_bucket_size",
                    "stage3_param_persistence_threshold", "stage3_max_live_parameters",
                    "stage3_max_reuse_distance", "round_robin_gradients",
                    "stage3_gather_16bit_weights_on_model_save")},
    "aio.block_size": setting("io_bytes", int),
    "aio.queue_depth": setting("queue_depth", int),
    **{"aio." + name: NOTHING + "one io_uring a drive does it (io_engine=)"
       for name in ("thread_count", "intra_op_parallelism", "single_submit", "overlap_events",
                    "use_gds")},
    "bf16.enabled": "the parameters' dtype says it; master weights are fp32",
    "fp16.enabled": "the parameters' dtype says it; torch.amp.GradScaler scales the loss",
    **{"fp16." + name: "torch.amp.GradScaler has it"
       for name in ("loss_scale", "initial_scale_power", "loss_scale_window", "hysteresis",
                    "min_loss_scale", "auto_cast", "consecutive_hysteresis")},
    "gradient_clipping": clipping,
    **{name: LOOP for name in ("gradient_accumulation_steps", "train_micro_batch_size_per_gpu",
                               "train_batch_size", "scheduler.type", "steps_per_print",
                               "zero_allow_untested_optimizer", "prescale_gradients")},
    "optimizer.type": optimizer_type,
    "optimizer.params.lr": setting("lr", float),
    "optimizer.params.betas": setting("betas", tuple),
    "optimizer.params.eps": setting("eps", float),
    "optimizer.params.weight_decay": setting("weight_decay", float),
    "optimizer.params.adam_w_mode": decoupled,
    "optimizer.params.torch_adam": NOTHING + "the update is one kernel",
    "optimizer.params.bias_correction": NOTHING + "it is always there",
    "wall_clock_breakdown": ON_REQUEST,
    "dump_state": ON_REQUEST,
    "flops_profiler.enabled": ON_REQUEST,
}
