#include "core/model/torch/devices.h"

#include <ATen/Context.h>
#include <c10/core/AllocatorConfig.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <cstring>
#include <filesystem>

#include "base/program_name.h"
#include "base/units.h"
#include "core/model/torch/check.h"
#include "core/model/torch/compute_threads.h"
#include "core/model/torch/registered_memory.h"
#include "core/model/torch/torch_border.h"

namespace sluice::model {
namespace {

// ---- the software accelerator

// The functions that libsluice_soft_accelerator.so offers (soft/accelerator/soft_accelerator.h).
struct SoftLibrary {
  const char* (*open)(const char* settings) = nullptr;
  void (*set_cap)(int device, std::int64_t bytes) = nullptr;
  void (*set_threads)(int threads) = nullptr;
  void (*name_stream)(int device, std::int64_t stream, const char* name) = nullptr;
  void (*name_block)(const void* address, const char* name) = nullptr;
  bool is_there() const { return open != nullptr; }
};
SoftLibrary the_soft_library;  // written once, before anything computes

template <typename Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

Result<SoftLibrary> load_soft_library() {
  const std::string path = soft_library_path();
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return make_error(ErrorCode::not_found, "device = \"soft\": there is no {}: {}", path,
                      how_to_get(DeviceKind::soft));
  }
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    return make_error(ErrorCode::not_found, "device = \"soft\": {}; {}", ::dlerror(),
                      how_to_get(DeviceKind::soft));
  }
  SoftLibrary found;
  if (!find(library, "sluice_soft_accelerator_open", found.open) ||
      !find(library, "sluice_soft_accelerator_set_cap", found.set_cap) ||
      !find(library, "sluice_soft_accelerator_set_threads", found.set_threads) ||
      !find(library, "sluice_soft_accelerator_name_stream", found.name_stream) ||
      !find(library, "sluice_soft_accelerator_name_block", found.name_block)) {
    return make_error(ErrorCode::config, "device = \"soft\": {} is of another build", path);
  }
  return found;
}

Status open_soft(const DeviceOptions& options) {
  ASSIGN_OR_RETURN(const SoftLibrary library, load_soft_library());
  const char* const problem = library.open(nullptr);  // settings: SLUICE_SOFT_ACCELERATOR
  if (problem != nullptr) return make_error(ErrorCode::config, "device = \"soft\": {}", problem);
  library.set_threads(ComputeThreads(options.thread_count).count());
  if (options.memory_cap_bytes > 0) library.set_cap(options.name.index, options.memory_cap_bytes);
  the_soft_library = library;
  return ok_status();
}

// ---- a GPU

// CUDA's context, its libraries and the kernels that are loaded: 0.9 to 1.1 GB more resident than
// planned without it (sluice train tiny.toml and gpt2-124m.toml on an H100, libtorch 2.11, CUDA
// 13.0).
constexpr std::int64_t kCudaLibraryBytes = 1'200'000'000;

// The memory that libtorch gives cuBLAS for each thread and stream that multiplies: 32 MiB from
// Hopper on, 8 MiB before (ATen/cuda/CublasHandlePool.cpp). Forward and backward are launched by a
// thread each.
constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;
constexpr std::int64_t kProductThreads = 2;

// The allocator takes segments of 2 MiB for blocks up to 1 MiB and of 20 MiB for those up to 10,
// for each stream its own, and the cap counts whole segments (c10/cuda/CUDACachingAllocator.cpp).
constexpr std::int64_t kSmallSegmentBytes = std::int64_t{2} << 20;
constexpr std::int64_t kLargeSegmentBytes = std::int64_t{20} << 20;
constexpr std::int64_t kStreams = 3;  // StreamRole

// libtorch's allocator reads its cap, a fraction of the whole, when it begins.
Status cap_cuda(std::int64_t cap_bytes) {
  auto* const get = cuda_function<int(std::size_t*, std::size_t*)>("cudaMemGetInfo");
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  if (get == nullptr || get(&free_bytes, &total_bytes) != 0 || total_bytes == 0) {
    return make_error(ErrorCode::unsupported,
                      "accelerator_memory: the GPU does not say how much memory it has");
  }
  const double fraction = static_cast<double>(cap_bytes) / static_cast<double>(total_bytes);
  if (fraction >= 1) return ok_status();
  c10::CachingAllocator::setAllocatorSettings(
      fmt::format("per_process_memory_fraction:{:.9f}", fraction));
  return ok_status();
}

