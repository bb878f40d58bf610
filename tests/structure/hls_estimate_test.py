#!/usr/bin/env python3
"""Area and speed of the kernels as hls/link/estimate.py counts them: none outgrew what is kept
beside it or the device, and growth that is planted in the sources is found. The rates that were
asked of the kernels hold by the same model."""

import pathlib
import shutil
import sys
import tempfile

from source_tree import ROOT, Report

sys.path.insert(0, str(ROOT / "hls/link"))
import estimate  # noqa: E402: they are found by the line above
import operators  # noqa: E402
import speed  # noqa: E402
import value_types  # noqa: E402

DENSE_LEAST = 1.0e9  # parameters/s of AdamW by one compute unit
SPARSE_SHARE_LEAST = 0.95  # of that, at a density of 0.01
PLATFORM = "sample_models/platforms/smartssd-a5000-estimated.toml"

KERNEL = """#include "hls/kernels/planted.h"
extern "C" void planted(const Word* in_in, Word* in_out, std::uint64_t words, std::uint32_t scale) {
#pragma HLS interface m_axi port=in_in bundle=state0 offset=slave
#pragma HLS interface m_axi port=in_out bundle=state0 offset=slave
#pragma HLS interface s_axilite port=words
#pragma HLS interface s_axilite port=scale
#pragma HLS interface s_axilite port=return
  planted_region(in_in, in_out, words, scale);
}
"""
HEADER = """#include <cstdint>
constexpr int kLanes = 16;
using Word = hls::vector<std::uint32_t, kLanes>;
using Words = hls::stream<Word, 64>;

void load_words(const Word* in, std::uint64_t words, Words& out) {
planted_words:
  for (std::uint64_t i = 0; i < words; ++i) {
#pragma HLS pipeline II=1
    out.write(in[i]);
  }
}

void scale_words(Words& in, std::uint64_t words, std::uint32_t scale, Word* out) {
  std::uint32_t kept[1024];
planted_scales:
  for (std::uint64_t i = 0; i < words; ++i) {
#pragma HLS pipeline II=1
    Word word = in.read();
  scale_lanes:
    for (int lane = 0; lane < kLanes; ++lane) {
#pragma HLS unroll
      word[lane] = word[lane] * scale + 1;
    }
    out[i] = word;
  }
}

void planted_region(const Word* in, Word* out, std::uint64_t words, std::uint32_t scale) {
#pragma HLS dataflow
  Words passed("passed");
  HLS_PROCESS(load_words(in, words, passed));
  HLS_PROCESS(scale_words(passed, words, scale, out));
}
"""
COUNTS = {"planted_words": lambda w: w.words, "planted_scales": lambda w: w.words}
MULTIPLY = "word[lane] = word[lane] * scale + 1;"

# What grows, and by which change of the header.
GROWTH = [
    ("dsp", MULTIPLY, MULTIPLY + "\n      word[lane] = word[lane] * word[lane];"),
    ("lut", MULTIPLY, MULTIPLY + "\n      word[lane] = word[lane] + scale;"),
    ("lut", MULTIPLY, MULTIPLY + "\n      word[lane] = word[lane] / scale;"),
    ("bram36", "hls::stream<Word, 64>", "hls::stream<Word, 1024>"),
    ("bram36", 'Words passed("passed");', 'Words passed("passed"), more("more");'),
    ("cycles a word", "planted_scales:\n  for (std::uint64_t i = 0; i < words; ++i) {\n"
     "#pragma HLS pipeline II=1", "planted_scales:\n  for (std::uint64_t i = 0; i < words; ++i) {\n"
     "#pragma HLS pipeline II=2"),
]


def estimated(header, counts=None):
    with tempfile.TemporaryDirectory(prefix="sluice-hls-") as scratch:
        root = pathlib.Path(scratch)
        (root / "hls/kernels").mkdir(parents=True)
        (root / "hls/kernels/planted.cpp").write_text(KERNEL)
        (root / "hls/kernels/planted.h").write_text(header)
        return estimate.estimates(root, 300, COUNTS if counts is None else counts)


def kept(found):
    return {"kernels": {each.kernel: {**each.area, "ii": each.ii} for each in found}}


def missed_growth():
    found, unused = estimated(HEADER)
    before = kept(found)
    missed = [f"blamed without cause: {each}" for each in
              estimate.growth(found, before, {}) + unused]
    for what, old, new in GROWTH:
        if old not in HEADER:
            missed.append(f"the sample has no {old!r}")
            continue
        grown, _ = estimated(HEADER.replace(old, new, 1))
        if not any(f" {what}" in said for said in estimate.growth(grown, before, {})):
            missed.append(f"{what} grew by {new!r}, and nothing was said")
    if not estimate.growth(found, {}, {}):
        missed.append("a kernel without kept figures")
    if not estimate.growth([], before, {}):
        missed.append("kept figures without a kernel")
    many = {"all": {"kernels": ["planted"] * 1000}}
    if not estimate.overfull(found, many):
        missed.append("an image of a thousand kernels")
    return missed


