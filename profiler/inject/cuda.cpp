// CUDA: the driver finds this library by CUDA_INJECTION64_PATH, and calls InitializeInjection
// before the program's first context.
//
// Thread contract: that of the driver: the thread that makes the first call of CUDA.

#include "profiler/inject/process_recording.h"

// CUPTI's documentation, "CUPTI injection": anything but 0 where the tool is there.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  sluice::inject::record_gpu();
  return 1;
}
