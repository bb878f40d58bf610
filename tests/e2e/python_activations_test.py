#!/usr/bin/env python3
"""Activations of a program's own on a drive: loss and gradients are those of without, to the bit;
the cap is held; what would be a wrong gradient is refused."""

import gc
import itertools
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

from python_package import (PACKAGE, make_model, loss_of, on_drives, package, package_test,
                            python_with_transformers, refusal, require_same, torch, weights)
from sluice_run import LIMIT_S, main, only_with_all, require, require_equal, require_words
from volume import small_volume

if torch is not None:
    from torch.nn import functional
    from torch.utils.checkpoint import checkpoint

IN_FLIGHT = 1 << 16
WAYS = ("plain", "reentrant", "not reentrant")


def block(model, x):
    """A fused projection, attention over views of it, values that are saved twice, a mask."""
    parts = model.fused(x).view(4, 32, 3, 4, 16).permute(2, 0, 3, 1, 4)
    mixed = functional.scaled_dot_product_attention(*parts, is_causal=True)
    mixed = mixed.transpose(1, 2).reshape(4, 32, 64)
    wide = functional.gelu(model.first(mixed)) * torch.sigmoid(model.second(mixed))
    return x + functional.dropout(model.last(wide), 0.1)


def make_network():
    torch.manual_seed(1)
    network = torch.nn.Module()
    network.table = torch.nn.Embedding(50, 64)
    network.blocks = torch.nn.ModuleList()
    for _ in range(3):
        one = torch.nn.Module()
        one.fused, one.last = torch.nn.Linear(64, 192), torch.nn.Linear(128, 64)
        one.first, one.second = torch.nn.Linear(64, 128), torch.nn.Linear(64, 128)
        network.blocks.append(one)
    network.norm = torch.nn.BatchNorm1d(64)
    return network


def network_loss(network, step, way="plain"):
    torch.manual_seed(step)
    tokens = torch.randint(0, 50, (4, 32))
    x = network.table(tokens)
    for one in network.blocks:
        if way == "plain":
            x = block(one, x)
        else:
            x = checkpoint(block, one, x, use_reentrant=way == "reentrant")
    x = network.norm(x.flatten(0, 1))
    return functional.cross_entropy(x @ network.table.weight.t(), tokens.flatten())


def gradients(model):
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()
            if parameter.grad is not None}


def steps_of(activations, way, bf16, is_whole, count=3):
    """Losses and gradients of each step."""
    network = make_network()
    found = []
    for step in range(count):
        network.zero_grad()
        if activations is not None:
            activations.__enter__()
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            loss = network_loss(network, step, way)
        if activations is not None and not is_whole:
            activations.__exit__(None, None, None)
        loss.backward()
        if activations is not None and is_whole:
            activations.__exit__(None, None, None)
        found.append(gradients(network) | {"loss": loss.detach()})
    return found


def open_activations(place, model=None, **others):
    return package.offload_activations(
        model if model is not None else make_network(), state=place / "activations",
        **({"in_flight": IN_FLIGHT, "min_bytes": 256} | others))


@package_test
def losses_and_gradients_are_those_of_without_to_the_bit(place):
    for way, bf16 in (("plain", True), *itertools.product(WAYS, (False,))):
        wanted = steps_of(None, way, bf16, False)
        for is_whole, more in ((False, {}), (True, {"in_flight": "4MiB", "keep": 100_000})):
            activations = open_activations(place, **more)
            found = steps_of(activations, way, bf16, is_whole)
            for step, (one, other) in enumerate(zip(found, wanted)):
                require_same(one, other, f"{way}, bf16 {bf16}, {more}, step {step}")
            report = activations.report()
            cap = report.in_flight_bytes
            require(0 < report.peak_in_flight_bytes <= cap, f"{report.peak_in_flight_bytes}")
            require(report.moved_bytes > cap or more, f"it moved {report.moved_bytes} bytes only")
            require(report.read_bytes > 0 or more, "nothing came from the drive")
            require_equal(report.step_count, 3, "steps")
            require(activations._entries.is_empty(), "tensors are left")
            require_equal(list((place / "activations").iterdir()), [], "files with a name")


def tokens_and_weight():
    torch.manual_seed(2)
    return torch.randn(32, 64, requires_grad=True), torch.nn.Linear(64, 64)


