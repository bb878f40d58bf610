#pragma once
// The settings of a session: a run's, without those that need a model, a text or other ranks.
//
// Thread contract: free functions.

#include <span>
#include <string>

#include "core/session/recipe.h"
#include "core/session/session.h"
#include "core/session/start_from.h"

namespace sluice::session {

class TensorTable;

// Errors (ErrorCode::config): a setting that is none, with the nearest.
Result<settings::RunConfig> config_of(const Session::Request& request);

// ErrorCode::config: no platform, a setting whose work a session does not do, or subgroups that are
// no whole pages.
Status check_goes_with_session(const settings::RunConfig& config);

// A creation that never came to its first commit has left nothing to go on with.
Result<StartFrom> start_of(const std::string& directory);

// The tensors that are trained, a line each, "GROUP SHAPE NAME" ("0 64x256 h.0.weight"): what the
// record has of them (meta key `tensors`), so that the run can be simulated later. Errors of the
// way back (ErrorCode::config): a line that is none.
std::string tensors_text(std::span<const Tensor> tensors);
Result<Session::Request> parse_tensors(const std::string& text);

Recipe recipe_of(const settings::RunConfig& config, const TensorTable& tensors,
                 std::span<const GroupRates> groups);

}  // namespace sluice::session
