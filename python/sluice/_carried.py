"""A state of another number of ranks becomes that of the ranks there are: each begins a new one
with its tensors' arrays, updates and steps. The old one counts until all new ones are durable; then
it is renamed, its first rank first, so that at any moment one of them is the state."""

import json
import os
import pathlib
import re
import shutil

import torch

from sluice import _core
from sluice._error import Error
from sluice._folders import LOG, state_id_in
from sluice._ranks import Alone, Ranks, own_tensors
from sluice._tensors import trained_tensors
from sluice._torch_state import Begun, Source

MARK = "being_carried"  # in a rank's folder: its state does not count yet; the old number of ranks
CARRIED = "carried.json"  # there: where its state came from
VALUES = "carried.values"  # there, while the state begins
BEFORE = ".before"


class Group:
    """The states of one number of ranks in a folder that all name."""

    def __init__(self, root, count):
        self.count = count
        self.folders = [root] if count == 1 else [root / f"rank-{rank}-of-{count}"
                                                  for rank in range(count)]
        self.is_there = [(folder / LOG).exists() for folder in self.folders]
        self.is_marked = any((folder / MARK).exists() for folder in self.folders)

    def counts(self):
        return self.is_there[0] and not self.is_marked

    def check_whole(self):
        for folder, is_there in zip(self.folders, self.is_there):
            if not is_there:
                raise Error(f"{self.folders[0]} is the state of another number of ranks, and "
                            f"{folder}, which is a part of it, is not there; give it back, or "
                            "start as many ranks as there were")

    def shares(self, tensors):
        """(folder, its tensors) of each rank."""
        ranks = [Ranks(rank, self.count) if self.count > 1 else Alone()
                 for rank in range(self.count)]
        return [(folder, own_tensors(rank, tensors)) for folder, rank in zip(self.folders, ranks)]


def groups_in(root):
    names = [re.fullmatch(r"rank-\d+-of-(\d+)", path.name) for path in root.glob("rank-*-of-*")]
    found = [Group(root, count) for count in sorted({1} | {int(name[1]) for name in names if name})]
    return [group for group in found if any(group.is_there)]


def to_be_carried(folders, count, begins_anew):
    """The group whose state is gone on with by another number of ranks; none: there is none."""
    others = [group for group in groups_in(folders.given[0]) if group.count != count]
    real = [group for group in others if group.counts()]
    is_marked = (folders.run / MARK).exists()
    if folders.has_state() and not is_marked:
        wrong = [group for group in others if not group.is_marked]
    elif not real and not is_marked:
        wrong = others
    else:
        wrong = real if begins_anew else real[1:]
    if wrong:
        raise Error(f"{wrong[0].folders[0]} is the state of another number of ranks "
                    f"({wrong[0].count}), beside another one, or not whole; start as many as there "
                    "were, remove what is not wanted, or give another folder")
    if not real or (folders.has_state() and not is_marked):
        return None
    real[0].check_whole()
    return real[0]


