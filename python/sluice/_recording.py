"""What a program does between its calls of the optimizer, for the record of its run.

The time between two things that are known (a forward, a backward, a step) is the program's own
work: its data, its log, its clipping. Forward is known by hooks of the modules that the program
calls. It need not name them: until the first step is taken, a hook that torch runs for every module
finds those that are called from outside and have parameters of the optimizer's. Backward is known
by a hook of what forward returned, by the gradients, and by autograd's own end."""

import fnmatch
import math
import time
import weakref

import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from sluice._core import Work
from sluice._error import Error

SHORTEST_NS = 20_000  # a shorter pause is none


class Recording:
    """Of one optimizer; whoever calls it back keeps it weakly. Thread contract: the optimizer's."""

    def __init__(self, parameters):
        self._parameters = parameters  # a weak method: ids of the optimizer's
        self._session = None  # before there is a state to record beside
        self._known_until = None
        self._inside = None  # the module whose forward is under way, and since when
        self._modules = []  # the same of those within it
        self._names = weakref.WeakKeyDictionary()  # of modules that are recorded by name
        self._backward_since = None  # the piece that is under way
        self._is_behind_step = False
        self._watched = weakref.WeakSet()
        self._search = None  # its hook
        self._is_searching = False
        self.figures = Figures()
        self._validation_tokens = 0

    # The optimizer's calls -----------------------------------------------------------------------

    def opened(self, session):
        """What was before is of no step."""
        self._session = session
        self._known_until = time.monotonic_ns()
        if self._backward_since is not None:
            self._backward_since = self._known_until

    def ended(self):
        self._session = None
        self._end_search()

    def gradient_comes(self, number):
        """Backward has made it; it is sent next."""
        now = time.monotonic_ns()
        if self._backward_since is None:
            self._begin_backward(now, is_known=False)
        elif self._session is not None:
            self._session.record(Work.BACKWARD, self._backward_since, now, number)

    def gradient_gone(self):
        self._backward_since = time.monotonic_ns()

    def step_begins(self):
        self._end_search()
        self._end_backward()
        self._own_work_until(time.monotonic_ns())

    def step_ends(self):
        self.figures = Figures()
        self._known_until = time.monotonic_ns()
        self._inside = None
        self._is_behind_step = True

    def parameters_copied(self, number, begin):
        self._session.record(Work.PARAMETERS, begin, time.monotonic_ns(), number)

    def note(self, loss=None, tokens=None, epoch=None, validation_loss=None):
        if self._session is None:
            return  # nothing is recorded yet, or any more
        if epoch is not None:
            self._session.count("epoch", float(epoch))
        if validation_loss is not None:
            self._session.note_validation(float(validation_loss), int(self._validation_tokens))
            self._validation_tokens = 0
            self._known_until = time.monotonic_ns()
        if loss is None and tokens is None:
            return
        if self._is_behind_step:
            self._session.note(math.nan if loss is None else float(loss),
                               -1 if tokens is None else int(tokens))
        else:
            self.figures.note(loss, tokens)

    # Which modules -------------------------------------------------------------------------------

    def search(self):
        """Until the first step, or watch()."""
        self._is_searching = True
        if self._search is None:
            self._search = register_module_forward_pre_hook(Hook(self, "_look_at"))
            weakref.finalize(self, self._search.remove).atexit = False

    def _end_search(self, is_over=True):
        if self._search is not None:
            self._search.remove()
        self._search = None
        self._is_searching = not is_over

    def _look_at(self, module, arguments):
        """Whatever is within the module is not looked at meanwhile."""
        if self._inside is not None or module in self._watched:
            return
        ours = self._parameters()()
        if any(id(parameter) in ours for parameter in module.parameters()):
            self._end_search(is_over=False)
            self._watch_forward(module)
            self._begin_forward(module, arguments)

    def watch(self, model, modules=None):
        if not isinstance(model, torch.nn.Module):
            raise Error(f"watch() takes the model, a torch.nn.Module, and got "
                        f"{type(model).__name__}")
        chosen = chosen_modules(model, modules)
        self._end_search()
        self._watch_forward(model)
        for name, module in chosen:
            if module not in self._names:
                module.register_forward_pre_hook(Hook(self, "_begin_module"))
                module.register_forward_hook(Hook(self, "_end_module"))
            self._names[module] = name

    def _watch_forward(self, module):
        if module not in self._watched:
            self._watched.add(module)
            module.register_forward_pre_hook(Hook(self, "_begin_forward"))
            module.register_forward_hook(Hook(self, "_end_forward"), with_kwargs=True)

    # Forward and backward ------------------------------------------------------------------------

    def _begin_forward(self, module, arguments):
        """One that is called again had failed; one within another, or within backward, where it is
        computed anew, is a part of that."""
        is_within = self._inside is not None and self._inside[0] is not module
        if is_within or self._backward_since is not None:
            return
        now = time.monotonic_ns()
        self._own_work_until(now)
        self._is_behind_step = False
        self._modules = []
        self._inside = module, now

    def _end_forward(self, module, arguments, keywords, output):
        if self._inside is None or self._inside[0] is not module:
            return
        now = time.monotonic_ns()
        _, begin = self._inside
        self._inside = None
        is_trained = module.training and torch.is_grad_enabled()
        tokens = tokens_of(arguments, keywords)
        if self._session is not None:
            self._session.record(Work.FORWARD if is_trained else Work.VALIDATION, begin, now)
        self._known_until = now
        if is_trained:
            is_part = keywords.get("num_items_in_batch") is not None
            self.figures.add(loss_in(output), is_part, tokens)
            self._expect_backward(output)
        else:
            self._validation_tokens += tokens
        if self._is_searching:
            self.search()

    def _expect_backward(self, output):
        found = [tensor for tensor in tensors_in(output) if tensor.requires_grad]
        if found:
            this = weakref.ref(self)

            def begin(gradient):
                recording = this()
                if recording is not None and recording._backward_since is None:
                    recording._begin_backward(time.monotonic_ns(), is_known=True)
            found[0].register_hook(begin)

    def _begin_backward(self, now, is_known):
        """`is_known`: nothing of it lies before."""
        if is_known:
            self._own_work_until(now)
        self._is_behind_step = False
        self._backward_since = now
        torch.autograd.Variable._execution_engine.queue_callback(self._end_backward)

    def _end_backward(self):
        if self._backward_since is None:
            return
        now = time.monotonic_ns()
        if self._session is not None:
            self._session.record(Work.BACKWARD, self._backward_since, now)
        self._known_until = now
        self._backward_since = None

    def _begin_module(self, module, arguments):
        self._modules.append((module, time.monotonic_ns()))

    def _end_module(self, module, arguments, output):
        while self._modules:
            begun, begin = self._modules.pop()
            if begun is module:
                break
        else:
            return
        if self._session is not None and module in self._names:
            self._session.record(Work.MODULE, begin, time.monotonic_ns(), -1, self._names[module],
                                 len(self._modules))

    def _own_work_until(self, now):
        since, self._known_until = self._known_until, now
        if self._session is not None and since is not None and now - since >= SHORTEST_NS:
            self._session.record(Work.OTHER, since, now)


