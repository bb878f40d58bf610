"""Where things lie in the files of a state (docs/state_format.md), for tests that damage them."""

import contextlib
import struct

PAGE = 4096
# Bytes of an element, and of a group of 64 beside them, by the code of an array.
WIDTHS = ((4, 0), (2, 0), (2, 0), (2, 8), (1, 0), (4, 0), (1, 1), (1, 4), (2, 0))


def array_bytes(code, count):
    """Without padding."""
    element_bytes, group_bytes = WIDTHS[code]
    if group_bytes == 0:
        return count * element_bytes
    return -(-count // 64) * (64 * element_bytes + group_bytes)


class StateFiles:
    def __init__(self, directory):
        self.directory = directory
        self.log = directory / "commit.slc"
        data = self.log.read_bytes()
        self.parameter_count, self.subgroup_elements = struct.unpack_from("<qq", data, 32)
        self.variable_count, = struct.unpack_from("<i", data, 48)
        self.codes = struct.unpack_from(f"<{self.variable_count}I", data, 656)
        self.names = [data[at:at + 64].rstrip(b"\0").decode()
                      for at in range(128, 128 + 64 * self.variable_count, 64)]
        self.subgroup_count = -(-self.parameter_count // self.subgroup_elements)
        self.area_bytes = (len(data) - PAGE) // 2
        areas = (data[PAGE:PAGE + self.area_bytes], data[PAGE + self.area_bytes:])
        self.record = max((area for area in areas if area[:8] == b"SLUICECR"),
                          key=lambda area: struct.unpack_from("<Q", area, 8))

    def device_file(self, device):
        return self.directory / f"dev{device}" / "state.slc"

    def size(self, subgroup, variable):
        """Bytes of an array."""
        count = min(self.subgroup_elements,
                    self.parameter_count - subgroup * self.subgroup_elements)
        return array_bytes(self.codes[variable], count)

    def place(self, subgroup, variable):
        """File and offset of a committed array."""
        at = 88 + subgroup * (8 + 8 * self.variable_count)
        device, slot = struct.unpack_from("<ii", self.record, at)
        sizes = [-(-array_bytes(code, self.subgroup_elements) // PAGE) * PAGE
                 for code in self.codes]
        return self.device_file(device), PAGE + slot * sum(sizes) + sum(sizes[:variable])


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
