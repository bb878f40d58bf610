#!/usr/bin/env python3
"""The kernels hold what hls/link/lint.py asks of them, and each of its checks finds a breach that
is planted in a small kernel. Where g++ is there, the kernels also compile as what v++ takes: C++14,
with __SYNTHESIS__, from headers that have no more than the vendor's."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from source_tree import ROOT, Report

sys.path.insert(0, str(ROOT / "hls/link"))
import lint  # noqa: E402: it is found by the line above

SAMPLE = """// A sample.
#include <hls_stream.h>
#include <hls_vector.h>

#include <cstdint>

namespace sample {
constexpr int kLanes = 16;
using Word = hls::vector<std::uint32_t, kLanes>;
using Words = hls::stream<Word, 8>;

struct Sum {
  std::uint32_t value = 0;
  std::uint32_t added(std::uint32_t other) const { return value + other; }
};

inline int first(int a) { return second(a, 1); }
inline int second(int a, int b) { return a + b; }
inline int second(int a) { return a % (2 * kLanes) + a / kLanes; }

void load_words(const Word* in, std::uint64_t words, Words& out) {
load_each:
  for (std::uint64_t i = 0; i < words; ++i) {
#pragma HLS loop_tripcount min = 1 max = 1024 avg = 16
#pragma HLS pipeline II = 1
    out.write(in[i]);
  }
}

template <int LANES>
void store_words(Words& in, std::uint64_t words, Word* out) {
  std::uint32_t kept[LANES];
#pragma HLS array_partition variable=kept complete
store_each:
  for (std::uint64_t i = 0; i < words; ++i) {
#pragma HLS loop_tripcount min=1 max=1024
#pragma HLS pipeline II=1
    Word word = in.read();
  copy_lanes:
    for (int lane = 0; lane < LANES; ++lane) {
#pragma HLS unroll
      kept[lane] = word[lane] + first(lane);
    }
    out[i] = word;
  }
}

void copy_region(const Word* in, Word* out, std::uint64_t words) {
#pragma HLS dataflow
  HLS_BEGIN();
  Words passed("passed");
  HLS_PROCESS(load_words(in, words, passed));
  HLS_PROCESS(store_words<kLanes>(passed, words, out));
  HLS_END();
}

extern "C" void copy(const Word* in, Word* out, std::uint64_t words, float scale) {
#pragma HLS interface m_axi port=in bundle=memory offset=slave \\
    max_read_burst_length=64
#pragma HLS interface m_axi port=out bundle=memory offset=slave
#pragma HLS interface s_axilite port=words
#pragma HLS interface s_axilite port=scale
#pragma HLS interface s_axilite port=return
#ifndef __SYNTHESIS__
  std::vector<int> seen_by_no_one;
#endif
  copy_region(in, out, words);
}
}  // namespace sample
"""
TABLE = {"kernels": {"copy": {"source": "hls/kernels/copy.cpp",
                              "bundle_of": {"in": "memory", "out": "memory"}}},
         "images": {"copy": {"kernels": ["copy"]}}}

BODY = "    out[i] = word;"
MEMBER = "  std::uint32_t value = 0;"
LANES = "    for (int lane = 0; lane < LANES; ++lane) {\n#pragma HLS unroll"

# What must be said, what is changed for it, and what to.
BREACHES = [
    ("include", "#include <cstdint>", "#include <iostream>"),
    ("include", "#include <cstdint>", '#include "base/units.h"'),
    ("heap", BODY, "    int* p = new int;"),
    ("heap", BODY, "    free(out);"),
    ("virtual", MEMBER, MEMBER + "\n  virtual int f() { return 1; }"),
    ("exception", BODY, "    throw 1;"),
    ("rtti", BODY, "    typeid(word);"),
    ("system-call", BODY, '    printf("here");'),
    ("language", BODY, "    volatile int a = 0;"),
    ("double", BODY, "    double a = 0;"),
    ("std", BODY, "    std::vector<int> a;"),
    ("std", BODY, "    std::string a;"),
    ("std", BODY, "    std::bit_cast<int>(word[0]);"),
    ("function-pointer", BODY, "    int (*called)(int) = first;"),
    ("unknown-pragma", "#pragma HLS dataflow", "#pragma HLS dataflw"),
    ("unknown-pragma", "#pragma HLS dataflow", "#pragma GCC ivdep"),
    ("unknown-option", "pipeline II=1", "pipeline II=1 rewound"),
    ("unknown-option", "port=out bundle=memory", "port=out bundel=memory"),
    ("unknown-option", "max = 1024 avg = 16", "max = 1024 mean = 16"),
    ("two-forms", "#pragma HLS pipeline II=1",
     "#pragma HLS dependence variable=kept type=inter false\n#pragma HLS pipeline II=1"),
    ("stray-pragma", "using Words", "#pragma HLS inline\nusing Words"),
    ("unlabelled-loop", "load_each:", ""),
    ("unlabelled-loop", "copy_lanes:", ""),
    ("label-twice", "copy_lanes:", "store_each:"),
    ("unbounded-loop", "#pragma HLS loop_tripcount min=1 max=1024", ""),
    ("unbounded-loop", LANES, "    while (word[0] > i) {"),
    ("unbounded-loop", LANES, "    for (int lane = i; lane < LANES; ++lane) {"),
    ("unbounded-loop", LANES, "    for (int lane = 0; word[lane] < LANES; ++lane) {"),
    ("unbounded-unroll", LANES, "    for (int lane = 0; lane < words; ++lane) {\n"
     "#pragma HLS loop_tripcount min=1 max=2\n#pragma HLS unroll"),
    ("tripcount", "loop_tripcount min=1 max=1024", "loop_tripcount max=1024"),
    ("pipeline-without-ii", "pipeline II=1", "pipeline"),
    ("variable-length", "kept[LANES]", "kept[words]"),
    ("division", "return a + b;", "return a / b;"),
    ("division", "return a + b;", "return a % first(b);"),
    ("division", "return a + b;", "return a % (b + 1);"),
    ("recursion", "return a + b;", "return first(a);"),
    ("recursion", "return value + other;", "return added(other);"),
    ("stream-ends", "HLS_PROCESS(load_words(in, words, passed));", ""),
    ("stream-ends", "HLS_END();", "HLS_PROCESS(load_words(in, words, passed));"),
    ("pointer-without-port", "#pragma HLS interface m_axi port=out bundle=memory offset=slave", ""),
    ("port-without-pointer", "port=out", "port=owt"),
    ("scalar-without-register", "#pragma HLS interface s_axilite port=scale", ""),
    ("register-without-argument", "s_axilite port=scale", "s_axilite port=scales"),
    ("return-without-register", "#pragma HLS interface s_axilite port=return", ""),
    ("no-bundle", "port=out bundle=memory", "port=out"),
    ("no-offset", "bundle=memory offset=slave\n", "bundle=memory\n"),
    ("argument", "float scale", "float& scale"),
    ("other-bundle", "port=out bundle=memory", "port=out bundle=other"),
    ("unreadable", "  HLS_BEGIN();", "  switch (words) {}"),
]
# The same of the table: what must be said, and the table.
TABLE_BREACHES = [
    ("not-linked", {"kernels": {}}),
    ("not-linked", {"kernels": {"copy": {**TABLE["kernels"]["copy"],
                                         "bundle_of": {"in": "memory"}}}}),
    ("linked-without-pointer", {"kernels": {"copy": {
        **TABLE["kernels"]["copy"],
        "bundle_of": {"in": "memory", "out": "memory", "more": "memory"}}}}),
    ("linked-without-kernel", {"kernels": {**TABLE["kernels"], "paste": {}}}),
    ("linked-without-kernel", {**TABLE, "images": {"copy": {"kernels": ["copy", "paste"]}}}),
    ("other-source", {"kernels": {"copy": {**TABLE["kernels"]["copy"], "source": "copy.cc"}}}),
]

# No more than a kernel may use of the vendor's headers.
VENDOR_HEADERS = {
    "hls_vector.h": """#pragma once
