#!/usr/bin/env python3
"""A program that uses the Python package has in its run's record what it does between the
optimizer's calls: forward, backward, its own work, its losses and tokens, and the same analyses as
any other run."""

import copy
import gc
import json
import math
import pickle
import subprocess
import sys
import time

from python_package import (PACKAGE, loss_of, make_model, package, package_test,
                            python_with_transformers, refusal, torch, train)
from sluice_run import (LIMIT_S, database, main, only_with_all, require, require_equal,
                        require_words, sluice)

STEPS = 8


class Words(torch.nn.Module if torch else object):
    """A model that is called as those of transformers are."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.embed = torch.nn.Embedding(50, 64)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(3))
        self.head = torch.nn.Linear(64, 50)

    def forward(self, input_ids, labels=None, attention_mask=None, num_items_in_batch=None):
        x = self.embed(input_ids)
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        logits = self.head(x)
        if labels is None:
            return {"logits": logits}
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten(),
            reduction="mean" if num_items_in_batch is None else "sum")
        return {"logits": logits, "loss": loss / (num_items_in_batch or 1)}


def batch(number):
    generator = torch.Generator().manual_seed(number)
    return torch.randint(0, 50, (16, 32), generator=generator)


def optimizer_of(model, folder, **settings):
    return package.AdamW(model.named_parameters(), state=folder, lr=1e-3, threads=1, **settings)


def step_with(model, optimizer, number, pause=0.002, **keywords):
    time.sleep(pause)  # its data loader
    ids = batch(number)
    loss = model(input_ids=ids, labels=ids, **keywords)["loss"]
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def rows(folder, query):
    with database(folder / "run.db") as db:
        return db.execute(query).fetchall()


def spans(folder):
    """By name: kind of track, how many, of how many layers, seconds."""
    found = rows(folder, "SELECT value, kind, count(*), count(DISTINCT layer_id), sum(dur) / 1e9 "
                 "FROM span JOIN string ON string.id = name_id JOIN track ON track.id = track_id "
                 "GROUP BY 1, 2")
    return {name: rest for name, *rest in found}


def column(folder, name):
    return [row[0] for row in rows(folder, f"SELECT {name} FROM step ORDER BY id")]


@package_test
def a_loop_without_a_setting_is_recorded(place):
    model = Words()
    optimizer = optimizer_of(model, place / "run")
    losses = [step_with(model, optimizer, number) for number in range(STEPS)]
    optimizer.close()
    require_equal([round(loss, 6) for loss in column(place / "run", "loss")],
                  [round(loss, 6) for loss in losses], "losses")
    require_equal(column(place / "run", "tokens"), [16 * 32] * STEPS, "tokens")
    found = spans(place / "run")
    # The state is opened by the first gradient: what was before is of no step.
    require_equal(found["forward"][:3], ["compute", STEPS - 1, 0], "forwards")
    require_equal((found["backward"][0], found["backward"][2]), ("compute", 9), "backwards")
    require_equal(found["take_gradient"][1], 9 * STEPS, "gradients")
    require(found["host_work"][3] > 0.002 * (STEPS - 1), f"the program's own work: {found}")
    phases = rows(place / "run", "SELECT forward_dur, backward_dur, update_dur FROM step_phase "
                  "WHERE forward_dur NOTNULL")
    require_equal(len(phases), STEPS - 1, "steps with phases")
    require(min(min(phase) for phase in phases) > 0, f"phases: {phases}")
    shares = dict(rows(place / "run", "SELECT cause, avg(share) FROM verdict GROUP BY 1"))
    require(shares["compute"] > 0 and shares["program"] > 0, f"causes: {shares}")
    shown = sluice("show", place / "run").done().out
    require_words(shown, ["forward, backward", "data and host work"], "sluice show")
    require("nan" not in shown.lower(), f"sluice show: {shown}")


@package_test
def what_other_settings_would_do_is_predicted(place):
    model = Words()
    optimizer = optimizer_of(model, place / "run")
    for number in range(STEPS):
        step_with(model, optimizer, number)
    optimizer.close()
    shown = sluice("show", place / "run").done().out
    require_words(shown, ["Turn next", "simulated"], "sluice show")
    require_words(sluice("tune", place / "run/run.db").done().out,
                  ["host adamw", "SIMULATED: run", "combinations were simulated"], "sluice tune")
    step = sluice("simulate", "--like", place / "run/run.db", "--set", "buffers=4", "--json")
    require("forward" in json.dumps(step.done().json()), f"a step like it: {step.out}")
    refused = sluice("tune", place / "run/run.db", "--set", "overlap=local")
    require_words(refused.err, ["overlap=local does not go with a session"], "overlap=local")


@package_test
def modules_are_recorded_by_name(place):
    for modules, names in ((1, {"embed", "head"}),
                           ("layers.?", {"layers.0", "layers.1", "layers.2"}),
                           (True, {"embed", "head", "layers.0", "layers.1", "layers.2"})):
        model = Words()
        folder = place / f"run{len(names)}"
        optimizer = optimizer_of(model, folder)
        optimizer.watch(model, modules=modules)
        for number in range(3):
            step_with(model, optimizer, number)
        optimizer.close()
        found = spans(folder)
        require_equal({name for name, span in found.items() if span[0] == "module"}, names,
                      f"modules={modules}")
        require_equal(found["forward"][1], 2, "forwards")
    require_words(refusal(lambda: optimizer.watch(model, modules="layer.*")),
                  ["layer.*", "layers.0"], "a pattern that fits nothing")
    require_words(refusal(lambda: optimizer.watch([model])), ["watch()", "list"], "no model")


@package_test
def what_forward_does_not_show_is_noted(place):
    model = make_model()
    optimizer = optimizer_of(model, place / "noted")
    optimizer.note(loss=1.0)  # before there is a state: of no step
    for number in range(4):
        loss_of(model, number).backward()
        if number % 2:
            optimizer.note(loss=0.5 + number, tokens=7)  # of this step
        optimizer.step()
        optimizer.zero_grad()
        if not number % 2:
            optimizer.note(loss=0.5 + number, epoch=number / 4)  # of the last one
    optimizer.note(validation_loss=0.125)
    require_words(refusal(lambda: optimizer.note(loss=9.0)), ["step 4"], "a loss that is known")
    optimizer.close()
    require_equal(column(place / "noted", "loss"), [0.5, 1.5, 2.5, 3.5], "losses")
    require_equal(column(place / "noted", "tokens"), [0, 7, 0, 7], "tokens")
    require_equal(rows(place / "noted", "SELECT step_id, loss FROM validation"), [(3, 0.125)],
                  "validations")
    epochs = rows(place / "noted", "SELECT value FROM counter JOIN track ON track.id = track_id "
                  "WHERE name = 'epoch'")
    require_equal(epochs, [(0.0,), (0.5,)], "epochs")
    model = make_model()
    optimizer = optimizer_of(model, place / "silent")
    train(model, optimizer, 2)
    optimizer.close()
    require_equal(column(place / "silent", "loss"), [None, None], "a loss that nobody knows")


@package_test
def micro_batches_are_one_step(place):
    for items in (None, 2 * 16 * 32):
        model = Words()
        optimizer = optimizer_of(model, place / str(items))
        wanted = []
        for step in range(3):
            losses = []
            for part in range(2):
                ids = batch(2 * step + part)
                mask = torch.ones_like(ids)
                mask[:, 16:] = 0
                losses.append(model(input_ids=ids, labels=ids, attention_mask=mask,
                                    num_items_in_batch=items)["loss"])
                (losses[-1] if items else losses[-1] / 2).backward()
            optimizer.step()
            optimizer.zero_grad()
            wanted.append(sum(loss.item() for loss in losses) / (1 if items else 2))
        with torch.no_grad():
            model.eval()
            loss = model(input_ids=ids, labels=ids)["loss"]
        optimizer.note(validation_loss=loss)
        optimizer.close()
        for found, loss in zip(column(place / str(items), "loss"), wanted, strict=True):
            require(math.isclose(found, loss, rel_tol=1e-6), f"items={items}: {found} {loss}")
        require_equal(column(place / str(items), "tokens"), [2 * 16 * 16] * 3, "tokens")
        require_equal(rows(place / str(items), "SELECT tokens FROM validation"), [(16 * 32,)],
                      "tokens of the validation")
        found = spans(place / str(items))
        require_equal((found["forward"][1], found["validate"][1]), (5, 1), "forwards")


@package_test
def hooks_keep_nothing_and_are_not_copied(place):
    model = Words()
    optimizer = optimizer_of(model, place / "run")
    for number in range(3):
        step_with(model, optimizer, number)
    other = copy.deepcopy(model)
    loaded = pickle.loads(pickle.dumps(model))
    for one in (other, loaded):
        one.eval()(input_ids=batch(0))
    optimizer.close()
    require("validate" not in spans(place / "run"), "a copy's forward was recorded")
    recording = optimizer._recording
    alive = [recording]
    del optimizer, recording
    gc.collect()
    require_equal(len(gc.get_referrers(alive[0])), 1, "who keeps a recording")
    alive.clear()
    step = torch.optim.SGD(model.parameters(), lr=0.1)
    require(step_with(model.train(), step, 0) > 0, "the model is not usable any more")
    hooks = torch.nn.modules.module._global_forward_pre_hooks
    require_equal(len(hooks), 0, "hooks of all modules")


TRAINER = """
import sys
sys.path.insert(0, {package!r})
import sluice, torch, transformers
folder = sys.argv[1]
torch.set_num_threads(1)
transformers.set_seed(0)
model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
    vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
    num_attention_heads=2, num_key_value_heads=2))
