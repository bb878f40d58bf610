"""What the benches of this folder have in common: commands that must succeed, and settings."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
THROTTLE = ROOT / "bench/throttle/throttled_devices.sh"


def sh(*command):
    """Standard output of a command run in the project's root."""
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True, cwd=ROOT)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}: "
                 f"{done.stderr.strip()}")
    return done.stdout


def setting_arguments(settings):
    return [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