namespace hls {
template <typename T, unsigned long N>
class vector {
 public:
  vector() = default;
  vector(const T& value) { for (auto& each : elements_) each = value; }
  T& operator[](unsigned long i) { return elements_[i]; }
  const T& operator[](unsigned long i) const { return elements_[i]; }
 private:
  alignas(sizeof(T) * N) T elements_[N];
};
}
""",
    "hls_stream.h": """#pragma once
namespace hls {
template <typename T, int DEPTH = 2>
class stream {
 public:
  stream() {}
  explicit stream(const char*) {}
  stream(const stream&) = delete;
  void write(const T& value) { value_ = value; }
  T read() { return value_; }
  bool empty() const { return true; }
 private:
  T value_;
};
}
""",
}


def said_of(text, table):
    with tempfile.TemporaryDirectory(prefix="sluice-hls-") as scratch:
        root = pathlib.Path(scratch)
        (root / "hls/kernels").mkdir(parents=True)
        (root / "hls/kernels/copy.cpp").write_text(text)
        return lint.problems_of(root, table)


def missed_breaches():
    missed = [f"a clean kernel is blamed: {said}" for said in said_of(SAMPLE, TABLE)]
    for name, old, new in BREACHES:
        if old not in SAMPLE:
            missed.append(f"the sample has no {old!r}")
        elif not any(f"[{name}]" in said for said in said_of(SAMPLE.replace(old, new, 1), TABLE)):
            missed.append(f"{name} is not said of {new!r}")
    for name, table in TABLE_BREACHES:
        if not any(f"[{name}]" in said for said in said_of(SAMPLE, table)):
            missed.append(f"{name} is not said of the table {table}")
    return missed


def untried_checks():
    """Names that the linter can say and no breach above asks for."""
    source = (ROOT / "hls/link/lint.py").read_text()
    names = set(re.findall(r'self\.say\([^"]*"([\w-]+)"', source))
    names |= {name for name, _ in lint.WORDS.values()}
    tried = {name for name, *_ in BREACHES + TABLE_BREACHES}
    return [f"no breach is planted for {name}" for name in sorted(names - tried)]


def place_problems():
    """A problem names the line that it is on."""
    text = SAMPLE.replace("load_each:", "")
    line = text.splitlines().index("  for (std::uint64_t i = 0; i < words; ++i) {") + 1
    said = said_of(text, TABLE)
    wanted = f"hls/kernels/copy.cpp:{line}: [unlabelled-loop]"
    return [] if any(each.startswith(wanted) for each in said) else [f"{wanted} not in {said}"]


def compile_problems():
    """What g++ says of each kernel as C++14. Of C++17 it takes inline variables and `if constexpr`,
    as v++'s front end does, with a warning that is no concern here."""
    problems = []
    kernels = sorted((ROOT / "hls/kernels").glob("*.cpp"))
    with tempfile.TemporaryDirectory(prefix="sluice-hls-") as scratch:
        for name, text in VENDOR_HEADERS.items():
            (pathlib.Path(scratch) / name).write_text(text)
        for kernel in kernels:
            said = subprocess.run(
                ["g++", "-std=c++14", "-fsyntax-only", "-D__SYNTHESIS__", f"-I{scratch}",
                 f"-I{ROOT}", str(kernel)], capture_output=True, text=True, check=False)
            if said.returncode != 0:
                errors = re.findall(r".*error: .*", said.stderr)
                problems.append(errors[0] if errors else said.stderr)
    return problems if kernels else ["there is no kernel"]


def main():
    report = Report()
    report.check("planted breaches of what HLS takes are found", missed_breaches())
    report.check("each check of the linter has a planted breach", untried_checks())
    report.check("a problem names its line", place_problems())
    report.check("the kernels hold what HLS asks",
                 lint.problems_of(ROOT, lint.load_table(ROOT)))
    if shutil.which("g++"):
        report.check("the kernels compile as C++14 under __SYNTHESIS__", compile_problems())
    else:
        report.skip("the kernels compile as C++14 under __SYNTHESIS__", "there is no g++")
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
