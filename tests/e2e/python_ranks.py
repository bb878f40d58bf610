"""What tests of several ranks share: a program that is started once for each."""

import os
import socket
import subprocess
import sys

from python_package import require_close, torch
from sluice_run import LIMIT_S, require_equal


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def started(program, place, how, count):
    place.mkdir(exist_ok=True)
    places = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
              "WORLD_SIZE": str(count), "GLOO_SOCKET_IFNAME": "lo"}
    return [subprocess.Popen([sys.executable, program, "rank", str(place), how],
                             env=os.environ | places | {"RANK": str(rank)},
                             stderr=subprocess.PIPE, text=True) for rank in range(count)]


def ended(programs):
    """What each said; all of them end."""
    return [(program.communicate(timeout=LIMIT_S)[1], program.returncode) for program in programs]


def run_of(program, place, how, count):
    """What each rank has left in `{how}-{rank}.pt`."""
    said = ended(started(program, place, how, count))
    require_equal([code for _, code in said], [0] * count, f"{how}: {said}")
    return [torch.load(place / f"{how}-{rank}.pt", weights_only=True) for rank in range(count)]


def require_losses(found, wanted):
    for rank, (one, other) in enumerate(zip(found, wanted, strict=True)):
        require_close(one["losses"], other["losses"], f"losses of rank {rank}")
