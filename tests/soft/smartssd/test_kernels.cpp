// Kernels of the software device's tests, of its own and of the xclbin's: each is wrong in one way
// or right in a way that is easy to check.

#include <unistd.h>

#include <cstdint>

#include "soft/smartssd/compute_unit.h"

namespace {

std::int32_t run_count = 0;  // of one loading of this object

}  // namespace

extern "C" {

// sum[i] = a[i] + b[i]; 0x10, 0x1c, 0x28, 0x34.
void vadd(const std::int32_t* a, const std::int32_t* b, std::int32_t* sum,
          std::uint32_t element_count) {
  for (std::uint32_t i = 0; i < element_count; ++i) sum[i] = a[i] + b[i];
}

// In place: value[i] = value[i] * factor + 1.
void scale(std::uint32_t* value, std::uint32_t factor, std::uint64_t element_count) {
  for (std::uint64_t i = 0; i < element_count; ++i) value[i] = value[i] * factor + 1;
}

// How often anything of this object has run it: what one device does, another must not see.
void count_runs(std::int32_t* total) { *total = ++run_count; }

// Takes its time, and says when.
void slow(std::int32_t* done, std::uint32_t sleep_us) {
  usleep(sleep_us);
  *done = 1;
}

// Writes one element more than it is asked for, into the page behind.
void overrun(std::uint32_t* value, std::uint64_t element_count) {
  for (std::uint64_t i = 0; i <= element_count; ++i) value[i] = 7;
}
}

namespace {

const SluiceSoftKernel kKernels[] = {
    SLUICE_COMPUTE_UNIT(vadd, 2, a, b, sum, element_count),
    SLUICE_COMPUTE_UNIT(scale, 1, value, factor, element_count),
    SLUICE_COMPUTE_UNIT(count_runs, 1, total),
    SLUICE_COMPUTE_UNIT(slow, 2, done, sleep_us),
    SLUICE_COMPUTE_UNIT(overrun, 1, value, element_count),
};

}  // namespace

SLUICE_SOFT_KERNELS(kKernels)
