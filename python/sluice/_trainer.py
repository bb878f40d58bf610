"""The optimizer under Hugging Face's Trainer."""

import json
import os
import pathlib

from sluice._error import Error
from sluice._optimizer import OnDrives
from sluice._rules import AdamW

STATE_DICT = "optimizer.pt"


def for_trainer(args, **keywords):
    """`Trainer(..., optimizer_cls_and_kwargs=sluice.for_trainer(args, state="/nvme0/run"))`: lr,
    betas and eps of its TrainingArguments, which Trainer does not hand on by itself. Trainer makes
    the groups, with their weight decay."""
    return AdamW, {"lr": args.learning_rate, "betas": (args.adam_beta1, args.adam_beta2),
                   "eps": args.adam_epsilon, **keywords}


def attach(trainer, modules=None):
    """Figures of the optimizer's under `sluice/` in each row of Trainer's log, for whoever reports
    it; an end of training where somebody asks the run to stop (`sluice stop`); and the state keeps
    the steps of Trainer's checkpoints for as long as these are there (`save_total_limit`). For the
    record: epochs and the losses of evaluations, and the model's `modules` as OnDrives.watch takes
    them."""
    # Not above: transformers takes seconds to import, and who has a Trainer has it.
    from transformers import TrainerCallback

    class Reporter(TrainerCallback):
        def on_evaluate(self, args, state, control, metrics=None, **others):
            optimizer = optimizer_of(others.get("optimizer"))
            loss = loss_of_evaluation(metrics or {})
            if optimizer is not None and loss is not None:
                optimizer.note(validation_loss=loss)

        def on_step_end(self, args, state, control, **others):
            optimizer = optimizer_of(others.get("optimizer"))
            if optimizer is not None:
                optimizer.note(epoch=state.epoch)
            if optimizer is not None and optimizer.is_stopping:
                control.should_training_stop = True
                control.should_save = True

        # Behind a resume, and once a checkpoint is whole and old ones are gone.
        def on_train_begin(self, args, state, control, model=None, **others):
            optimizer = optimizer_of(others.get("optimizer"))
            if optimizer is not None and modules is not None:
                optimizer.watch(model, modules)
            keep_checkpoint(args, state, others)

        def on_save(self, args, state, control, **others):
            keep_checkpoint(args, state, others)

        def on_log(self, args, state, control, logs=None, **others):
            optimizer = optimizer_of(others.get("optimizer"))
            if optimizer is None or logs is None or "loss" not in logs:
                return
            figures = {f"sluice/{key}": value for key, value in optimizer.figures().items()}
            logs |= figures
            state.log_history[-1] |= figures  # a copy that Trainer has made

    # In front: those behind it report what it adds.
    trainer.callback_handler.callbacks.insert(0, Reporter())
    return trainer


def loss_of_evaluation(metrics):
    """"eval_loss", or with several sets of data "eval_NAME_loss"."""
    losses = [value for key, value in metrics.items() if key.endswith("_loss")]
    return losses[0] if losses else None


def keep_checkpoint(args, state, others):
    """For the folder that Trainer saves the step in, where its state dict went there."""
    optimizer = optimizer_of(others.get("optimizer"))
    folder = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
    if optimizer is not None and os.path.exists(os.path.join(folder, STATE_DICT)):
        optimizer.keep_for(folder)


def last_checkpoint(output_dir):
    """The newest of Trainer's checkpoints that is whole, for `resume_from_checkpoint`; None where
    there is none. A program that was killed while it saved leaves one that is not."""
    found = []
    for folder in pathlib.Path(output_dir).glob("checkpoint-*"):
        step = folder.name.removeprefix("checkpoint-")
        if step.isdigit() and is_whole(folder):
            found.append((int(step), str(folder)))
    return max(found)[1] if found else None


def is_whole(folder):
    """Trainer writes its own state last."""
    try:
        json.loads((folder / "trainer_state.json").read_text())
    except (OSError, ValueError):
        return False
    return (folder / STATE_DICT).exists()


def optimizer_of(optimizer):
    """Ours, that accelerate may have wrapped; none before there is one."""
    if optimizer is None:
        return None
    inner = getattr(optimizer, "optimizer", optimizer)
    if not isinstance(inner, OnDrives):
        raise Error(f"sluice.attach: the Trainer's optimizer is {type(inner).__name__}; give it "
                    "optimizer_cls_and_kwargs=sluice.for_trainer(args, state=...)")
    return inner
