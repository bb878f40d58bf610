"""torch.optim.Optimizer on a session: the state on drives, the update by Sluice."""

import math
import sys
import time
import weakref

import torch

from sluice import _core
from sluice._carried import CarriesOver, carried_reference
from sluice._checkpoints import KEEP_BY_DEFAULT, Checkpoints, checked_mode
from sluice._error import Error
from sluice._folders import Folders
from sluice._ranks import check_reduced, own_tensors, ranks_now
from sluice._recording import Recording
from sluice._reference import (REFERENCE, as_tensor, check_groups, check_reference, kept_id,
                               reference_in)
from sluice._settings import checked, with_machine
from sluice._state_calls import StateCalls
from sluice._stream import Stream, leaves_memory, takes_zeros, when_made
from sluice._tensors import dtype_of, precision_of, trained_tensors, without_repeats
from sluice._torch_state import begun_by, group_values, torch_name

GROUP_IDENTITY = ("params", "param_names")


def say(text):
    print(f"sluice: {text}", file=sys.stderr, flush=True)


class OnDrives(StateCalls, CarriesOver, torch.optim.Optimizer):
    """An optimizer of torch's with its state in `state`: a folder, or one for each drive.
    `platform`: a platform file of the machine; without it the folders are plain drives, and the
    processor updates. `gradients`: "offload" (they leave memory during backward, and a handle
    stands for each) or "keep" (they stay until step()); left out: "offload", unless they are
    compressed. `fresh`: a state that the folder has is removed when this one begins, with the steps
    that it keeps. `checkpoint`: "pin" (a step that a state dict names is kept, and gone back to by
    load_state_dict()) or "last" (only the last one is there); `keep_checkpoints`: how many of those
    that no checkpoint's folder is known for. `missing_gradients`: "refuse" a step in which a
    parameter has no gradient, or take "zeros" in its place. All else is a setting, as `sluice train
    --settings` lists them.

    `RULE` is the setting `optimizer`, and `ARRAYS` are those of its state behind the master
    weights; `settings_of(group)` are further values of a group, by the names of settings.

    Thread contract: that of torch's optimizers, one thread at a time."""

    RULE = ""
    ARRAYS = ()

    @staticmethod
    def settings_of(group):
        raise NotImplementedError

    def __init__(self, params, defaults, *, state, platform=None, gradients=None, fresh=False,
                 checkpoint="pin", keep_checkpoints=KEEP_BY_DEFAULT, missing_gradients="refuse",
                 **settings):
        self._session = None  # before the first step of a new state, and after close()
        self._closed_at = None  # the step
        self._all = []  # tensors that are trained
        self._owners = []  # of each, its rank
        self._tensors = []  # this rank's, which are the session's
        self._ids = [None]  # of each rank its state and version, where there are several
        self._stream = None
        self._checkpoints = None
        checked_mode(checkpoint, keep_checkpoints)
        self._keeps = (checkpoint, keep_checkpoints)
        self._grad_norm = math.nan  # of the last step, before its rates
        self._factor = 1.0  # of the last step, on its gradients
        self._ahead = (0, 0)  # of it: subgroups that were updated during backward, and again
        self._recording = Recording(weakref.WeakMethod(self._parameter_ids))
        self.is_stopping = False  # somebody has asked the run to stop (`sluice stop`)
        self._ranks = ranks_now()
        self._folders = Folders(state, self._ranks)
        self._settings = checked(settings, self._folders)
        self._platform = platform
        self._leaves = leaves_memory(gradients, self._settings)
        self._takes_zeros = takes_zeros(missing_gradients)
        self._begins_anew = fresh
        check_rates(defaults, "the optimizer")
        super().__init__(params, defaults)
        self._refer(self._reference())
        # A new state begins with the parameters as they are at the first gradient.
        found = [] if self._carries_over() else self._ranks.agreed(self._goes_on)
        if any(found) and not all(found):
            raise Error(f"rank {found.index(False)} has no state, and others have; give it back "
                        f"its folder, or begin anew (fresh=True)")
        if any(found):
            self._open()
        self._recording.search()

    # What a program calls ------------------------------------------------------------------------

    @property
    def steps_done(self):
        """Those of the state, in all runs."""
        return self._session.step if self._session is not None else self._closed_at or 0

    def figures(self):
        """Of the last step, for a log: its number in the state, and the norm of what was sent. With
        overlap="exact" also how many subgroups of the state were updated during backward, and how
        many of them once more."""
        found = {"step": self.steps_done, "grad_norm": self._grad_norm}
        if self._settings.get("overlap") == "exact":
            found |= dict(zip(("updated_ahead", "updated_again"), self._ahead))
        return found

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
        self._begin_step()
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
        self._agree_on_step()
        self._take_step(loss)
        return loss

    def state_dict(self):
        """Of the groups what torch has; of the state which one it is, and its step, which is
        durable then, and kept. Where gradients of the next one have left memory already, it is not,
        and the state dict counts only as long as it is the last."""
        reference = self._reference()
        self._refer(reference)
        return super().state_dict() | {REFERENCE: reference}

    def load_state_dict(self, state_dict):
        """Groups as they were; the state goes back to the step that is meant, where it is another,
        and the parameters with it. A state dict of torch's optimizer of the name begins a new
        state, with the parameters as they are."""
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        reference = reference_in(state_dict)
        if reference is not None:
            self._go_on_from(reference, state_dict["param_groups"])
        else:
            self._begin_with(state_dict)
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def close(self):
        """Commits, ends the run's record and lets go of the folder. The parameters stay as they
        are."""
        if self._session is None:
            return
        if not self._stream.has_begun():
            self._checkpoints.keep_noted()
        session = self._let_go()
        self._closed_at = session.step
        session.close()

    def kept(self):
        """The steps that the state keeps: (step, version, the checkpoint's folder or "state_dict"
        and a time)."""
        return self._session.kept() if self._session is not None else []

    def release(self, step):
        """Gives the room of a kept step back; state dicts of it count no longer."""
        found = [kept for kept in self.kept() if kept[0] == step]
        if not found:
            raise Error(f"step {step} is not kept: {[kept[0] for kept in self.kept()]} are")
        for _, version, _ in found:
            self._session.release(step, version)

    def keep_for(self, folder):
        """The last step is kept for the checkpoint in `folder`, as long as that is there, in the
        place of what was kept for it before. sluice.attach() calls it for Trainer's."""
        if self._session is not None and not self._stream.has_begun():
            self._checkpoints.keep_for(folder)

    def __getstate__(self):
        raise Error("an optimizer whose state lies on drives cannot be copied; state_dict() refers "
                    "to its state")

    # How it does it ------------------------------------------------------------------------------

    def _is_begun(self):
        return self._session is not None or self._closed_at is not None

    def _goes_on(self):
        return not self._begins_anew and self._folders.has_state()

    def _reference(self):
        step, version = self.steps_done, ""
        if self._session is not None and not self._stream.has_begun():
            step, version = self._checkpoints.note()
        return {"folder": str(self._folders.run), "step": step, "version": version,
                "state": self._state_id(), "ranks": self._ids}

    def _refer(self, reference):
        """In `state`, which torch.distributed.checkpoint takes a step to fill where it is empty,
        and of which it wants an entry for each parameter that is trained: one tensor for all."""
        every = [parameter for group in self.param_groups for parameter in group["params"]]
        tensor = as_tensor(reference)
        self.state.clear()
        self.state.update({parameter: {REFERENCE: tensor} for parameter in every
                           if parameter.requires_grad})

    def _state_id(self):
        return self._folders.state_id() if self._is_begun() else ""

    def _id_for_others(self):
        """With several ranks a step is durable on all of them before any begins another, so none
        is more than one ahead when all are killed."""
        if self._ranks.count == 1:
            return None
        return {"state": self._state_id(), "version": self._session.make_durable()[1]}

    def _wanted_step(self, saved):
        """((step, version), whether that is the last one) that a state dict means, on this rank."""
        found = self._reference()
        if self._ranks.count != len(saved["ranks"]) and saved["step"] > 0:
            saved = carried_reference(self._folders, self._ranks, saved)
        else:
            saved = self._ranks.own_reference(saved)
        if check_reference(saved, found):
            return (found["step"], found["version"]), True
        return kept_id(saved, self._session.kept(), found), False

    def _take_groups(self, saved):
        for group, values in zip(self.param_groups, saved):
            group.update({k: v for k, v in values.items() if k not in GROUP_IDENTITY})

    def _go_on_from(self, reference, groups):
        def wanted():
            step = self._wanted_step(reference)
            check_groups(groups, self.param_groups)
            return step
        steps = self._ranks.agreed(wanted)
        if not all(is_there for _, is_there in steps):
            self._go_back(steps[self._ranks.rank][0])
        self._take_groups(groups)

    def _begin_with(self, state_dict):
        """A state dict of torch's."""
        self._ranks.check_alone("a state dict of torch's")
        if self._is_begun() or self._goes_on():
            raise Error(f"this is the state dict of torch's optimizer, and a state has begun in "
                        f"{self._folders.run}; load it into an optimizer with another folder as "
                        "state=, before its first step")
        check_groups(state_dict["param_groups"], self.param_groups)
        groups = [group_values(group) for group in state_dict["param_groups"]]
        for number, group in enumerate(groups):
            check_rates(group, f"group {number} of the state dict")
        begun = begun_by(state_dict, trained_tensors(self.param_groups), self.param_groups,
                         [torch_name(name) for name in self.ARRAYS], self.RULE)
        before = [dict(group) for group in self.param_groups]
        self._take_groups(groups)
        try:
            if begun is not None:
                self._open(begun=begun)
        except Error:
            self._take_groups(before)
            raise

    def _begin_step(self):
        """Before the first gradient of a step is sent."""
        if self._stream.has_begun():
            return
        self._checkpoints.keep_noted()
        for number, tensor in enumerate(self._tensors):
            tensor.compare(lambda number=number: self._values(number))
        if self._has_good_rates():
            self._session.expect_step(self._rates(), self._factor)

    def _has_good_rates(self):
        """Where it has not, step() says so."""
        try:
            for group in self.param_groups:
                check_rates(group, "")
        except Error:
            return False
        return True

    def _let_go(self):
        """Of the session, which is no longer this one's."""
        self._closing.detach()
        self._recording.ended()
        self._stream.end()
        self._stream = None
        self._checkpoints = None
        session, self._session = self._session, None
        return session

    def _go_back(self, kept):
        if self._stream.has_begun():
            raise Error(f"gradients of step {self.steps_done + 1} are in the store; load the state "
                        "dict before backward")
        self._ranks.agreed(lambda: self._let_go().close())
        self._open(kept)

    def _agree_on_step(self):
        """Nothing is sent by any rank before all of them can take it."""
        def checked():
            self._check_step()
            return self._ranks.mark_of(self._all), self._checkpoints.has_noted()
        found = self._ranks.agreed(checked)
        check_reduced([mark for mark, _ in found])
        if self._ranks.count > 1 and any(is_noted for _, is_noted in found):
            self._checkpoints.note()  # what a state dict of one rank refers to is of all
            self._ranks.agreed(self._begin_step)

    def _parameter_ids(self):
        return {id(parameter) for group in self.param_groups for parameter in group["params"]}

    def _take_step(self, loss):
        self._recording.step_begins()
        figures = self._recording.figures

        def taken():
            self._begin_step()
            self._stream.send_rest()
            self._factor = self._stream.factor()
            _, norm, is_stopping, *ahead = self._session.take_step(
                self._rates(), figures.loss(loss), self._factor, figures.tokens())
            return norm, is_stopping, self._id_for_others(), ahead
        found = self._ranks.agreed(taken)
        self._grad_norm = math.hypot(*(norm for norm, _, _, _ in found))
        self.is_stopping = any(is_stopping for _, is_stopping, _, _ in found)
        self._ids = [name for _, _, name, _ in found]
        self._ahead = tuple(map(sum, zip(*(ahead for _, _, _, ahead in found))))
        self._stream.taken(self._session.step)
        self._take_parameters()
        self._recording.step_ends()

    def _open(self, kept=None, begun=None):
        """`kept`: the step that it goes back to, and its version. `begun`: what a new state begins
        with; else with the parameters and zeros."""
        if "host_memory" in self._settings:  # somebody counts
            _core.give_freed_memory_back()
        goes_on = self._goes_on()
        steps = self._ranks.agreed(lambda: self._open_session(kept, begun))
        if min(steps) < max(steps):  # some were killed before they had committed the last one
            self._ranks.agreed(lambda: self._step_back(min(steps)))
        self._ids = self._ranks.agreed(self._id_for_others)
        self._tell(goes_on or self.steps_done > 0)
        if goes_on:
            with torch.no_grad():
                self._take_parameters()
        for tensor in self._all:
            tensor.note_values()  # a new state's are the program's, which backward may still need

    def _open_session(self, kept=None, begun=None):
        self._all = trained_tensors(self.param_groups)
        self._owners = self._ranks.owners(self._all)
        self._tensors = own_tensors(self._ranks, self._all)
        self._folders.link_drives()
        masters = begun.masters if begun else {}
        values = [(t.name, list(t.shape), t.group,
                   masters.get(number, t.first_values()))
                  for number, t in enumerate(self._tensors)]
        self._session = _core.Session(str(self._folders.run), values, len(self.param_groups),
                                      self._session_settings(self._all),
                                      begun.arrays if begun else [],
                                      begun.updates if begun else 0, kept, self._begins_anew,
                                      begun.steps if begun else 0)
        self._begins_anew = False
        self._stream = Stream(self._session, self._tensors, self._recording)
        self._recording.opened(self._session)
        self._checkpoints = Checkpoints(self._session, *self._keeps)
        # Also when the interpreter ends before anybody calls close().
        self._closing = weakref.finalize(self, self._session.close)
        return self._session.step

    def _step_back(self, step):
        """A step that other ranks have not committed is not."""
        if self._session.step > step:
            self._let_go().close()
            self._open_session((step, ""))

    def _session_settings(self, tensors):
        settings = with_machine(self._settings, self._platform, self._folders) | {
            "optimizer": self.RULE, "precision": precision_of(tensors), "max_grad_norm": "0"}
        settings |= {key: repr(float(value))
                     for key, value in self.settings_of(self.param_groups[0]).items()}
        return [f"{key}={value}" for key, value in settings.items()]

    def _tell(self, goes_on):
        count = sum(tensor.shape.numel() for tensor in self._tensors)
        memory = self._session.planned_memory_bytes / 2**20
        begins = f"goes on after step {self.steps_done}" if goes_on else "begins"
        places = ", ".join(map(str, self._folders.places))
        watch = "" if self._settings.get("record") == "off" else (
            f"; watch it: sluice-gui {self._folders.run / 'run.db'}")
        numbers = ("; compact state: other numbers than state_format=fp32"
                   if self._settings.get("state_format") == "compact" else "")
        say(f"the state of {len(self._tensors)} tensors ({count:,} parameters) {begins} in "
            f"{places}, with {memory:,.0f} MiB of host memory{numbers}{watch}")

    def _is_streaming(self):
        """Whether the session's parameters are on the drives."""
        return self._settings.get("parameter_tier") == "storage"

    def _dtype(self):
        return dtype_of(precision_of(self._all))

    def _values(self, number):
        if not self._is_streaming():
            return torch.from_dlpack(self._session.parameters(number))
        values = torch.empty(self._tensors[number].shape.numel(), device="cpu",
                             dtype=self._dtype())
        self._session.copy_parameters(number, values)
        return values

    def _take_parameters(self):
        dtype = self._dtype()
        for number, tensor in enumerate(self._tensors):
            memory = tensor.own_memory(dtype) if self._is_streaming() else None
            if memory is not None:
                self._session.copy_parameters(number, memory)
                tensor.note_written()
                continue
            values = self._values(number)
            begin = time.monotonic_ns()
            tensor.take(values)
            self._recording.parameters_copied(number, begin)
        self._ranks.share(self._all, self._owners)

    def _has_gradients(self):
        return any(p.grad is not None for group in self.param_groups for p in group["params"])

    def _rates(self):
        return [{key: float(value) for key, value in (self.settings_of(group) | {
            "lr": group["lr"], "weight_decay": group["weight_decay"]}).items()}
                for group in self.param_groups]

    def _check_step(self):
        """All that can be wrong with a step is told before any of it is sent."""
        for number, group in enumerate(self.param_groups):
            check_rates(group, f"group {number}")
        self._check_unfrozen()
        for number, tensor in enumerate(self._tensors):
            if tensor.parameter.grad is not None:
                tensor.check_gradient()
            elif not self._takes_zeros:
                raise Error(f"step {self.steps_done + 1} has no gradient of {tensor.name}; what "
                            "is not trained is frozen (requires_grad_(False)) before the first "
                            "step, or is not given to the optimizer; missing_gradients='zeros' "
                            "takes zeros in its place")
            tensor.check_values(lambda number=number: self._values(number))

    def _check_unfrozen(self):
        trained = {id(tensor.parameter) for tensor in self._all}
        for tensor in trained_tensors(self.param_groups):
            if id(tensor.parameter) not in trained and tensor.parameter.grad is not None:
                raise Error(f"{tensor.name} was frozen when the state was opened, and has a "
                            "gradient now: it has no state; train it with an optimizer of its "
                            "own, in another folder")


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
