"""Programs in C for the end-to-end tests, compiled as docs/recording.md says that it is done
outside of this project."""

import shutil
import subprocess

from sluice_run import BUILD, ROOT, Skip, require_equal


def compiled(place, text):
    compiler = shutil.which("cc")
    if compiler is None or not (BUILD / "lib/libsluice_record.so").exists():
        raise Skip("there is no cc, or no libsluice_record.so")
    (place / "program.c").write_text(text)
    command = [compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}",
               place / "program.c", "-o", place / "program", f"-L{BUILD / 'lib'}",
               "-lsluice_record", f"-Wl,-rpath,{BUILD / 'lib'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    require_equal(done.returncode, 0, f"cc: {done.stderr}")
    return place / "program"
