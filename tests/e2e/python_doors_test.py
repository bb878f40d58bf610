#!/usr/bin/env python3
"""The other doors of the Python package: SGD and Adagrad, configurations of DeepSpeed's, and what
a Trainer that sluice.attach() was given logs and ends with."""

import json
import re
import sys
import types

from python_package import (STEPS, loss_of, make_model, package, package_test, refusal,
                            require_close, require_same, torch, train, weights)
from sluice_run import ROOT, main, require, require_equal, require_words

RULES = {
    "SGD": {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01},
    "Adagrad": {"lr": 0.02, "weight_decay": 0.01},
}


@package_test
def sgd_and_adagrad_learn_what_torchs_do(place):
    for name, rates in RULES.items():
        model, other = make_model(), make_model()
        wanted = train(other, getattr(torch.optim, name)(other.parameters(), **rates), STEPS)
        ours = getattr(package, name)
        optimizer = ours(model.parameters(), state=place / name, **rates)
        first = train(model, optimizer, 20)
        optimizer.close()
        again = make_model()
        optimizer = ours(again.parameters(), state=place / name, **rates)
        require_same(weights(again), weights(model), f"{name}, opened again")
        require_close(first + train(again, optimizer, STEPS, 20), wanted, name)


@package_test
def an_update_that_is_not_there_is_refused(place):
    for make, words in (
            (lambda: package.SGD([torch.ones(1)], nesterov=True, state=place / "a"), ["nesterov"]),
            (lambda: package.Adagrad([torch.ones(1)], lr_decay=0.1, state=place / "b"),
             ["lr_decay", "scheduler"]),
            (lambda: package.SGD([torch.ones(1)], momentum=1.0, state=place / "c"), ["momentum"]),
            (lambda: package.AdamW([torch.ones(1)], momentum=0.5, state=place / "d"),
             ["momentum", "SGD"])):
        require_words(refusal(make), words, "a refusal")


DEEPSPEED = {
    "zero_optimization": {
        "stage": 3, "sub_group_size": 1e8,
        "offload_optimizer": {"device": "nvme", "buffer_count": 4, "pin_memory": True,
                              "pipeline_read": True, "pipeline_write": False, "ratio": 1.0}},
    "aio": {"block_size": 1048576, "queue_depth": 8, "thread_count": 1, "single_submit": False},
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": [0.9, 0.95], "eps": 1e-7,
                                              "weight_decay": 0.1}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 5}},
    "bf16": {"enabled": True}, "gradient_clipping": "auto", "train_batch_size": "auto",
}


@package_test
def a_configuration_of_deepspeeds_is_answered_field_by_field(place):
    DEEPSPEED["zero_optimization"]["offload_optimizer"]["nvme_path"] = str(place / "nvme")
    (place / "ds.json").write_text(json.dumps(DEEPSPEED))
    found = package.from_deepspeed(place / "ds.json")
    require_equal(found.settings, {
        "subgroup_elements": 99_999_744, "buffers": 4, "pipeline": "nbuffer",
        "state": str(place / "nvme/sluice"), "io_bytes": 1048576, "queue_depth": 8,
        "betas": (0.9, 0.95), "eps": 1e-7, "weight_decay": 0.1}, "settings")
    text = str(found)
    for field in ("zero_optimization.offload_optimizer.pin_memory", "aio.single_submit",
                  "scheduler.params.warmup_num_steps", "gradient_clipping"):
        require_words(text, [field], "its answers")
    require(all(answer for _, _, answer in found.answers), f"no answer to a field: {text}")

    model = make_model()
    optimizer = package.AdamW(model.parameters(), **found.settings | {"host_memory": "8GiB"})
    losses = train(model, optimizer, 3)
    require(losses[-1] < losses[0], f"nothing was learnt: {losses}")
    require((place / "nvme/sluice/run.db").exists(), "there is no record")


@package_test
def a_field_that_is_not_deepspeeds_is_named(place):
    for config, words in (({"aio": {"block_sise": 1}}, ["aio.block_sise", "aio.block_size"]),
                          ({"optimizer": {"type": "Lamb"}}, ["Lamb", "Adagrad"]),
                          ({"optimizer": {"params": {"adam_w_mode": False}}}, ["adam_w_mode"]),
                          ({"zero_optimisation": {}}, ["zero_optimisation"])):
        require_words(refusal(package.from_deepspeed, config), words, f"{config}")
    (place / "cut.json").write_text('{"aio": {')
    require_words(refusal(package.from_deepspeed, place / "cut.json"), ["cut.json", "line 1"],
                  "a file that is cut")
    require_words(refusal(package.from_deepspeed, place / "none.json"), ["none.json"], "missing")