rows = [{{"input_ids": torch.arange(i, i + 16) % 64, "labels": torch.arange(i, i + 16) % 64}}
        for i in range(64)]
class Reporter(transformers.TrainerCallback):
    seen = []
    def on_log(self, args, state, control, logs=None, **others):
        self.seen.append(dict(logs))
args = transformers.TrainingArguments(
    output_dir=folder + "/out", max_steps=6, use_cpu=True, per_device_train_batch_size=2,
    gradient_accumulation_steps=2, logging_steps=1, report_to=[], disable_tqdm=True,
    save_strategy="no", eval_strategy="steps", eval_steps=3)
trainer = transformers.Trainer(
    model=model, args=args, train_dataset=rows, eval_dataset=rows[:4],
    callbacks=[Reporter()],
    optimizer_cls_and_kwargs=sluice.for_trainer(args, state=folder + "/run"))
sluice.attach(trainer, modules="model.layers.?")
trainer.train()
for row in trainer.state.log_history, Reporter.seen:
    assert [r["sluice/step"] for r in row if "loss" in r] == [1, 2, 3, 4, 5, 6], row
print(*[round(r["loss"], 3) for r in trainer.state.log_history if "loss" in r])
"""


@only_with_all("transformers takes ten seconds to start")
@package_test
def a_trainers_run_has_losses_epochs_and_validations(place):
    done = subprocess.run([python_with_transformers(), "-c", TRAINER.format(package=str(PACKAGE)),
                           str(place / "")], capture_output=True, text=True, timeout=LIMIT_S,
                          check=False)
    require_equal(done.returncode, 0, f"exit code: {done.stderr}")
    losses = [float(word) for word in done.stdout.splitlines()[-1].split()]
    for found, loss in zip(column(place / "run", "loss"), losses, strict=True):
        require(abs(found - loss) < 2e-3, f"losses {column(place / 'run', 'loss')}, {losses}")
    require_equal(column(place / "run", "tokens"), [4 * 16] * 6, "tokens")
    require_equal([step for step, in rows(place / "run", "SELECT step_id FROM validation")],
                  [2, 5], "validations")
    require_equal(spans(place / "run")["model.layers.0"][0], "module", "a layer")


if __name__ == "__main__":
    sys.exit(main())
