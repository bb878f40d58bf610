"""What torch does in a program that `sluice record` runs: forward, backward and the optimizer's
step, and with them the steps of the run. Python imports this by itself before the program; the
program's own sitecustomize follows. Where there is no torch, nothing is done.

A step begins with the first forward, and ends with the first forward behind an optimizer's step, so
that accumulation, several optimizers and an optimizer that is called for each part are one step."""

import ctypes
import importlib.util
import os
import sys
import threading
import time
import weakref

KERNEL, ON_HOST, ON_COMPUTE = 0, 0, 1  # of sluice_record.h
NO_PHASE, FORWARD, BACKWARD = 0, 1, 2


class Recording:
    """The recording of this process, in the library that is preloaded."""

    def __init__(self, library):
        self._library = library
        library.sluice_inject_span.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
        library.sluice_inject_module_ends.argtypes = [ctypes.c_char_p, ctypes.c_int64]
        self._names = {name: library.sluice_inject_stage(name.encode(), KERNEL, place, phase, 0)
                       for name, place, phase in (("forward", ON_COMPUTE, FORWARD),
                                                  ("backward", ON_COMPUTE, BACKWARD),
                                                  ("optimizer.step", ON_HOST, NO_PHASE))}
        self._step = -1
        self._is_updated = False

    def module(self, name, begin):
        self._library.sluice_inject_module_ends(name, begin)

    def span(self, name, begin):
        self._library.sluice_inject_span(self._names[name], begin, time.monotonic_ns())

    def forward_begins(self):
        if self._step >= 0 and not self._is_updated:
            return
        if self._step >= 0:
            self._library.sluice_inject_end_step()
        self._step += 1
        self._is_updated = False
        self._library.sluice_inject_begin_step(self._step)

    def updated(self):
        self._is_updated = True
        self._library.sluice_inject_step_is_whole()


class Marks(threading.local):
    """When the modules that call one another were called, the outermost first."""

    def __init__(self):
        super().__init__()
        self.begins = []
        self.names = {}
        self.update_begin = 0


class Names:
    """What the modules within a model are called, asked of it once."""

    def __init__(self):
        self._of_models = weakref.WeakKeyDictionary()

    def within(self, model):
        if model not in self._of_models:
            self._of_models[model] = {id(module): name.encode()
                                      for name, module in model.named_modules()}
        return self._of_models[model]


def mark(torch, recording):
    marks = Marks()
    names = Names()

    def before_forward(module, _arguments):
        if not marks.begins:
            recording.forward_begins()
            marks.names = names.within(module)
        marks.begins.append(time.monotonic_ns())

    def after_forward(module, _arguments, _output):
        begin = marks.begins.pop()
        if not marks.begins:
            recording.span("forward", begin)
        elif marks.begins[0] > 0:  # no recomputation
            name = marks.names.get(id(module)) or type(module).__name__.encode()
            recording.module(name, begin)

    def before_update(_optimizer, _arguments, _named):
        marks.update_begin = time.monotonic_ns()

    def after_update(_optimizer, _arguments, _named):
        recording.span("optimizer.step", marks.update_begin)
        recording.updated()

    module = importlib.import_module("torch.nn.modules.module")
    module.register_module_forward_pre_hook(before_forward)
    module.register_module_forward_hook(after_forward, always_call=True)
    optimizer = importlib.import_module("torch.optim.optimizer")
    optimizer.register_optimizer_step_pre_hook(before_update)
    optimizer.register_optimizer_step_post_hook(after_update)
    backward = torch.autograd.backward

    def recorded_backward(*arguments, **named):
        begin = time.monotonic_ns()
        marks.begins.append(0)  # forwards within are recomputations
        try:
            return backward(*arguments, **named)
        finally:
            marks.begins.pop()
            recording.span("backward", begin)

    torch.autograd.backward = recorded_backward


class WhenTorchComes:
    """A finder that finds torch where others find it, and marks it once it is there."""

    def __init__(self, library):
        self._library = library

    def find_spec(self, name, _path=None, _target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_mark(module):
                load(module)
                try:
                    mark(module, Recording(self._library))
                except Exception as error:  # the program goes on without marks
                    print(f"sluice record: this torch cannot be marked: {error}", file=sys.stderr)

            spec.loader.exec_module = load_and_mark
        return spec


def run_the_programs_own():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    this = sys.modules.pop("sitecustomize", None)
    try:
        importlib.import_module("sitecustomize")
    except ImportError:
        if this is not None:
            sys.modules["sitecustomize"] = this


def begin():
    library = ctypes.CDLL(None)
    if hasattr(library, "sluice_inject_span"):
        sys.meta_path.insert(0, WhenTorchComes(library))


begin()
run_the_programs_own()
