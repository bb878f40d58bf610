#include "hls/link/soft_bitstream.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace sluice::hls_link {

namespace {

// An anonymous file, closed when it is let go.
struct MemoryFile {
  explicit MemoryFile(int file) : fd(file) {}
  ~MemoryFile() {
    if (fd >= 0) close(fd);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  int fd;
};

Status write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      return make_error(ErrorCode::io, "kernels into memory: {}", std::strerror(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return ok_status();
}

// Whether every segment lies within: the loader maps a cut file all the same, and the first use of
// what is missing is a signal.
bool is_whole_elf(std::span<const std::byte> bytes) {
  Elf64_Ehdr header;
  if (bytes.size() < sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (header.e_phoff > bytes.size() || (i + 1) * sizeof segment > bytes.size() - header.e_phoff)
      return false;
    std::memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_offset > bytes.size() || segment.p_filesz > bytes.size() - segment.p_offset)
      return false;
  }
  return true;
}

// The loader knows an object by the path that it was opened with, before it looks at the file; a
// number that was used before would find the earlier object. So every path is written differently.
std::string unique_path(int fd) {
  static std::atomic<std::uint32_t> count{0};
  std::string path = "/proc/self/fd";
  for (std::uint32_t bits = ++count; bits != 0; bits /= 2) path += bits % 2 != 0 ? "/." : "/";
  return fmt::format("{}/{}", path, fd);
}

}  // namespace

Result<SoftBitstream> SoftBitstream::open(std::span<const std::byte> shared_object,
                                          std::string_view name) {
  if (!is_whole_elf(shared_object))
    return make_error(ErrorCode::corrupt, "{}: its kernels are no shared object, or a cut one",
                      name);
  const MemoryFile file(memfd_create("sluice_soft_bitstream", MFD_CLOEXEC));
  if (file.fd < 0) return make_error(ErrorCode::io, "memfd_create: {}", std::strerror(errno));
  RETURN_IF_ERROR(write_all(file.fd, shared_object));
  void* handle = dlopen(unique_path(file.fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return make_error(ErrorCode::corrupt, "{}: its kernels are no shared object to load: {}", name,
                      dlerror());
  SoftBitstream bitstream(std::shared_ptr<void>(handle, [](void* library) { dlclose(library); }));
  const auto table =
      reinterpret_cast<const SluiceSoftKernels* (*)()>(dlsym(handle, kSoftKernelsSymbol));
  if (table == nullptr)
    return make_error(ErrorCode::corrupt, "{}: its kernels have no {}()", name, kSoftKernelsSymbol);
  const SluiceSoftKernels* kernels = table();
  if (kernels->version != kSoftKernelsVersion)
    return make_error(ErrorCode::corrupt, "{}: kernels of version {}; this is version {}", name,
                      kernels->version, kSoftKernelsVersion);
  bitstream.kernels_ = {kernels->kernels, static_cast<std::size_t>(kernels->count)};
  return bitstream;
}

const SluiceSoftKernel* SoftBitstream::kernel_named(std::string_view name) const {
  for (const SluiceSoftKernel& kernel : kernels_) {
    if (name == kernel.name) return &kernel;
  }
  return nullptr;
}

std::vector<Kernel> kernels_of(const SoftBitstream& bitstream) {
  std::vector<Kernel> kernels;
  for (const SluiceSoftKernel& soft : bitstream.kernels()) {
    Kernel kernel{soft.name, soft.instance_count, {}};
    for (std::int32_t a = 0; a < soft.argument_count; ++a) {
      const SluiceSoftArgument& argument = soft.arguments[a];
      kernel.arguments.push_back({argument.name, argument.type, argument.is_buffer != 0,
                                  argument.offset_bytes, argument.size_bytes});
    }
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

}  // namespace sluice::hls_link
