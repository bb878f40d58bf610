#include "core/model/torch/registered_memory.h"

#include <memory>
#include <utility>

#include "base/units.h"

namespace sluice::model {
namespace {

constexpr unsigned kForAllContexts = 1;  // cudaHostRegisterPortable

}  // namespace

Result<io::PinnedBuffer> RegisteredMemory::allocate(std::int64_t size_bytes) {
  if (size_bytes == 0) return io::PinnedBuffer();
  ASSIGN_OR_RETURN(io::PageAlignedBuffer plain, io::PageAlignedBuffer::allocate(size_bytes));
  auto memory = std::make_shared<io::PageAlignedBuffer>(std::move(plain));
  const std::span<std::byte> bytes = memory->bytes();
  if (const int error = runtime_.take(bytes.data(), bytes.size(), kForAllContexts); error != 0) {
    return make_error(ErrorCode::memory,
                      "{} of host memory cannot be pinned for the GPU (CUDA error {}): free host "
                      "memory, or raise the limit of locked memory (ulimit -l)",
                      format_bytes(static_cast<std::int64_t>(bytes.size())), error);
  }
  return io::PinnedBuffer(
      io::PageAlignedBuffer::adopt(bytes, [memory, give_back = runtime_.give_back] {
        // A failure here comes as the program ends, when the runtime is gone.
        static_cast<void>(give_back(memory->bytes().data()));
        *memory = {};
      }));
}

}  // namespace sluice::model