@package_test
def what_is_saved_twice_is_written_once_and_parameters_are_left_alone(place):
    x, layer = tokens_and_weight()
    activations = open_activations(place, layer)
    with activations:
        hidden = x * 2
        loss = sum((layer(hidden) * layer(hidden[:20]).sum()).sum() for _ in range(3))
        loss = loss + hidden.view(64, 32).t().pow(2).sum()
        loss = loss + functional.embedding(torch.arange(32), hidden).sum()
    report = activations.report()
    # `hidden`, whatever part of it is looked at; and each layer's outputs, which are factors.
    require_equal((report.moved_count, report.moved_bytes), (4, 4 * 32 * 64 * 4), "moved")
    require(report.repeated_count >= 6, f"{report.repeated_count} repeats")
    reasons = report.left
    require(reasons["parameters, buffers and views of them"][0] >= 3, f"{reasons}")
    require(reasons["of integers"][0] >= 1, f"{reasons}")
    loss.backward()


@package_test
def a_change_in_place_is_refused_as_torch_refuses_it(place):
    x, layer = tokens_and_weight()
    for arguments in ({}, {"keep": "1MiB"}, {"min_bytes": "1MiB"}):
        activations = open_activations(place, layer, **arguments)
        with activations:
            y = x * 2
            z = y.pow(2)
        y.add_(1)
        require_words(refusal(z.sum().backward), ["float32", "[32, 64]", "changed in place",
                                                  "version 0", "version 1"], f"{arguments}")
        with activations:
            z = layer(x).sum() + layer(x.tanh()).sum()
        with torch.no_grad():
            layer.weight.mul_(2)  # as a step of an optimizer does
        require_words(refusal(z.backward), ["changed in place"], "a parameter")
        with activations:
            y = x * 2
            y.add_(1)  # before it is saved
            z = y.pow(2)
        z.sum().backward()
        y.add_(1)


@package_test
def a_write_past_autograd_is_not_taken_for_the_same_values(place):
    x, layer = tokens_and_weight()
    with open_activations(place, layer):
        y = x * 1
        first = y.pow(2).sum()
        y.data.mul_(3)
        second = y.pow(2).sum()
    wanted = x.detach().clone()
    found = torch.autograd.grad(first, x, retain_graph=True)[0]
    require(torch.equal(found, 2 * wanted), "of the values that were saved first")
    found = torch.autograd.grad(second, x)[0]
    require(torch.equal(found, 2 * (3 * wanted)), "of those that were saved then")


@package_test
def graphs_of_all_kinds_give_their_room_back(place):
    network = make_network()
    wanted = []
    for step in range(2):
        network.zero_grad()
        loss = network_loss(network, step)
        loss.backward(retain_graph=True)
        loss.backward()
        wanted.append(gradients(network))
    activations, inner = open_activations(place, network), open_activations(place, network)
    for step in range(2):
        network.zero_grad()
        with activations:
            with inner:
                unused = network_loss(network, 7)  # never goes backward
            lost = network_loss(network, 8)
            loss = network_loss(network, step)
            try:
                network_loss(network, 9) + torch.ones(3) @ torch.ones(4)
            except RuntimeError as error:
                require_words(str(error), ["size"], "a mistake of the program")
                error.__traceback__ = None
        loss.backward(retain_graph=True)
        loss.backward()
        require_same(gradients(network), wanted[step], f"step {step}")
        del unused, lost, loss
        gc.collect()
        require(activations._entries.is_empty() and inner._entries.is_empty(), "tensors are left")
    both = [open_activations(place, network), None]
    sums = []
    for one in both:  # several forwards before a backward, double backward
        network.zero_grad()
        with one or torch.enable_grad():
            losses = [network_loss(network, step) for step in range(3)]
        sum(losses).backward()
        sums.append(gradients(network))
    require_same(sums[0], sums[1], "three forwards")


@package_test
def a_second_derivative_is_the_same(place):
    x, layer = tokens_and_weight()
    found = []
    for context in (open_activations(place, layer), torch.enable_grad()):
        with context:
            y = torch.tanh(layer(x)).pow(3).sum()
            first = torch.autograd.grad(y, x, create_graph=True)[0]
            found.append(torch.autograd.grad(first.pow(2).sum(), x)[0])
    require(torch.equal(*found), "it differs")


def damage_open_file(folder):
    """The file has no name: it is found among the process's descriptors."""
    for number in os.listdir("/proc/self/fd"):
        link = pathlib.Path("/proc/self/fd") / number
        if link.exists() and str(folder) in os.readlink(link):
            with open(link, "r+b") as file:
                file.seek(64)
                file.write(b"damaged")
            return
    require(False, "no file of activations is open")