def missed_loops():
    """A loop without a count is no guess, and a count without a loop is said."""
    problems = []
    try:
        estimated(HEADER, {"planted_words": COUNTS["planted_words"]})
        problems.append("planted_scales has no count, and nothing was said")
    except value_types.Unknown as error:
        if "planted_scales" not in str(error):
            problems.append(f"{error} does not name the loop")
    _, unused = estimated(HEADER, {**COUNTS, "gone": lambda w: w.words})
    return problems + ([] if unused == ["gone"] else [f"unused: {unused}"])


def count_problems():
    """The sample by hand. A 32 x 32 product a lane is four multipliers. 512 bits in block memory
    are 15 halves of a block: for the FIFO of 64 words, and for an adapter's 16 x 16 words in each
    direction. 1,024 words of 32 bits are two halves."""
    found, _ = estimated(HEADER)
    area = found[0].area
    wanted = {"dsp": 16 * 4, "bram36": (15 + 2 * 15 + 2 + 1) // 2}
    return [f"{area[what]} {what}, by hand {value}" for what, value in wanted.items()
            if area[what] != value]


def rate_problems(found):
    adamw = next(each for each in found if each.kernel == "update_adamw")
    problems = []
    if adamw.dense_per_s < DENSE_LEAST:
        problems.append(f"AdamW: {adamw.dense_per_s:.3g} parameters/s, wanted {DENSE_LEAST:.3g}")
    if adamw.sparse_per_s < SPARSE_SHARE_LEAST * adamw.dense_per_s:
        problems.append(f"sparse: {adamw.sparse_per_s:.3g} of {adamw.dense_per_s:.3g}")
    for each in found:
        if each.sparse_per_s and each.dense_per_s < each.bound(each.bytes_dense):
            problems.append(f"{each.kernel} is slower than the bank: {each.dense_per_s:.3g}")
    return problems


def tile_problems():
    """A sparse tile takes as long as it has rows or kept elements, whichever is more."""
    counts = speed.COUNTS["step_rows"]
    thin = speed.Work(1 << 20, density=0.01, is_sparse=True)
    thick = speed.Work(1 << 20, density=0.25, is_sparse=True)
    said = (counts(thin), counts(thick))
    return [] if said == (1024, 4096) else [f"{said}"]


def page_problems(found, text):
    """Rows of the page's table are those that are printed."""
    rows = estimate.table_rows(found)
    return [f"docs/real_smartssd.md has no row: {row}" for row in rows if row not in text]


def platform_problems(found):
    """The platform file that is marked as estimated has what is estimated."""
    engine = estimate.load(ROOT, PLATFORM)["device"][0]["engine"]
    wanted = estimate.platform_rates(found)
    return [f"{PLATFORM}: {name} is {engine.get(name)}, estimated {rate}"
            for name, rate in wanted.items() if engine.get(name) != rate]


def operator_problems():
    """DSPs of products, by hand from tiles of 26 x 17 bits."""
    wanted = {(24, 24, None): 2, (32, 32, None): 4, (17, 26, None): 1, (64, 64, 64): 8,
              (64, 32, 64): 5}
    return [f"{bits}: {operators.product(*bits).dsp}, by hand {dsp}" for bits, dsp in
            wanted.items() if operators.product(*bits).dsp != dsp]


def keep_problems():
    """`--keep` writes what is read."""
    with tempfile.TemporaryDirectory(prefix="sluice-hls-") as scratch:
        root = pathlib.Path(scratch)
        shutil.copytree(ROOT / "hls/kernels", root / "hls/kernels")
        found, _ = estimate.estimates(root, 300)
        (root / estimate.KEPT).write_text(estimate.kept_text(found))
        return estimate.growth(found, estimate.load(root, estimate.KEPT), {})


def main():
    report = Report()
    report.check("products take the DSPs that tiles of 26 x 17 give", operator_problems())
    report.check("a small kernel is counted as by hand", count_problems())
    report.check("planted growth of a kernel is found", missed_growth())
    report.check("loops and their counts belong together", missed_loops())
    report.check("a tile takes its rows or its kept elements", tile_problems())
    report.check("what is kept is what was estimated", keep_problems())
    table = estimate.load(ROOT, estimate.TABLE)
    found, unused = estimate.estimates(ROOT, table["platform"]["clock_mhz"])
    report.check("the estimated platform has the estimated rates", platform_problems(found))
    report.check("no kernel outgrew what is kept, nor an image the device", [
        *estimate.growth(found, estimate.load(ROOT, estimate.KEPT), table["images"]),
        *(f"COUNTS has {label}, which is no loop" for label in unused)])
    text = (ROOT / "docs/real_smartssd.md").read_text()
    report.check("the page has the estimates", page_problems(found, text))
    report.check("an estimate that the page has not is found",
                 [] if page_problems(found, text.replace("| 4.0 |", "| 5.0 |")) else ["nothing"])
    report.check("the kernels are as fast as was asked, by the model", rate_problems(found))
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