class CarriesOver:
    """Of OnDrives, when it is made."""

    def _carries_over(self):
        """True: the state was that of another number of ranks, and is open."""
        def found():
            group = to_be_carried(self._folders, self._ranks.count, self._begins_anew)
            return group and (group.count, [state_id_in(folder) for folder in group.folders])
        seen = self._ranks.agreed(found)
        if any(seen):
            if any(one != seen[0] for one in seen):
                raise Error(f"the ranks see states of other numbers of ranks in "
                            f"{self._folders.given[0]}, and not the same; when the number changes "
                            "all name one folder")
            self._carry_over(Group(self._folders.given[0], seen[0][0]))
            return True
        self._end_carrying()
        return False

    def _carry_over(self, group):
        ranks = self._ranks
        tensors = trained_tensors(self.param_groups)
        ranks.agreed(lambda: check_can_be_carried(tensors, self._settings))
        settled = ranks.agreed(lambda: self._settle(group, tensors) if ranks.rank == 0 else None)
        step, ids = settled[0]
        begun = None
        for turn in range(ranks.count):  # a state is open in one process at a time
            taken = ranks.agreed_here(
                lambda turn=turn: self._taken_from(group, tensors, step)
                if turn == ranks.rank else None)
            begun = taken or begun
        ranks.agreed(lambda: write_durably(self._folders.run / MARK, str(group.count)))
        self._begins_anew = True
        self._open(begun=begun)
        ranks.agreed(lambda: self._note_carried(group, step, ids))
        with torch.no_grad():
            self._take_parameters()
        self._end_carrying()

    def _opened_from(self, folder, share, kept=None):
        """The old state of one rank."""
        values = [(tensor.name, list(tensor.shape), tensor.group, tensor.first_values())
                  for tensor in share]
        settings = self._session_settings(trained_tensors(self.param_groups)) + ["record=off"]
        return _core.Session(str(folder), values, len(self.param_groups), settings, [], 0, kept,
                             False)

    def _settle(self, group, tensors):
        """All old ranks at the earliest one's step; that step, and what state dicts say of it."""
        def found(folder, share, kept=None):  # its session ends with the call, and so its lock
            session = self._opened_from(folder, share, kept)
            step, version = session.make_durable()
            session.close()
            return step, {"state": state_id_in(folder), "version": version}
        shares = group.shares(tensors)
        steps, ids = map(list, zip(*(found(*one) for one in shares)))
        for number, (folder, share) in enumerate(shares):
            if steps[number] > min(steps):
                ids[number] = found(folder, share, (min(steps), ""))[1]
        return min(steps), ids

    def _taken_from(self, group, tensors, step):
        """What this rank's tensors have in the old state, by way of a file, whose pages are the
        system's to drop."""
        own = {id(tensor.parameter): number
               for number, tensor in enumerate(own_tensors(self._ranks, tensors))}
        self._folders.run.mkdir(parents=True, exist_ok=True)
        path = self._folders.run / VALUES
        places = {}  # (array, own number): first element, shape
        updates = set()
        try:
            with path.open("wb") as file:
                for folder, share in group.shares(tensors):
                    session = self._opened_from(folder, share)
                    updates.add(session.updates_done())
                    source = Source(session, share, self.param_groups)
                    for number, tensor in enumerate(share):
                        if id(tensor.parameter) not in own:
                            continue
                        for which in range(len(session.state_arrays)):
                            place = (which, own[id(tensor.parameter)])
                            places[place] = file.tell() // 4, tensor.shape
                            for piece in source.chunks(number, tensor, which):
                                file.write(piece)
                    session.close()
                size = file.tell() // 4
        except OSError as error:
            raise Error(f"{path}: {error.strerror}; it has the values of this rank while its state "
                        "begins") from error
        if len(updates) != 1:
            raise Error(f"the ranks of {group.folders[0]} have seen {sorted(updates)} updates")
        values = torch.from_file(str(path), shared=False, size=size, dtype=torch.float32)
        path.unlink()  # the mapping has it
        return begun_of(values, places, len(own), updates.pop(), step)

    def _note_carried(self, group, step, ids):
        carried = {"ranks": ids, "step": step, "state": self._folders.state_id(),
                   "version": self._session.make_durable()[1]}
        write_durably(self._folders.run / CARRIED, json.dumps(carried))

    def _end_carrying(self):
        """The old state gives way, also where a start before this one was killed in between."""
        mark = self._folders.run / MARK
        is_marked = self._ranks.agreed(mark.exists)
        if not any(is_marked):
            return

        def retire_old():
            if self._ranks.rank == 0 and mark.exists():
                retire(self._folders.given, int(mark.read_text()))
        self._ranks.agreed(retire_old)
        self._ranks.agreed(lambda: mark.unlink(missing_ok=True))


def check_can_be_carried(tensors, settings):
    if any(tensor.is_shard for tensor in tensors):
        raise Error("the state is that of another number of ranks, and fully_shard cuts parameters "
                    "differently now; start as many ranks as there were, or give another folder")
    if settings.get("error_feedback") == "true":
        raise Error("error_feedback=true: its residual is not carried over to another number of "
                    "ranks; start as many as there were, or end the feedback there first")


def begun_of(values, places, count, updates, step):
    def array(which):
        found = [places[which, number] for number in range(count)]
        return [values[first:first + shape.numel()].view(shape) for first, shape in found]
    arrays = [array(which) for which in range(1 + max(which for which, _ in places))]
    return Begun(arrays[1:], dict(enumerate(arrays[0])), updates, step)


def write_durably(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_name(f"{path.name}.unfinished")
    with written.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    written.replace(path)
    sync_folder(path.parent)


def sync_folder(folder):
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def retire(roots, count):
    """The folder that decides is renamed first; again, it does what is left."""
    for root in roots:
        if count > 1:
            for rank in range(count):
                give_way(root / f"rank-{rank}-of-{count}")
        elif root == roots[0]:
            give_way(root / "state")
        else:  # a further drive of one process has its files in the folder itself
            before = root / f"state{BEFORE}"
            before.mkdir(exist_ok=True)
            for file in root.glob("*.slc"):
                file.replace(before / file.name)
        sync_folder(root)


def give_way(folder):
    if not folder.exists():
        return
    before = folder.with_name(folder.name + BEFORE)
    shutil.rmtree(before, ignore_errors=True)
    folder.rename(before)
    sync_folder(folder.parent)


def carried_reference(folders, ranks, saved):
    """A state dict of another number of ranks, as one of the state that theirs became."""
    path = pathlib.Path(folders.run) / CARRIED
    carried = json.loads(path.read_text()) if folders.has_state() and path.exists() else None
    of_others = f"the state dict is of step {saved['step']} of {len(saved['ranks'])} ranks"
    if carried is None or carried["state"] != folders.state_id():
        raise Error(f"{of_others}, and there are {ranks.count} now, whose state is another")
    ids = saved["ranks"] if len(saved["ranks"]) > 1 else [
        {"state": saved["state"], "version": saved["version"]}]
    is_same = saved["step"] == carried["step"] and len(ids) == len(carried["ranks"]) and all(
        one["state"] == other["state"] and one["version"] in ("", other["version"])
        for one, other in zip(ids, carried["ranks"]))
    if not is_same:
        raise Error(f"{of_others}, and the {ranks.count} that there are now go on from step "
                    f"{carried['step']} of {len(carried['ranks'])}; load it with as many ranks as "
                    "it is of, in their folders (renamed *.before), and change the number then")
    return saved | {"state": carried["state"], "version": carried["version"]}