@package_test
def a_damaged_file_is_refused_by_name_and_offset(place):
    x, layer = tokens_and_weight()
    activations = open_activations(place, layer)
    with activations:
        y = x
        for _ in range(40):
            y = y.sin()
    while activations.report().written_bytes < 40 * x.nbytes:
        time.sleep(0.001)
    damage_open_file((place / "activations").resolve())
    require_words(refusal(y.sum().backward), [str(place / "activations/activations-"), "offset 0",
                                              "not what was saved"], "a damaged file")


@package_test
def what_fits_does_not_move(place):
    network = make_network()
    for keep in ("1GiB", "auto"):
        activations = open_activations(place, network, keep=keep)
        with activations:
            loss = network_loss(network, 1)
        loss.backward()
        report = activations.report()
        require_equal((report.moved_count, report.written_bytes), (0, 0), f"moved, keep={keep}")
        require_words(str(report), ["nothing moved: it fits", "1 steps"], "the report")
        require(not (place / "activations").exists(), "there is a folder")
    activations = open_activations(place, network, min_bytes="1GiB")
    with activations:
        network_loss(network, 1).backward()
    require_words(str(activations.report()), ["nothing moved: nothing", "below min_bytes"],
                  "the report")


@package_test
def the_report_says_what_it_cost(place):
    activations = open_activations(place)
    steps_of(activations, "plain", False, False)
    report = activations.report()
    require(report.own_s > 0 and report.forward_s > 0, f"{report.own_s}, {report.forward_s}")
    require_equal(report.is_cheaper_than_recomputing, report.own_s < report.forward_s, "cheaper")
    require_words(str(report), ["moved to", str(place / "activations"), "in flight at most",
                                "for writes", "Not known"], "the report")


@package_test
def arguments_that_cannot_be_are_refused(place):
    x, layer = tokens_and_weight()
    for arguments, words in (({"in_flight": 100}, ["in_flight=100", "65536"]),
                             ({"keep": "much"}, ["keep='much'"]),
                             ({"min_bytes": 0}, ["min_bytes=0"]),
                             ({"state": ["a", "b"]}, ["one drive"])):
        arguments = {"state": place / "x"} | arguments
        require_words(refusal(package.offload_activations, layer, **arguments), words,
                      f"{arguments}")
    (place / "file").write_text("")
    activations = package.offload_activations(layer, state=place / "file/x", min_bytes=1)
    with activations:
        require_words(refusal(lambda: x.pow(2)), [str(place / "file/x"), "name a folder"],
                      "no folder")


@package_test
def both_halves_of_the_package_work_together(place):
    found = []
    for offloads in (False, True):
        model = make_model()
        optimizer = on_drives(model, place / f"run{offloads}")
        activations = open_activations(place, model, min_bytes=64) if offloads else None
        for number in range(5):
            optimizer.zero_grad()
            with activations or torch.enable_grad():
                loss = loss_of(model, number)
            loss.backward()
            optimizer.step()
        optimizer.close()
        found.append(weights(model))
    require(activations.report().moved_count > 0, "nothing moved")
    require_same(*found, "weights")


# Programs of their own ---------------------------------------------------------------------------

PROGRAM = """
import os, signal, sys
sys.path.insert(0, {package!r})
import sluice, torch
torch.set_num_threads(1)
x = torch.randn(256, 1024, requires_grad=True)
layer = torch.nn.Linear(2, 2)
activations = sluice.offload_activations(layer, state={folder!r}, in_flight="1MiB", min_bytes=1)
def forward():
    y = x
    for _ in range({depth}):
        y = y.sin()
    return y.sum()
"""


def program(place, text, depth=40, before=None, folder=None):
    folder = folder or place / "activations"
    begin = PROGRAM.format(package=str(PACKAGE), folder=str(folder), depth=depth)
    done = subprocess.run([sys.executable, "-c", begin + text], capture_output=True, text=True,
                          timeout=LIMIT_S, check=False, preexec_fn=before)
    if folder.exists():
        require_equal([one.name for one in folder.iterdir() if "activations" in one.name], [],
                      "files with a name")
    return done


FULL = """
try:
    with activations:
        forward().backward()
except sluice.Error as error:
    print(error.code, error)
"""


@package_test
def a_file_that_may_not_grow_is_an_error_and_the_process_ends(place):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, 4 << 20))
    done = program(place, FULL, before=limit)
    require_equal((done.returncode, done.stderr), (0, ""), "the program")
    require_words(done.stdout, ["no_space", str(place / "activations/activations-"), "ulimit -f",
                                "state=", "keep="], "its error")


