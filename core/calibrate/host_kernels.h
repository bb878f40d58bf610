#pragma once
// The work of the host's processor in a run besides forward and backward, timed as a run does it.
//
// Thread contract: one call at a time; each takes threads of its own meanwhile.

#include <string>
#include <vector>

#include "base/state_format.h"
#include "core/calibrate/figure.h"
#include "core/optimizer/update_rule.h"

namespace sluice::calibrate {

struct KernelOptions {
  int thread_count = 1;
  int repeat_count = 5;
};

// Elements a second of a subgroup's update as csd::run_update does it on state in that format,
// checksums and the 16-bit copy included, a subgroup a thread.
Figure measure_update(optimizer::RuleKind rule, StateFormatKind format,
                      const KernelOptions& options);
// Elements a second and charge: each gradient is charged twice, when it is checked and when it is
// staged (widened, and checksummed), and so is what is measured. One thread, as in a run, which
// stages one layer after the other.
Figure measure_stage(const KernelOptions& options);
// Checksums (XXH3-64) of what layers keep, in bytes a second. One thread.
Figure measure_checksum(const KernelOptions& options);
// Elements of gradient a second: checked, widened, and the hundredth that is largest selected, with
// error feedback. One thread, as for staging.
Figure measure_compress(const KernelOptions& options);
// Elements a second of an update that decompresses its gradient, otherwise as measure_update.
Figure measure_decompress(const KernelOptions& options);
// Bytes copied a second.
Figure measure_memory_copy(const KernelOptions& options);

}  // namespace sluice::calibrate
