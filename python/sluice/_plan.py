"""Where an optimizer puts its bytes, and how long an update is to take, before it begins."""

import dataclasses

UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


@dataclasses.dataclass(frozen=True)
class Plan:
    """`host_memory` and `drives` have bytes by what they are for; `drives` one for each, in the
    order of `state=`. `update_seconds` is the part of a step from its first gradient to its last
    parameter, by the rates of `platform=`; None without, since plain drives have no rates."""

    places: tuple
    host_memory: dict
    host_memory_bytes: int
    host_memory_cap_bytes: int
    drives: tuple
    update_seconds: float | None

    def __str__(self):
        lines = [f"host memory: {size_text(self.host_memory_bytes)}, of at most "
                 f"{size_text(self.host_memory_cap_bytes)}", *rows(self.host_memory)]
        for place, drive in zip(self.places, self.drives):
            lines += [f"{place}: {size_text(sum(drive.values()))}", *rows(drive)]
        lines.append("update: not predicted, since plain drives have no rates; "
                     "`sluice calibrate` makes a file for platform="
                     if self.update_seconds is None else
                     f"update: {self.update_seconds:.3g} s a step, by the platform's rates")
        return "\n".join(lines)


def rows(items):
    return [f"  {size_text(size):>10}  {what}" for what, size in items.items()]


def size_text(size):
    for unit, name in UNITS:
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size} bytes"


def plan_of(found, folders, platform):
    """`found`: what the core says."""
    rows_found, host_bytes, cap_bytes, seconds = found
    by_place = {}
    for place, what, size in rows_found:
        items = by_place.setdefault(place, {})
        items[what] = items.get(what, 0) + size
    host = by_place.pop("host memory", {})
    drives = tuple(by_place.values())
    # With one folder and several devices all of them are in it.
    places = [str(place) for place in folders.places]
    if len(places) != len(drives):
        places = [str(folders.state / f"dev{number}") for number in range(len(drives))]
    return Plan(tuple(places), host, host_bytes, cap_bytes, drives,
                None if platform is None else seconds)
