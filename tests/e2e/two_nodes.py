"""Two network namespaces of this machine as two machines: each has its own interface, address and
host name, and mpirun starts ranks on both. What they do not have is a file system of their own, as
two machines that share one."""

import contextlib
import os
import shutil
import subprocess
import uuid

from launched import mpirun
from sluice_run import Skip

ADDRESSES = ("10.77.0.1", "10.77.0.2")
# mpirun starts its daemons through this in place of ssh: HOST COMMAND... The name of a node must be
# its own, or its ranks count as this machine's.
AGENT = """#!/bin/sh
case $1 in *0.1) node={0};; *) node={1};; esac
shift
exec ip netns exec $node unshare --uts sh -c "hostname $node; $*"
"""


def _ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=False)


class TwoNodes:
    def __init__(self, names, agent):
        self.names = names
        self.agent = agent

    def mpirun(self, ranks_of_each):
        """The words before `-n RANKS PROGRAM`."""
        only = ["--mca", "oob_tcp_if_include", "10.77.0.0/24", "--mca", "btl_tcp_if_include",
                "10.77.0.0/24", "--mca", "plm_rsh_agent", str(self.agent)]
        hosts = ",".join(f"{address}:{ranks_of_each}" for address in ADDRESSES)
        return ["ip", "netns", "exec", self.names[0], "unshare", "--uts", "sh", "-c",
                'hostname "$0" && exec "$@"', self.names[0], *mpirun(), *only, "-host", hosts]

    def processes_of(self, node):
        return {int(pid) for pid in _ip("netns", "pids", self.names[node]).stdout.split()}


@contextlib.contextmanager
def two_nodes(place):
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("unshare") is None:
        raise Skip("network namespaces need root, ip (Debian: iproute2) and unshare")
    mpirun()
    tag = uuid.uuid4().hex[:6]
    names = (f"sluice{tag}a", f"sluice{tag}b")
    agent = place / "agent.sh"
    agent.write_text(AGENT.format(*names))
    agent.chmod(0o755)
    try:
        for name in names:
            made = _ip("netns", "add", name)
            if made.returncode != 0:
                raise Skip(f"ip netns add: {made.stderr.strip()}")
        made = _ip("link", "add", f"v{tag}a", "netns", names[0], "type", "veth",
                   "peer", "name", f"v{tag}b", "netns", names[1])
        if made.returncode != 0:
            raise Skip(f"ip link add: {made.stderr.strip()}")
        for name, end, address in zip(names, "ab", ADDRESSES):
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", f"v{tag}{end}")
            _ip("-n", name, "link", "set", f"v{tag}{end}", "up")
            _ip("-n", name, "link", "set", "lo", "up")
        yield TwoNodes(names, agent)
    finally:
        for name in names:
            _ip("netns", "delete", name)
