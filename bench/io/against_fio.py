#!/usr/bin/env python3
"""Our io_uring engine against fio's, in turns on the same file.

Both: one file, O_DIRECT, registered (fixed) buffers, files not registered, no polling, one
process, the same block size, depth, length and mix; by default requests are submitted and reaped
one by one, as fio does by default. A mixed run is half reads, half writes.

Our buffers ask for transparent huge pages, which matters much: scattered pages split a request. By
default fio's malloc is told to do the same (GLIBC_TUNABLES=glibc.malloc.hugetlb=1), so that engines
are compared and not memory; --fio-memory plain leaves fio as it comes.

A round is ours, fio, fio, ours, and gives one ratio: the sum of our two rates over the sum of
fio's. A drive with a burst allowance is fast and slow by turns, and plain ours, fio, ours, fio
would give one side all the fast turns. The median of the rounds is printed for each mix, with all
runs, so that the noise can be seen.

Example: bench/io/against_fio.py --bench build/release/bin/bench_io --dir /mnt/nvme0
"""
import argparse
import json
import os
import statistics
import subprocess
import sys


def run_ours(options, mix):
    command = [options.bench, "--json", "--dir", options.dir, "--size", str(options.size),
               "--block", str(options.block), "--depth", str(options.depth),
               "--batch", str(options.batch), "--seconds", str(options.seconds), "--mix", mix]
    return json.loads(run(command))["rate"]


def run_fio(options, mix):
    command = ["fio", "--name=against", "--ioengine=io_uring", "--direct=1", "--fixedbufs=1",
               f"--filename={options.dir}/bench_io.data", f"--size={options.size}",
               f"--bs={options.block}", f"--iodepth={options.depth}", f"--rw={mix}",
               "--rwmixread=50", "--time_based=1", f"--runtime={options.seconds}",
               "--overwrite=1", "--randrepeat=1", f"--iodepth_batch_submit={options.batch}",
               "--iodepth_batch_complete_min=1", f"--iodepth_batch_complete_max={options.batch}",
               "--output-format=json"]
    tunables = {"huge": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}, "plain": {}}
    job = json.loads(run(command, tunables[options.fio_memory]))["jobs"][0]
    return job["read"]["bw_bytes"] + job["write"]["bw_bytes"]


def run(command, environment=None):
    done = subprocess.run(command, capture_output=True, text=True,
                          env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nfailed with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def compare(options, mix):
    ratios = []
    for number in range(options.rounds):
        rates = {run_ours: [], run_fio: []}
        for engine in (run_ours, run_fio, run_fio, run_ours):
            rates[engine].append(engine(options, mix))
        ratios.append(sum(rates[run_ours]) / sum(rates[run_fio]))
        print(f"{mix:5} round {number + 1}: ours {megabytes(rates[run_ours])}, "
              f"fio {megabytes(rates[run_fio])} MB/s, ratio {ratios[-1]:.3f}", flush=True)
    print(f"{mix:5} median of ratios {statistics.median(ratios):.3f} "
          f"(from {min(ratios):.3f} to {max(ratios):.3f})", flush=True)
    return statistics.median(ratios)


def megabytes(rates):
    return " ".join(f"{rate / 1e6:.0f}" for rate in rates)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True, help="the bench_io program")
    parser.add_argument("--dir", default=".", help="folder on the drive to measure")
    parser.add_argument("--size", type=int, default=1 << 30, help="bytes of the file")
    parser.add_argument("--block", type=int, default=1 << 20, help="bytes of a request")
    parser.add_argument("--depth", type=int, default=16)
    parser.add_argument("--batch", type=int, default=1, help="requests at once, both ways")
    parser.add_argument("--seconds", type=int, default=2, help="of each run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mix", nargs="+", default=["read", "write", "rw"],
                        choices=["read", "write", "rw"])
    parser.add_argument("--fio-memory", choices=["huge", "plain"], default="huge")
    parser.add_argument("--at-least", type=float, help="exit with 1 if a median is lower")
    options = parser.parse_args()
    # Makes the file where it is missing, so that no measured run does.
    run([options.bench, "--json", "--dir", options.dir, "--size", str(options.size), "--block",
         str(options.block), "--seconds", "0.1"])
    medians = [compare(options, mix) for mix in options.mix]
    if options.at_least is not None and min(medians) < options.at_least:
        sys.exit(f"a median is under {options.at_least}")


if __name__ == "__main__":
    main()