def callback_of(trainer):
    package.attach(trainer)
    return trainer.callback_handler.callbacks[0]


@package_test
def a_trainers_log_has_figures_and_a_stop_ends_it(place):
    sys.modules.setdefault("transformers", types.SimpleNamespace(TrainerCallback=object))
    callbacks = ["of others"]
    callback = callback_of(types.SimpleNamespace(
        callback_handler=types.SimpleNamespace(callbacks=callbacks)))
    require_equal(callbacks[1:], ["of others"], "the callbacks behind ours")
    model = make_model()
    optimizer = package.AdamW(model.parameters(), state=place / "run")
    train(model, optimizer, 2)
    wrapped = types.SimpleNamespace(optimizer=optimizer)
    logs = {"loss": 1.0}
    # Trainer has put a copy of the row into its history already.
    state = types.SimpleNamespace(log_history=[dict(logs)], epoch=0.5)
    callback.on_log(None, state, None, logs=logs, optimizer=wrapped)
    require_equal(state.log_history, [logs], "Trainer's history")
    require_equal((logs["loss"], logs["sluice/step"]), (1.0, 2), "the log")
    require(logs["sluice/grad_norm"] > 0, f"{logs}")
    control = types.SimpleNamespace(should_training_stop=False, should_save=False)
    callback.on_step_end(None, state, control, optimizer=wrapped)
    require(not control.should_training_stop, "a run that nobody stops ends")
    optimizer.is_stopping = True
    callback.on_step_end(None, state, control, optimizer=wrapped)
    require(control.should_training_stop and control.should_save, "a stop was not heard")
    torchs = torch.optim.SGD(model.parameters())
    require_words(refusal(lambda: callback.on_step_end(None, state, control, optimizer=torchs)),
                  ["SGD", "for_trainer"], "another optimizer")


class PlainTrainer:
    """What of Hugging Face's Trainer the page's program needs."""

    def __init__(self, model, args, train_dataset, optimizer_cls_and_kwargs):
        self.model, self.args, self.data = model, args, train_dataset
        self.make, self.keywords = optimizer_cls_and_kwargs
        self.callback_handler = types.SimpleNamespace(callbacks=[])

    def train(self):
        self.optimizer = self.make(self.model.parameters(), **self.keywords)
        for number in range(len(self.data)):
            self.optimizer.zero_grad()
            loss_of(self.model, number).backward()
            self.optimizer.step()


class Answers(torch.nn.Module if torch else object):
    """A model that is called as those of transformers are."""

    def __init__(self):
        super().__init__()
        self.inner = make_model()

    def forward(self, number):
        return types.SimpleNamespace(loss=loss_of(self.inner, number))


@package_test
def the_pages_programs_run_as_they_stand(place):
    sys.modules.setdefault("transformers", types.SimpleNamespace(TrainerCallback=object))
    (place / "ds_config.json.page").write_text(json.dumps(DEEPSPEED | {
        "zero_optimization": {"offload_optimizer": {"device": "nvme",
                                                    "nvme_path": str(place / "ds")}}}))
    page = (ROOT / "docs/python.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    require_equal(len(programs), 4, "programs of docs/python.md")
    model = make_model()
    args = types.SimpleNamespace(learning_rate=1e-3, adam_beta1=0.9, adam_beta2=0.95,
                                 adam_epsilon=1e-8)
    names = {"Trainer": PlainTrainer, "args": args, "torch": torch, "print": lambda text: None}
    for number, program in enumerate(programs):
        named = program.replace("/nvme0/run", str(place / f"run{number}"))
        for name in ("/nvme1/run", "ds_config.json", "adamw.pt"):
            named = named.replace(name, str(place / name.split("/")[-1]) + ".page")
        here = names | ({"model": Answers(), "data": [{"number": i} for i in range(3)],
                         "scheduler": types.SimpleNamespace(step=lambda: None)}
                        if number == 0 else
                        {"model": model, "data": range(3), "params": model.parameters(),
                         "sluice": package})
        if number == 3:
            here["model"] = make_model()
            here["optimizer"] = package.AdamW(here["model"].named_parameters(),
                                              state=place / "left")
            train(here["model"], here["optimizer"], 3)
        exec(compile(named, f"docs/python.md, program {number + 1}", "exec"), here)
        optimizer = here.get("optimizer") or here["trainer"].optimizer
        require(number == 2 or optimizer.steps_done == 3, f"program {number + 1} took no steps")
        optimizer.close()


if __name__ == "__main__":
    sys.exit(main())
