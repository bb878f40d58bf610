"""Where things lie in the files of a state (docs/state_format.md), for tests that damage them."""

import contextlib
import struct

PAGE = 4096


class StateFiles:
    def __init__(self, directory):
        self.directory = directory
        self.log = directory / "commit.slc"
        data = self.log.read_bytes()
        self.parameter_count, self.subgroup_elements = struct.unpack_from("<qq", data, 32)
        self.variable_count, = struct.unpack_from("<i", data, 48)
        self.subgroup_count = -(-self.parameter_count // self.subgroup_elements)
        self.area_bytes = (len(data) - PAGE) // 2
        areas = (data[PAGE:PAGE + self.area_bytes], data[PAGE + self.area_bytes:])
        self.record = max((area for area in areas if area[:8] == b"SLUICECR"),
                          key=lambda area: struct.unpack_from("<Q", area, 8))

    def device_file(self, device):
        return self.directory / f"dev{device}" / "state.slc"

    def place(self, subgroup, variable):
        """File and offset of a committed array."""
        at = 88 + subgroup * (8 + 8 * self.variable_count)
        device, slot = struct.unpack_from("<ii", self.record, at)
        variable_bytes = -(-4 * self.subgroup_elements // PAGE) * PAGE
        offset = PAGE + slot * self.variable_count * variable_bytes + variable * variable_bytes
        return self.device_file(device), offset


@contextlib.contextmanager
def changed(path, offset, change):
    """A file whose byte at `offset` goes through `change`, until the end of the block."""
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([change(byte)]))
    yield
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(bytes([byte]))


def flipped(path, offset, bit=3):
    return changed(path, offset, lambda byte: byte ^ (1 << bit))


@contextlib.contextmanager
def cut(path, size):
    """A file that ends at `size`, until the end of the block."""
    whole = path.read_bytes()
    with open(path, "r+b") as file:
        file.truncate(size)
    yield
    path.write_bytes(whole)
