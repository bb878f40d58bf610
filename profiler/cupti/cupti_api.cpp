#include "profiler/cupti/cupti_api.h"

#include <dlfcn.h>

#include <vector>

namespace sluice::cupti {
namespace {

struct Explanation {
  CUptiResult result;
  ErrorCode code;
  const char* name;
  const char* advice;
};

constexpr Explanation kExplanations[] = {
    {CUPTI_ERROR_UNKNOWN, ErrorCode::unsupported, "CUPTI_ERROR_UNKNOWN",
     "no NVIDIA driver is loaded: check nvidia-smi (in a container, hand in the GPU), or record "
     "without CUPTI"},
    {CUPTI_ERROR_NOT_INITIALIZED, ErrorCode::unsupported, "CUPTI_ERROR_NOT_INITIALIZED",
     "the CUDA driver could not be initialized: see that nvidia-smi shows the GPU, or record "
     "without CUPTI"},
    {CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, ErrorCode::unsupported,
     "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
     "only administrators may profile here: load the driver's module with "
     "NVreg_RestrictProfilingToAdminUsers=0, or run with CAP_SYS_ADMIN"},
    {CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, ErrorCode::unsupported,
     "CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES",
     "the hypervisor must allow profiling of this virtual GPU"},
    {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, ErrorCode::busy,
     "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
     "another profiler holds CUPTI in this process: stop it first"},
    {CUPTI_ERROR_NOT_COMPATIBLE, ErrorCode::unsupported, "CUPTI_ERROR_NOT_COMPATIBLE",
     "what is asked for does not go together with what another profiler in this process asked for"},
    {CUPTI_ERROR_NOT_SUPPORTED, ErrorCode::unsupported, "CUPTI_ERROR_NOT_SUPPORTED",
     "this GPU or driver does not support it: record without CUPTI"},
    {CUPTI_ERROR_OUT_OF_MEMORY, ErrorCode::memory, "CUPTI_ERROR_OUT_OF_MEMORY",
     "give the program more host memory, or record without CUPTI"},
    {CUPTI_ERROR_INVALID_KIND, ErrorCode::unsupported, "CUPTI_ERROR_INVALID_KIND",
     "this libcupti does not know the kind of record: install the version that this was built "
     "with"},
    {CUPTI_ERROR_INVALID_PARAMETER, ErrorCode::internal, "CUPTI_ERROR_INVALID_PARAMETER",
     "this libcupti and the headers that this was built with do not fit: install the same "
     "version"},
};

std::vector<std::string> candidates(const std::string& library) {
  if (!library.empty()) return {library};
  const std::string name = fmt::format("libcupti.so.{}", CUPTI_API_VERSION / 10000);
  return {name, "/usr/local/cuda/lib64/" + name, "/usr/local/cuda/lib/" + name,
          "/usr/local/cuda/extras/CUPTI/lib64/" + name};
}

Result<void*> open_library(const std::string& library) {
  std::string first_reason;
  for (const std::string& candidate : candidates(library)) {
    if (void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    const char* reason = dlerror();
    if (first_reason.empty()) first_reason = reason == nullptr ? candidate : reason;
  }
  return make_error(ErrorCode::not_found,
                    "CUPTI: its library cannot be loaded ({}): install CUPTI of CUDA {} or add its "
                    "folder to LD_LIBRARY_PATH, or record without CUPTI",
                    first_reason, CUPTI_API_VERSION / 10000);
}

template <typename Function>
Status find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function != nullptr) return ok_status();
  return make_error(ErrorCode::unsupported,
                    "CUPTI: the library has no {}: install CUPTI of CUDA {}, which this was built "
                    "with",
                    name, CUPTI_API_VERSION / 10000);
}

}  // namespace

Result<CuptiApi> CuptiApi::load(const std::string& library) {
  ASSIGN_OR_RETURN(void* const handle, open_library(library));
  CuptiApi api;
  RETURN_IF_ERROR(find(handle, "cuptiGetVersion", api.version));
  RETURN_IF_ERROR(find(handle, "cuptiGetTimestamp", api.timestamp));
  RETURN_IF_ERROR(find(handle, "cuptiActivitySetAttribute", api.set_attribute));
  RETURN_IF_ERROR(find(handle, "cuptiActivityRegisterCallbacks", api.register_callbacks));
  RETURN_IF_ERROR(find(handle, "cuptiActivityEnable", api.enable));
  RETURN_IF_ERROR(find(handle, "cuptiActivityDisable", api.disable));
  RETURN_IF_ERROR(find(handle, "cuptiActivityEnableRuntimeApi", api.enable_runtime_api));
  RETURN_IF_ERROR(find(handle, "cuptiActivityEnableDriverApi", api.enable_driver_api));
  RETURN_IF_ERROR(find(handle, "cuptiActivityFlushAll", api.flush_all));
  RETURN_IF_ERROR(find(handle, "cuptiActivityFlushPeriod", api.flush_period));
  RETURN_IF_ERROR(find(handle, "cuptiActivityGetNextRecord", api.next_record));
  RETURN_IF_ERROR(find(handle, "cuptiActivityGetNumDroppedRecords", api.dropped_records));
  RETURN_IF_ERROR(find(handle, "cuptiActivityPushExternalCorrelationId", api.push_external_id));
  RETURN_IF_ERROR(find(handle, "cuptiActivityPopExternalCorrelationId", api.pop_external_id));
  return api;
}

Error cupti_error(const std::string& action, CUptiResult result) {
  for (const Explanation& known : kExplanations) {
    if (known.result == result) {
      return make_error(known.code, "CUPTI: {}: {} ({}): {}", action, known.name,
                        static_cast<int>(result), known.advice);
    }
  }
  return make_error(ErrorCode::internal,
                    "CUPTI: {}: error {} of cupti_result.h: record without CUPTI, or see what "
                    "NVIDIA says of it",
                    action, static_cast<int>(result));
}

}  // namespace sluice::cupti
