"""The speed of the kernels: cycles of a run, from the loops of their sources.

All processes of a region run at once, so

    cycles = max over processes of (sum over its loops of count x II) + fill
    fill   = the stages of every process, as if they stood in one chain

A loop's II is its pragma's; its count is a constant of the source, or, by its label, one of COUNTS
below. A loop that is not pipelined costs its inner ones and their stages in each turn: that is what
a tile's change costs. The words of a port are the counts of the loops that move them, at one word a
cycle, so ports are in the maximum. Beside it stands the bound of the memory: one bank has one
channel,

    parameters/s <= bank bytes/s / bytes a parameter that cross it
"""

import dataclasses
import math

import operators
from area import Area, Scope
from hls_source import If, Loop, Plain, Sources, split
from value_types import Unknown


@dataclasses.dataclass
class Work:
    """One run of a kernel: what its loops' counts depend on."""

    elements: int
    density: float = 1.0
    gradient_bytes: int = 2  # of one dense element or one kept value
    is_sparse: bool = False

    @property
    def words(self):
        return math.ceil(self.elements / 16)

    @property
    def kept(self):
        return round(self.elements * self.density) if self.is_sparse else 0

    @property
    def tiles(self):
        return math.ceil(self.elements / 16384)

    @property
    def values(self):
        """Dense elements or kept values, in words."""
        return math.ceil((self.kept if self.is_sparse else self.elements)
                         * self.gradient_bytes / 64)

    @property
    def dense(self):
        return 0 if self.is_sparse else self.words


# How often a loop turns whose bound is not a constant, by its label. One that has no entry is an
# error, and so is an entry without a loop.
COUNTS = {
    "send_counts": lambda w: math.ceil(w.tiles / 16) * 16 if w.is_sparse else 0,
    "load_value_words": lambda w: w.values,
    "load_index_words": lambda w: math.ceil(w.kept / 32),
    "unpack_words": lambda w: w.dense,
    "unpack_value": lambda w: w.kept,
    "unpack_index": lambda w: w.kept,
    "fill_tiles": lambda w: w.tiles + 1 if w.is_sparse else 0,
    "step_rows": lambda w: max(1024, math.ceil(w.kept / w.tiles)),  # of one tile
    "drain_kept": lambda w: 0,
    "send_zero_words": lambda w: 0,
    "pass_dense_words": lambda w: w.dense,
    "load_state_words": lambda w: w.words,
    "store_state_words": lambda w: w.words,
    "update_turns": lambda w: 4 * w.words,
    "store_parameter_words": lambda w: w.words,
    # Split state in the exact format, which has the most words.
    "load_plain_words": lambda w: w.words,
    "store_plain_words": lambda w: w.words,
    "load_blocks": lambda w: math.ceil(w.words / 256),
    "load_block_scales": lambda w: 8,
    "load_block_codes": lambda w: 256,
    "hash_block_scales": lambda w: 8,
    "store_blocks": lambda w: math.ceil(w.words / 256),
    "store_block_codes": lambda w: 256,
    "store_block_scales": lambda w: 8,
    "update_group_turns": lambda w: 4 * w.words,
    "encode_group_turns": lambda w: 4 * w.words + 16,
    "sum_slots": lambda w: 4 * w.words + 48,
    "fold_array_sums": lambda w: math.ceil(12 * w.words / 4 / 16),
    "sum_words": lambda w: w.words,
    "fold_sums": lambda w: math.ceil(w.words / 16),
    "load_chunks": lambda w: math.ceil(w.words / 1024),
    "load_burst": lambda w: math.ceil(64 * w.gradient_bytes / 4),
    "unpack_row": lambda w: math.ceil(w.words / 1024) * 1024,
    "interleave_row": lambda w: math.ceil(w.words / 1024) * 1024 + 1024,
    "sum_row": lambda w: math.ceil(w.words / 1024) * 1024,
    "add_block_sums": lambda w: math.ceil(w.words / 16384) * 16,
    "load_byte_words": lambda w: w.words,
    "align_each": lambda w: w.words,
}


class Model(Area):
    """The kernels of a folder. cycles() is of the one that kernel() counted last."""

    def __init__(self, root, counts=None):
        super().__init__(Sources(root))
        self.counts = COUNTS if counts is None else counts
        self.used_labels = set()

    def cycles(self, work):
        """(cycles of the process that takes longest, fill, its name) of the kernel under way."""
        longest, name, fill = 0, "", 0
        for function, scope, cost in self.processes:
            busy = self.turns(function.body, function, scope, work, cost.stages)
            fill += cost.stages
            if any(p for p in function.parameters if "*" in p):
                fill += operators.PORT_STAGES
            if busy > longest:
                longest, name = busy, function.name
        return longest, math.ceil(fill), name

    def turns(self, block, function, scope, work, stages):
        """Cycles of the loops in a block, and in what it calls."""
        total = 0
        for item in block.items:
            if isinstance(item, Loop):
                total += self.loop_turns(item, function, scope, work, stages)
            elif isinstance(item, If):
                total += sum(self.turns(b, function, scope, work, stages) for b in item.blocks())
            elif isinstance(item, Plain):
                total += self.called_turns(item.tokens, function, work, stages)
        return total

    def called_turns(self, tokens, function, work, stages):
        total = 0
        for _, named, _ in self.sources.calls_in(tokens, function):
            if named and named[0].body.loops():
                total += self.turns(named[0].body, named[0], None, work, stages)
        if len(tokens) == 2 and tokens[0] in self.members:  # an object: its constructor's loops
            for constructor in self.sources.functions:
                if constructor.scope == constructor.name == tokens[0]:
                    total += self.turns(constructor.body, constructor, None, work, stages)
        return total

    def loop_turns(self, loop, function, scope, work, stages):
        if loop.pragma("unroll"):
            return 0
        count = self.trip_count(loop, scope or Scope({}, {}, set(), {}, {}, (), set()))
        if count is None:
            templates_only = self.sources.is_constant(
                split(loop.header, ";")[1][2:], function.templates)
            if loop.label in self.counts:
                self.used_labels.add(str(loop.label))
                count = self.counts[loop.label](work)
            elif templates_only:
                count = 4
            else:
                raise Unknown(f"{function.file}:{loop.line}: {loop.label} has no count in COUNTS")
        pipeline = loop.pragma("pipeline")
        if pipeline and "off" not in pipeline.words:
            return count * int(pipeline.options["ii"])
        # Its inner loops drain before the next turn; how deep they are is the process's at most.
        inner = self.turns(loop.body, function, scope, work, stages)
        if inner and any("*" in parameter for parameter in function.parameters):
            stages += operators.PORT_STAGES  # each turn asks the memory anew
        return count * (inner + stages) if count else 0
