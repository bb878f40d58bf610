"""`python -m sluice`: what the package says about itself."""

import argparse
import os
import sys

from sluice import _doctor

EXAMPLES = """\
examples:
  python -m sluice doctor                          # this folder's drive
  python -m sluice doctor /nvme0/run /nvme1/run    # where the state is to lie

The optimizers are for programs (import sluice). Runs are looked at and turned with the commands
`sluice` and `sluice-gui`, which the package brings.
"""


def main():
    parser = argparse.ArgumentParser(
        prog="python -m sluice", description="The Python package of Sluice.", epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    doctor = commands.add_parser(
        "doctor", help="what this machine has, and what the package can do with it",
        description="Tries the parts of this machine one by one: 'ok', 'warn' with what to do, "
                    "'-' for what is not there and not needed, 'no' for what the package cannot "
                    "do without. 64 MiB are written into each folder and read back; nothing stays "
                    "there. Exit code: 0 the package can work; 1 something says 'no'.")
    doctor.add_argument("folders", nargs="*", default=["."], metavar="FOLDER",
                        help="where the state is to lie (default: here)")
    try:
        return _doctor.examine(parser.parse_args().folders)
    except BrokenPipeError:  # somebody has read enough (`| head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


if __name__ == "__main__":
    sys.exit(main())
