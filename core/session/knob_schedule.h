#pragma once
// Which settings a step is to have: what the run began with, the changes that are planned for it,
// what somebody asked for meanwhile, and on top of these the density of the warm-up.
//
// Thread contract: one thread.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/settings/run_config.h"

namespace sluice::session {

// Knobs that change once `step` steps are committed.
struct PlannedChange {
  std::int64_t step = 0;
  std::vector<std::string> settings;  // "key=value"
};

class KnobSchedule {
 public:
  struct Wanted {
    settings::RunConfig now;           // with the warm-up's density
    settings::RunConfig after_warmup;  // the same with its own
  };

  // `changes` outlive it.
  KnobSchedule(const settings::RunConfig& config, std::span<const PlannedChange> changes)
      : settings_(config), density_now_(config.offload.density), changes_(changes) {}

  // The settings of step `step` (from 0); none: those of the step before. Takes no memory then.
  Result<std::optional<Wanted>> planned(std::int64_t step) const;
  // The settings of that step if `settings` ("key=value") were in force. Errors: what is wrong with
  // them.
  Result<Wanted> asked(std::int64_t step, const std::vector<std::string>& settings) const;
  // From now on `wanted` is in force.
  void accept(const Wanted& wanted);

 private:
  static Wanted at(std::int64_t step, const settings::RunConfig& config);

  settings::RunConfig settings_;  // in force, after the warm-up
  double density_now_;
  std::span<const PlannedChange> changes_;
};

}  // namespace sluice::session