Status open_cuda(const DeviceOptions& options) {
  const auto type = c10::DeviceType::CUDA;
  const int count =
      c10::impl::hasDeviceGuardImpl(type) ? c10::impl::getDeviceGuardImpl(type)->deviceCount() : 0;
  RETURN_IF_ERROR(check_is_there(options.name, count));
  c10::impl::getDeviceGuardImpl(type)->setDevice(
      {type, static_cast<c10::DeviceIndex>(options.name.index)});
  return options.memory_cap_bytes > 0 ? cap_cuda(options.memory_cap_bytes) : ok_status();
}

// ---- all

std::string_view kind_text(DeviceKind kind) {
  return kind == DeviceKind::soft ? "SOFTWARE ACCELERATOR" : "GPU";
}

// The memory that libtorch's allocator of pinned memory gives, in whole pages and zeroed.
class TorchPinnedMemory final : public io::PinnedMemory {
 public:
  explicit TorchPinnedMemory(at::Device device) : device_(device) {}

  Result<io::PinnedBuffer> allocate(std::int64_t size_bytes) override {
    return at_torch_border("taking pinned memory", [&]() -> Result<io::PinnedBuffer> {
      if (size_bytes == 0) return io::PinnedBuffer();
      const auto whole = static_cast<std::size_t>(round_up(size_bytes, kPageBytes));
      auto data = std::make_shared<c10::DataPtr>(
          at::globalContext().getPinnedMemoryAllocator(device_.type())->allocate(whole));
      std::memset(data->get(), 0, whole);
      name_memory(device_, data->get(), "pinned memory of the host");
      return io::PinnedBuffer(io::PageAlignedBuffer::adopt(
          {static_cast<std::byte*>(data->get()), whole}, [data] { data->clear(); }));
    });
  }

 private:
  at::Device device_;
};

Result<std::shared_ptr<io::PinnedMemory>> pinned_memory(DeviceKind kind, at::Device device) {
  if (kind != DeviceKind::cuda) return std::make_shared<TorchPinnedMemory>(device);
  const HostRegistration runtime{
      cuda_function<int(void*, std::size_t, unsigned)>("cudaHostRegister"),
      cuda_function<int(void*)>("cudaHostUnregister")};
  if (runtime.take == nullptr || runtime.give_back == nullptr) {
    return make_error(ErrorCode::unsupported,
                      "device = \"{}\": the CUDA runtime beside libtorch has no cudaHostRegister",
                      device.str());
  }
  return std::make_shared<RegisteredMemory>(runtime);
}

}  // namespace

std::string soft_library_path() {
  if (const char* chosen = ::getenv("SLUICE_SOFT_ACCELERATOR_LIBRARY")) return chosen;
  return path_of_library("libsluice_soft_accelerator.so");
}

Status find_soft_library() {
  const auto found = load_soft_library();
  return found.ok() ? ok_status() : found.error();
}

Result<OpenedDevice> open_device(const DeviceOptions& options) {
  return at_torch_border("opening the device that computes", [&]() -> Result<OpenedDevice> {
    CHECK(options.name.kind != DeviceKind::host);
    RETURN_IF_ERROR(options.name.kind == DeviceKind::soft ? open_soft(options)
                                                          : open_cuda(options));
    const at::Device device(options.name.text());
    at::globalContext().lazyInitDevice(device.type());
    ASSIGN_OR_RETURN(const auto pinned, pinned_memory(options.name.kind, device));
    OpenedDevice opened{
        .device = device,
        .description = fmt::format("{} {}", kind_text(options.name.kind), options.name.text()),
        .pinned = pinned};
    const auto [free_bytes, all_bytes] =
        c10::getDeviceAllocator(device.type())->getMemoryInfo(device.index());
    opened.memory_bytes = static_cast<std::int64_t>(free_bytes);
    if (options.memory_cap_bytes > 0) opened.memory_bytes = options.memory_cap_bytes;
    return opened;
  });
}

bool computes_on_processor(at::Device device) {
  return device.is_cpu() || device.is_privateuseone();
}

std::int64_t library_bytes_of(at::Device device) {
  return device.is_cuda() ? kCudaLibraryBytes : 0;
}

DeviceOwnMemory own_memory_of(at::Device device) {
  if (!device.is_cuda()) return {};
  return {.workspace_bytes = kProductThreads * kWorkspaceBytes,
          .segment_bytes = kStreams * (kLargeSegmentBytes + kSmallSegmentBytes)};
}

void name_stream(at::Device device, std::int64_t stream_id, const char* name) {
  if (!device.is_privateuseone() || !the_soft_library.is_there()) return;
  the_soft_library.name_stream(device.index(), stream_id, name);
}

void name_memory(at::Device device, const void* address, const std::string& name) {
  if (!device.is_privateuseone() || !the_soft_library.is_there()) return;
  the_soft_library.name_block(address, name.c_str());
}

}  // namespace sluice::model
