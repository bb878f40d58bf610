#!/usr/bin/env python3
"""Our io_uring engine against fio's, in turns on the same file: A B A B ...

Both: one file, O_DIRECT, registered (fixed) buffers, files not registered, no polling, one
process, the same block size, depth, length and mix. A mixed run is half reads, half writes. Each
pair gives one ratio ours/fio; the median is printed for each mix. Which of the two goes first
alternates, since a drive often rewards whoever comes second.

Example: bench/io/against_fio.py --bench build/release/bin/bench_io --dir /mnt/nvme0
"""
import argparse
import json
import statistics
import subprocess
import sys


def run_ours(options, mix):
    command = [options.bench, "--json", "--dir", options.dir, "--size", str(options.size),
               "--block", str(options.block), "--depth", str(options.depth),
               "--seconds", str(options.seconds), "--mix", mix]
    return json.loads(run(command))["rate"]


def run_fio(options, mix):
    command = ["fio", "--name=against", "--ioengine=io_uring", "--direct=1", "--fixedbufs=1",
               f"--filename={options.dir}/bench_io.data", f"--size={options.size}",
               f"--bs={options.block}", f"--iodepth={options.depth}", f"--rw={mix}",
               "--rwmixread=50", "--time_based=1", f"--runtime={options.seconds}",
               "--overwrite=1", "--randrepeat=1", "--output-format=json"]
    job = json.loads(run(command))["jobs"][0]
    return job["read"]["bw_bytes"] + job["write"]["bw_bytes"]


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nfailed with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def compare(options, mix):
    ratios = []
    for pair in range(options.pairs):
        order = (run_ours, run_fio) if pair % 2 == 0 else (run_fio, run_ours)
        rates = {engine: engine(options, mix) for engine in order}
        ratios.append(rates[run_ours] / rates[run_fio])
        print(f"{mix:5} pair {pair + 1}: ours {rates[run_ours] / 1e6:8.1f} MB/s, "
              f"fio {rates[run_fio] / 1e6:8.1f} MB/s, ratio {ratios[-1]:.3f}", flush=True)
    print(f"{mix:5} median of ratios {statistics.median(ratios):.3f} "
          f"(from {min(ratios):.3f} to {max(ratios):.3f})", flush=True)
    return statistics.median(ratios)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True, help="the bench_io program")
    parser.add_argument("--dir", default=".", help="folder on the drive to measure")
    parser.add_argument("--size", type=int, default=1 << 30, help="bytes of the file")
    parser.add_argument("--block", type=int, default=1 << 20, help="bytes of a request")
    parser.add_argument("--depth", type=int, default=16)
    parser.add_argument("--seconds", type=int, default=3, help="of each run")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--mix", nargs="+", default=["read", "write", "rw"],
                        choices=["read", "write", "rw"])
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
