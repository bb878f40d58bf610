"""What operators cost on an UltraScale+ fabric. Nothing of it was measured on a device: each figure
has the document or the derivation that it comes from, and all that is made of it is *estimated*.

  UG579   UltraScale DSP48E2 slice: a multiplier of 27 x 18 bits, two's complement
  UG574   UltraScale CLB: LUTs of six inputs (or two of five), a carry chain of eight bits a CLB
  UG573   UltraScale memory: 36 Kbit, 72 bits wide at most, or two of 18 Kbit and 36 bits
  UG1399  Vitis HLS: FIFOs, adapters of m_axi ports and their defaults
"""

import dataclasses
import math

# Kintex UltraScale+ KU15P (DS922, table 2; Smart-Infinity, HPCA 2024, table III has the same).
BUDGET = {"dsp": 1968, "lut": 522720, "ff": 1045440, "bram36": 984, "uram": 128}
# The share of LUTs that is left to kernels. The platform's own part is not published for this
# drive; a fifth is assumed, and that no design routes that fills more.
USABLE = 0.8


@dataclasses.dataclass
class Cost:
    """Area, and stages of a pipeline as if all of it stood in one chain (so no fill is too
    short)."""

    dsp: float = 0
    lut: float = 0
    ff: float = 0
    bram18: int = 0
    stages: float = 0

    def __add__(self, other):
        return Cost(self.dsp + other.dsp, self.lut + other.lut, self.ff + other.ff,
                    self.bram18 + other.bram18, self.stages + other.stages)

    def copies(self, count):
        """Side by side: the stages stay."""
        return Cost(self.dsp * count, self.lut * count, self.ff * count, self.bram18 * count,
                    self.stages)

    def shared(self, cycles):
        """One operator does the work of `cycles` ones, if it may take as many cycles."""
        return Cost(math.ceil(self.dsp / cycles), math.ceil(self.lut / cycles), self.ff,
                    self.bram18, self.stages + cycles - 1)

    def bram36(self):
        return math.ceil(self.bram18 / 2)


def product(a, b, kept=None):
    """Unsigned a x b bits, of which the lower `kept` are wanted. Tiles of 26 x 17: those of UG579's
    27 x 18 without the signs. A tile whose lowest bit is not wanted is left out. An adder for each
    tile but the first is in the slice. Four stages: UG579's three registers and one of the sum."""
    kept = kept or a + b

    def tiles(wide, narrow):
        return sum(1 for i in range(0, wide, 26) for j in range(0, narrow, 17) if i + j < kept)

    return Cost(dsp=min(tiles(a, b), tiles(b, a)), ff=min(kept, a + b), stages=4)


def adder(bits):
    """UG574: a LUT and a carry a bit. 64 bits of carry are what 3.3 ns takes with its routes."""
    return Cost(lut=bits, ff=bits, stages=1)


def comparator(bits):
    """UG574: two bits a LUT, joined by the carry."""
    return Cost(lut=math.ceil(bits / 2), ff=1, stages=1)


def constant_comparator(bits):
    """With a constant: five bits a LUT, and the sixth input joins them."""
    return Cost(lut=math.ceil(bits / 5), ff=1, stages=1)


def decoder(bits):
    """One bit of so many, of a number of at most six bits: a LUT each."""
    return Cost(lut=bits, ff=bits, stages=1)


def mux(bits):
    """UG574: two bits a LUT, of two inputs each and one select. Merged into its neighbour's
    stage."""
    return Cost(lut=math.ceil(bits / 2))


def logic(bits):
    """Of two variable inputs: two bits a LUT of two times five inputs. Merged into a stage."""
    return Cost(lut=math.ceil(bits / 2))


def shifter(bits):
    """A LUT of six inputs chooses one of four: two levels of a barrel a LUT."""
    levels = max(1, math.ceil(math.log2(bits)))
    return Cost(lut=bits * math.ceil(levels / 2), ff=bits, stages=2)


def selector(entries, bits):
    """One of so many entries: a LUT chooses one of four, and stands for three of them."""
    return Cost(lut=bits * math.ceil((entries - 1) / 3), ff=bits, stages=1)


def divider(bits):
    """By what is no constant: a row of a subtraction for each bit (restoring), a stage each."""
    return Cost(lut=bits * bits, ff=2 * bits * bits, stages=bits + 2)


def fifo(bits, depth):
    """UG1399, config_storage: shift registers up to a depth of 2 or 1,024 bits in all (the defaults
    of auto_srl_max_depth and auto_srl_max_bits), else block memory, 36 bits and 512 words a
    half."""
    control = Cost(lut=20, ff=20)
    if depth <= 2 or bits * depth <= 1024:
        return control + Cost(lut=bits * math.ceil(depth / 32), ff=bits)
    return control + Cost(bram18=math.ceil(bits / 36) * math.ceil(depth / 512), ff=bits)


def memory(bits, depth):
    """Block memory with a port that reads and one that writes."""
    if bits * depth <= 1024:
        return Cost(lut=math.ceil(bits * depth / 32), ff=bits)
    return Cost(bram18=math.ceil(bits / 36) * math.ceil(depth / 512), ff=bits, stages=1)


def adapter(bits, burst, outstanding):
    """One direction of an m_axi port. UG1399: its buffer holds burst x outstanding words. The logic
    (address, split into bursts, alignment) is assumed: twice the width in LUTs, four times in
    FFs."""
    return Cost(lut=2 * bits, ff=4 * bits) + memory(bits, burst * outstanding)


# A process of a region, or a kernel: its state machine and handshakes. Assumed.
PROCESS = Cost(lut=150, ff=200, stages=3)
# A 32-bit register of s_axilite with its address. Assumed.
REGISTER = Cost(lut=20, ff=40)
# From an address to the first word (UG1399: HLS schedules with 64 cycles).
PORT_STAGES = 64
AXI_DEFAULT = 16  # UG1399: burst length and outstanding requests, where a pragma says nothing

# LUTs of ieee.h's operators, by function: what yosys 0.23 made of the same operations written by
# hand in ieee_area.v, which has the command, without the product, which is in DSPs; and what is
# counted here in the sources that were transcribed. Their quotient corrects the count, so that a
# change of the source changes the estimate. yosys pairs no small LUTs, so Vivado may well come out
# below.
CALIBRATION = {
    "multiply": (801, 1544),
    "fused_multiply_add": (3045, 3596),
    "add": (1244, 2222),
    "divide": (3451, 3644),
    "square_root": (2218, 2481),
}


def calibrated(name, cost):
    if name not in CALIBRATION:
        return cost
    measured, counted = CALIBRATION[name]
    return dataclasses.replace(cost, lut=math.ceil(cost.lut * measured / counted))
