"""torch.optim.Optimizer on a session: the state on drives, the update by Sluice."""

import math
import sys
import time
import weakref

import torch

from sluice import _core
from sluice._error import Error
from sluice._folders import Folders
from sluice._recording import Recording
from sluice._reference import REFERENCE, check_groups, check_reference
from sluice._settings import checked, with_machine
from sluice._stream import Stream, leaves_memory, when_made
from sluice._tensors import precision_of, trained_tensors, without_repeats

GROUP_IDENTITY = ("params", "param_names")


def say(text):
    print(f"sluice: {text}", file=sys.stderr, flush=True)


class OnDrives(torch.optim.Optimizer):
    """An optimizer of torch's with its state in `state`: a folder, or one for each drive.
    `platform`: a platform file of the machine; without it the folders are plain drives, and the
    processor updates. `gradients`: "offload" (they leave memory during backward, and a handle
    stands for each) or "keep" (they stay until step()); left out: "offload", unless they are
    compressed. All else is a setting, as `sluice train --settings` lists them.

    `RULE` is the setting `optimizer`; `fixed_settings(group)` are the settings that follow from a
    group, and are the same for all groups and steps.

    Thread contract: that of torch's optimizers, one thread at a time."""

    RULE = ""

    @staticmethod
    def fixed_settings(group):
        raise NotImplementedError

    def __init__(self, params, defaults, *, state, platform=None, gradients=None, **settings):
        self._session = None  # before the first step of a new state, and after close()
        self._closed_at = None  # the step
        self._tensors = []
        self._stream = None
        self._grad_norm = math.nan  # of the last step, before its rates
        self._recording = Recording(weakref.WeakMethod(self._ids))
        self.is_stopping = False  # somebody has asked the run to stop (`sluice stop`)
        self._folders = Folders(state)
        self._settings = checked(settings, self._folders)
        self._platform = platform
        self._leaves = leaves_memory(gradients, self._settings)
        check_rates(defaults, "the optimizer")
        super().__init__(params, defaults)
        # A new state begins with the parameters as they are at the first gradient.
        if self._folders.has_state():
            self._open()
        self._recording.search()

    # What a program calls ------------------------------------------------------------------------

    @property
    def steps_done(self):
        """Those of the state, in all runs."""
        return self._session.step if self._session is not None else self._closed_at or 0

    def figures(self):
        """Of the last step, for a log: its number in the state, and the norm of what was sent."""
        return {"step": self.steps_done, "grad_norm": self._grad_norm}

    def watch(self, model, modules=None):
        """For the record: forward and backward of this model, which is found without it where the
        program calls it as a module. `modules`: True, so many levels below the model, or a pattern
        of names ("*.layers.*"): their forwards are recorded by name."""
        self._recording.watch(model, modules)

    def note(self, loss=None, tokens=None, epoch=None, validation_loss=None):
        """For the record, what the model's forward does not show. `loss` and `tokens`: before
        step(), of that step; behind it, of the last one. `validation_loss`: of the parameters as
        they are."""
        self._recording.note(loss, tokens, epoch, validation_loss)

    def add_param_group(self, param_group):
        if self._is_begun():
            raise Error("a group of parameters comes too late: the state has been opened "
                        f"({self._folders.run}); give all groups to the constructor")
        params = param_group["params"] if isinstance(param_group, dict) else param_group
        if isinstance(params, (list, tuple)) or hasattr(params, "__next__"):
            param_group["params"] = without_repeats(params)
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        check_rates(group, f"group {len(self.param_groups) - 1}")
        for parameter in group["params"]:
            if self._leaves and parameter.requires_grad:
                when_made(self, parameter)

    def take_gradient(self, parameter):
        """During backward: the parameter's gradient is there."""
        if self._closed_at is not None:
            return  # step() says so
        if self._session is None:
            self._open()
        self._stream.leave(parameter)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if not self._has_gradients():
            return loss
        if self._closed_at is not None:
            raise Error(f"the optimizer was closed after step {self._closed_at}; make it again, "
                        "which goes on from there")
        if self._session is None:
            self._open()
        self._check_step()
        self._take_step(loss)
        return loss

    def state_dict(self):
        """Of the groups what torch has; of the state which one it is, and its step, which is
        durable then, unless gradients of the next one have left memory already."""
        if self._session is not None and not self._stream.has_begun():
            self._session.make_durable()
        return super().state_dict() | {REFERENCE: self._reference()}

    def load_state_dict(self, state_dict):
        """Groups as they were; the state has to be the one that is meant already."""
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        check_reference(state_dict.get(REFERENCE), self._reference())
        check_groups(state_dict["param_groups"], self.param_groups)
        for group, saved in zip(self.param_groups, state_dict["param_groups"]):
            group.update({k: v for k, v in saved.items() if k not in GROUP_IDENTITY})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def close(self):
        """Commits, ends the run's record and lets go of the folder. The parameters stay as they
        are."""
        if self._session is None:
            return
        self._closing.detach()
        self._recording.ended()
        self._stream.end()
        self._stream = None
        session, self._session = self._session, None
        self._closed_at = session.step
        session.close()

    def __getstate__(self):
        raise Error("an optimizer whose state lies on drives cannot be copied; state_dict() refers "
                    "to its state")

    # How it does it ------------------------------------------------------------------------------

    def _is_begun(self):
        return self._session is not None or self._closed_at is not None

    def _reference(self):
        return {"folder": str(self._folders.run), "step": self.steps_done,
                "state": self._folders.state_id() if self._is_begun() else ""}

    def _ids(self):
        return {id(parameter) for group in self.param_groups for parameter in group["params"]}

    def _take_step(self, loss):
        self._recording.step_begins()
        self._stream.send_rest()
        figures = self._recording.figures
        step, norm, self.is_stopping = self._session.take_step(
            self._rates(), figures.loss(loss), self._stream.factor(), figures.tokens())
        self._grad_norm = norm
        self._stream.taken(step)
        self._take_parameters()
        self._recording.step_ends()

    def _open(self):
        if "host_memory" in self._settings:  # somebody counts
            _core.give_freed_memory_back()
        tensors = trained_tensors(self.param_groups)
        goes_on = self._folders.has_state()
        settings = with_machine(self._settings, self._platform, self._folders)
        self._fixed = self.fixed_settings(self.param_groups[0])
        settings |= {"optimizer": self.RULE, "precision": precision_of(tensors),
                     "max_grad_norm": "0"} | self._fixed
        self._folders.link_drives()
        values = [(t.name, list(t.shape), t.group, t.parameter.detach().contiguous())
                  for t in tensors]
        self._session = _core.Session(str(self._folders.run), values, len(self.param_groups),
                                      [f"{key}={value}" for key, value in settings.items()])
        self._tensors = tensors
        self._stream = Stream(self._session, tensors, self._recording)
        self._recording.opened(self._session)
        # Also when the interpreter ends before anybody calls close().
        self._closing = weakref.finalize(self, self._session.close)
        self._tell(goes_on)
        if goes_on:
            with torch.no_grad():
                self._take_parameters()
        for tensor in tensors:
            tensor.note_values()  # a new state's are the program's, which backward may still need

    def _tell(self, goes_on):
        count = sum(tensor.parameter.numel() for tensor in self._tensors)
        memory = self._session.planned_memory_bytes / 2**20
        begins = f"goes on after step {self.steps_done}" if goes_on else "begins"
        places = ", ".join(map(str, self._folders.places))
        watch = "" if self._settings.get("record") == "off" else (
            f"; watch it: sluice-gui {self._folders.run / 'run.db'}")
        say(f"the state of {len(self._tensors)} tensors ({count:,} parameters) {begins} in "
            f"{places}, with {memory:,.0f} MiB of host memory{watch}")

    def _values(self, number):
        return torch.from_dlpack(self._session.parameters(number))

    def _take_parameters(self):
        for number, tensor in enumerate(self._tensors):
            values = self._values(number)
            begin = time.monotonic_ns()
            tensor.take(values)
            self._recording.parameters_copied(number, begin)

    def _has_gradients(self):
        return any(p.grad is not None for group in self.param_groups for p in group["params"])

    def _rates(self):
        return [(float(group["lr"]), float(group["weight_decay"])) for group in self.param_groups]

    def _check_step(self):
        """All that can be wrong with a step is told before any of it is sent."""
        self._check_fixed()
        self._check_unfrozen()
        for number, tensor in enumerate(self._tensors):
            if tensor.parameter.grad is None:
                raise Error(f"step {self.steps_done + 1} has no gradient of {tensor.name}; what "
                            "is not trained is frozen (requires_grad_(False)) before the first "
                            "step, or is not given to the optimizer")
            tensor.check_gradient()
            tensor.check_values(lambda number=number: self._values(number))

    def _check_fixed(self):
        for number, group in enumerate(self.param_groups):
            found = self.fixed_settings(group)
            if found != self._fixed:
                raise Error(f"group {number} has {listed(found)}, and the state "
                            f"{listed(self._fixed)}: all groups and steps have the same "
                            "(OneCycleLR: cycle_momentum=False)")

    def _check_unfrozen(self):
        trained = {id(tensor.parameter) for tensor in self._tensors}
        for tensor in trained_tensors(self.param_groups):
            if id(tensor.parameter) not in trained and tensor.parameter.grad is not None:
                raise Error(f"{tensor.name} was frozen when the state was opened, and has a "
                            "gradient now: it has no state; train it with an optimizer of its "
                            "own, in another folder")


def listed(settings):
    return ", ".join(f"{key}={value}" for key, value in settings.items())


# What a group may have, by key.
RANGES = {
    "lr": lambda value: value >= 0,
    "betas": lambda value: len(value) == 2 and all(0 <= beta < 1 for beta in value),
    "momentum": lambda value: 0 <= value < 1,
    "eps": lambda value: value > 0,
    "weight_decay": lambda value: value >= 0,
}


def check_rates(group, whose):
    """As torch checks them."""
    for key, is_good in RANGES.items():
        if key in group and not is_good(group[key]):
            raise Error(f"{whose} has {key}={group[key]}")
