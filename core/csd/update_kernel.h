#pragma once
// The update kernel on the processor: what method=host runs, and what stands in for an emulated
// device's engine.
//
// Thread contract: run_update() on one worker; the order and the memory live until then.

#include <string>

#include "base/state_format.h"
#include "base/status.h"
#include "core/csd/update_task.h"
#include "core/runtime/operation.h"

namespace sluice::csd {

// The arrays of one subgroup in memory that the processor reaches.
struct UpdateMemory {
  std::array<std::byte*, kMaxStoredArrays> state{};  // as many as the task has stored; updated
  std::span<const std::byte> gradient;  // of the task's kind, or sparse and aligned to 64
  // Receives the 16-bit copy of state in fp32; null: none is made. With split state the copy is
  // here, and passes to or from the first array as the order's `copy` says; null: the array has it.
  std::uint16_t* parameters = nullptr;
};

// Verifies, updates in place and checksums the new version, tile by tile so that each byte of
// state comes from memory once; a sparse gradient is decompressed tile by tile, too. Damage is
// ErrorCode::corrupt naming file, offset, subgroup and variable; the arrays are then worthless, and
// nothing of them may be written.
Status run_update(const UpdateOrder& order, const UpdateMemory& memory, UpdatedChecksums& updated);

// The kernel in a platform file: "adamw", "adamw_compact".
std::string update_name(const optimizer::RuleInfo& rule, StateFormatKind format);
// The one whose rate the engine has: that of the format, or else that of fp32.
std::string update_rate(const platform::Engine& engine, const optimizer::RuleInfo& rule,
                        StateFormatKind format);

// The cost of an update on an engine. Decompressor and updater work on successive tiles at the same
// time, so a sparse update is as slow as the slower of them.
runtime::Cost update_cost(const UpdateTask& task, platform::EngineId id,
                          const platform::Engine& engine);

}  // namespace sluice::csd