@package_test
def a_full_drive_is_an_error_and_the_process_ends(place):
    with small_volume(place, 8 << 20) as folder:
        done = program(place, FULL, folder=folder)
        require_equal((done.returncode, done.stderr), (0, ""), "the program")
        require_words(done.stdout, ["no_space", str(folder / "activations-"), "ENOSPC", "state="],
                      "its error")


@package_test
def an_interrupt_ends_the_program_and_leaves_nothing(place):
    done = program(place, """
signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
heard = 0
for number in range(40):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.005 + 0.0013 * number)
        for _ in range(1000):  # far longer than the timer
            with activations:
                forward().backward()
    except KeyboardInterrupt:
        heard += 1
x.grad = None
with activations:
    forward().backward()
print("heard", heard, "goes on", x.grad is not None, flush=True)
os.kill(os.getpid(), signal.SIGINT)
""", 8)
    require_equal(done.returncode, -signal.SIGINT, f"exit code: {done.stderr}")
    require_words(done.stdout, ["heard 40 goes on True"], f"the program: {done.stderr[-500:]}")


@package_test
def a_forked_process_touches_nothing(place):
    done = program(place, """
with activations:
    loss = forward()
    child = os.fork()
    if child == 0:
        try:
            loss.backward()
        except sluice.Error as error:
            print(error, flush=True)
        forward().backward()  # in its own memory
        print("the child", x.grad is not None, flush=True)
        sys.exit(0)
print("code", os.waitpid(child, 0)[1])
loss.backward()
wanted = torch.autograd.grad(forward(), x)[0]
print("the parent", torch.equal(x.grad, wanted))
""")
    require_equal(done.returncode, 0, f"exit code: {done.stderr}")
    require_words(done.stdout, ["was forked from", "the child True", "code 0", "the parent True"],
                  "what they say")


@package_test
def memory_of_what_moved_is_free(place):
    depth, size = 100, 256 * 1024 * 4
    done = program(place, """
for moves in (True, False):
    with activations if moves else torch.enable_grad():
        loss = forward()
    loss.backward()
    del loss
    print(next(int(line.split()[1]) for line in open("/proc/self/status") if "VmHWM" in line))
""", depth)
    require_equal(done.returncode, 0, f"exit code: {done.stderr}")
    moved, stayed = (int(peak) * 1024 for peak in done.stdout.split())
    require(stayed - moved > 0.8 * depth * size, f"{stayed - moved} less, of {depth * size}")


FAMILIES = """
import sys
sys.path.insert(0, {package!r})
import sluice, torch, transformers as t
torch.set_num_threads(1)
kind, folder = sys.argv[1:]
torch.manual_seed(3)
of_llama = dict(vocab_size=96, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64)
model = {{
    "qwen3": lambda: t.Qwen3ForCausalLM(t.Qwen3Config(**of_llama, head_dim=16)),
    "llama": lambda: t.LlamaForCausalLM(t.LlamaConfig(**of_llama)),
    "t5": lambda: t.T5ForConditionalGeneration(t.T5Config(
        vocab_size=96, d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4,
        decoder_start_token_id=0)),
    "bert": lambda: t.BertForMaskedLM(t.BertConfig(
        vocab_size=96, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=96)),
}}[kind]()
model.train()

def steps(activations):
    found = []
    for step in range(2):
        torch.manual_seed(step)
        tokens = torch.randint(0, 96, (4, 32))
        model.zero_grad()
        with activations or torch.enable_grad():
            loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        found += [loss.detach(), *(p.grad.clone() for p in model.parameters()
                                   if p.grad is not None)]
    return found

for reentrant in (None, False, True):
    if reentrant is not None:
        model.gradient_checkpointing_enable(dict(use_reentrant=reentrant))
        model.enable_input_require_grads()
    activations = sluice.offload_activations(model, state=folder, in_flight=1 << 16, min_bytes=1000)
    wanted, found = steps(None), steps(activations)
    print(len(found) == len(wanted) and all(map(torch.equal, found, wanted)),
          activations.report().read_bytes > 0)
"""


@package_test
@only_with_all("transformers takes ten seconds to start, four times")
def families_of_transformers_have_the_same_bits(place):
    python = python_with_transformers()
    for kind in ("qwen3", "llama", "t5", "bert"):
        done = subprocess.run([python, "-c", FAMILIES.format(package=str(PACKAGE)), kind,
                               place / kind], capture_output=True, text=True, timeout=LIMIT_S,
                              check=False)
        require_equal(done.returncode, 0, f"{kind}: {done.stderr[-2000:]}")
        require_equal(done.stdout.split(), ["True"] * 6, f"{kind}: the same bits, and read back")


if __name__ == "__main__":
    sys.exit(main())
