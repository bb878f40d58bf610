#include "profiler/cupti/foreign_text.h"

#include <cxxabi.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace sluice::cupti {
namespace {

constexpr std::size_t kTextMax = 4096;
constexpr std::size_t kPieceBytes =
    256;  // divides a page, so a piece that begins on it stays on it

// How many bytes; -1 with errno where none.
ssize_t copy_piece(const char* from, char* to, std::size_t count) {
  const iovec local{to, count};
  const iovec remote{const_cast<char*>(from), count};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
}

}  // namespace

std::optional<std::string> copy_foreign_text(const char* text) {
  if (text == nullptr) return std::nullopt;
  std::string copied;
  std::array<char, kPieceBytes> piece;
  while (copied.size() < kTextMax) {
    const char* from = text + copied.size();
    const std::size_t count = kPieceBytes - reinterpret_cast<std::uintptr_t>(from) % kPieceBytes;
    const ssize_t read = copy_piece(from, piece.data(), count);
    if (read < 0 && (errno == EPERM || errno == ENOSYS)) {
      // A sandbox without this call: the pointer has to be believed.
      return std::string(text, strnlen(text, kTextMax));
    }
    if (read <= 0) return std::nullopt;
    const std::size_t length = strnlen(piece.data(), static_cast<std::size_t>(read));
    copied.append(piece.data(), length);
    if (length < static_cast<std::size_t>(read)) break;
  }
  return copied.substr(0, kTextMax);
}

std::string readable_kernel_name(const std::string& name) {
  if (!name.starts_with("_Z")) return name;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? std::string(readable.get()) : name;
}

}  // namespace sluice::cupti