class Figures:
    """Of the step to come: what forwards have shown, and what the program has said."""

    def __init__(self):
        self._losses = []
        self._are_parts = False  # of one mean, over all micro-batches
        self._tokens = []
        self._said = {}

    def add(self, loss, is_part, tokens):
        self._tokens.append(tokens)
        self._are_parts = is_part
        if loss is not None:
            self._losses.append(loss)

    def note(self, loss, tokens):
        self._said |= {key: value for key, value in (("loss", loss), ("tokens", tokens))
                       if value is not None}

    def loss(self, of_closure=None):
        if "loss" in self._said or of_closure is not None:
            return float(self._said.get("loss", of_closure))
        if not self._losses:
            return math.nan
        total = sum(float(loss) for loss in self._losses)
        return total if self._are_parts else total / len(self._losses)

    def tokens(self):
        return int(self._said["tokens"] if "tokens" in self._said else sum(map(int, self._tokens)))


class Hook:
    """Of a module, which may outlive the recording. A copy of the module is not recorded."""

    def __init__(self, recording, method):
        self._recording = weakref.ref(recording)
        self._method = method

    def __call__(self, module, *rest):
        recording = self._recording()
        if recording is not None:
            getattr(recording, self._method)(module, *rest)

    def __reduce__(self):
        return no_hook, ()


class NoHook:
    def __call__(self, *arguments):
        return None


def no_hook():
    return NoHook()


def chosen_modules(model, modules):
    """None; True: all; a number: so deep below the model; a text: those whose name it fits."""
    named = [(name, module) for name, module in model.named_modules() if name]
    if modules is None or modules is False:
        return []
    if modules is True:
        return named
    if isinstance(modules, int):
        return [(name, module) for name, module in named if name.count(".") < modules]
    chosen = [(name, module) for name, module in named if fnmatch.fnmatchcase(name, modules)]
    if not chosen:
        raise Error(f"modules={modules!r} fits no module of the model, which has "
                    f"{', '.join(name for name, _ in named[:6])}, ...")
    return chosen


def loss_in(output):
    """As models of transformers return it."""
    loss = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    is_one = isinstance(loss, torch.Tensor) and loss.numel() == 1
    return loss.detach() if is_one else None


def tensors_in(output):
    """The loss first, if it has one."""
    if isinstance(output, torch.Tensor):
        return [output]
    if isinstance(output, dict):
        values = [output[key] for key in sorted(output, key=lambda key: key != "loss")]
    else:
        values = output if isinstance(output, (list, tuple)) else ()
    return [value for value in values if isinstance(value, torch.Tensor)]


def tokens_of(arguments, keywords):
    """Of `input_ids`, or of a first argument of whole numbers: its elements, but for those that
    `attention_mask` leaves out, as a number that may still be computed. 0: the model takes no
    tokens."""
    ids = keywords.get("input_ids", arguments[0] if arguments else None)
    if not isinstance(ids, torch.Tensor) or ids.is_floating_point():
        return 0
    mask = keywords.get("attention_mask")
    is_of_ids = isinstance(mask, torch.Tensor) and mask.shape == ids.shape
    return mask.sum() if is_of_ids else ids.numel()
