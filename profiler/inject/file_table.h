#pragma once
// What a descriptor of the recorded program stands for, asked of the system once and kept until the
// descriptor is closed.
//
// Thread contract: every function from any thread.

#include <cstdint>
#include <string>

#include "profiler/inject/rules.h"

namespace sluice::inject {

enum class FileKind : std::uint8_t {
  unknown,
  none,      // a pipe, a socket, a terminal, a device that is no drive: not recorded
  buffered,  // bytes may come from memory
  direct,    // O_DIRECT: bytes cross the drive's link
};

struct OpenFile {
  FileKind kind = FileKind::unknown;
  std::uint16_t device = 0;  // of device_name()
  Rules::FileRule rule = 0;  // that says what is in it
};

constexpr bool is_recorded(OpenFile file) {
  return file.kind == FileKind::buffered || file.kind == FileKind::direct;
}

OpenFile file_of(int fd);
// After a close, or where another file takes the number.
void forget(int fd);
void forget_from(int first, int last);

// "nvme0n1", "loop0"; of a file system without a drive its kind: "tmpfs".
std::string device_name(std::uint16_t device);

}  // namespace sluice::inject
