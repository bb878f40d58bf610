"""A Slurm of two nodes on this host (docs/more_than_one_machine.md): daemons of its own, with
files, ports and a key of their own below one folder, as whoever runs the test. The Slurm that the
machine may have is not touched."""

import contextlib
import getpass
import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import time

from sluice_run import LIMIT_S, Skip, require

DAEMONS = ("munged", "slurmctld", "slurmd")
CLIENTS = ("sbatch", "srun", "scancel", "squeue", "sinfo")
NODES = 2
# Those of the daemons lie on no ordinary user's path.
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"

CONFIGURATION = """
ClusterName=sluice
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
SlurmctldPort={ports[0]}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
SlurmdSpoolDir={folder}/%n
StateSaveLocation={folder}/saved
TmpFS={folder}/%n.tmp
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
MailProg=/bin/true
"""


def _free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class SlurmCluster:
    def __init__(self, folder, environment):
        self.folder = folder
        self.environment = environment
        self.daemons = []

    def run(self, *command):
        """A client: what it printed, its exit code and its errors."""
        return subprocess.run([str(word) for word in command], env=self.environment,
                              cwd=self.folder, capture_output=True, text=True, timeout=LIMIT_S,
                              check=False)

    def _start(self, name, *command):
        log = (self.folder / f"{name}.said").open("w")
        self.daemons.append((name, subprocess.Popen(
            [str(word) for word in command], env=self.environment, stdout=log, stderr=log)))

    def said(self):
        """What the daemons have to say."""
        return "\n".join(f"{path.name}: {path.read_text()[-1500:]}"
                         for path in sorted(self.folder.glob("*.*"))
                         if path.suffix in (".log", ".said"))

    def wait_until(self, condition, what):
        until = time.monotonic() + LIMIT_S
        while not condition():
            for name, daemon in self.daemons:
                require(daemon.poll() is None, f"{name} has ended: {self.said()}")
            require(time.monotonic() < until, f"{what}: {self.said()}")
            time.sleep(0.1)

    def begin(self):
        self._start("munged", "munged", "--foreground", "--force",
                    f"--socket={self.folder}/munge.socket", f"--key-file={self.folder}/munge.key",
                    f"--pid-file={self.folder}/munge.pid", f"--log-file={self.folder}/munge.log",
                    f"--seed-file={self.folder}/munge.seed")
        self.wait_until((self.folder / "munge.socket").exists, "munged does not listen")
        self._start("slurmctld", "slurmctld", "-D", "-i")
        for node in range(1, NODES + 1):
            self._start(f"slurmd{node}", "slurmd", "-D", "-N", f"node{node}")
        self.wait_until(
            lambda: self.run("sinfo", "-h", "-o", "%D %t").stdout.split() == [str(NODES), "idle"],
            "the nodes are not idle")

    def end(self):
        for _, daemon in reversed(self.daemons):
            daemon.terminate()
        for _, daemon in reversed(self.daemons):
            try:
                daemon.wait(timeout=30)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def state_of(self, job):
        """RUNNING and the like; empty once it is over."""
        return self.run("squeue", "-h", "-j", job, "-t", "all", "-o", "%T").stdout.strip()


@contextlib.contextmanager
def slurm_cluster(place):
    missing = [name for name in (*DAEMONS, *CLIENTS) if shutil.which(name, path=PATH) is None]
    if missing:
        raise Skip(f"there is no {missing[0]} (Debian: slurm-wlm, munge)")
    folder = pathlib.Path(place.path) / "slurm"
    folder.mkdir(mode=0o755)
    # TmpFS: two nodes of one host would make the same folders for PMIx in /tmp.
    for name in ("saved", *(f"node{n}{end}" for n in range(1, NODES + 1) for end in ("", ".tmp"))):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o600)
    ports = _free_ports(1 + NODES)
    host = socket.gethostname()
    nodes = "".join(
        f"NodeName=node{n} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[n]} CPUs=4 "
        "RealMemory=1000 State=UNKNOWN\n" for n in range(1, NODES + 1))
    (folder / "slurm.conf").write_text(
        CONFIGURATION.format(folder=folder, ports=ports, host=host, user=getpass.getuser()) +
        nodes + "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n")
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("SLURM_", "SBATCH_", "OMPI_", "PMIX_"))}
    # No shared memory between ranks: two nodes of one host would give its segments the same names.
    environment.update(PATH=PATH, SLURM_CONF=str(folder / "slurm.conf"), OMPI_MCA_btl="self,tcp")
    cluster = SlurmCluster(folder, environment)
    try:
        cluster.begin()
        yield cluster
    finally:
        cluster.end()
