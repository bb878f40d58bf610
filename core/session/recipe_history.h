#pragma once
// The recipe that a state was made with, kept beside it (STATE_DIR/recipe.slc,
// docs/state_format.md): of the recipe what decides numbers, and each later value with the step
// from which it held. A resume is compared with it.
//
// A value that holds from the step on that is committed last may never have been used: a resume
// that was killed in its first step. It is passed over, and made anew.
//
// Thread contract: plain data; files block.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/session/recipe.h"
#include "storage/state/state_store.h"

namespace sluice::session {

class RecipeHistory {
 public:
  // Holds from `step` on (steps that are committed); what was before is not known.
  static RecipeHistory from(const Recipe& recipe, std::int64_t step);
  // None: there is no such file, since an older program made the state. Errors: ErrorCode::corrupt
  // for a damaged or foreign file, unsupported for a newer version.
  static Result<std::optional<RecipeHistory>> load(const std::string& directory);
  // Replaces the file durably and as a whole.
  Status save(const state::StateStore::Options& options) const;

  // The first fact that makes `recipe` that of another state (settings::Decides::origin): its key,
  // the value that the state was begun with, and the recipe's.
  std::optional<settings::KnobChange> other_origin(const Recipe& recipe) const;
  // The settings that have another value from `step` on than in the steps before.
  std::vector<settings::KnobChange> changes(const Recipe& recipe, std::int64_t step) const;
  // `recipe` holds from `step` on. False: nothing has changed.
  bool go_on(const Recipe& recipe, std::int64_t step);

 private:
  struct Entry {
    std::string key;
    std::string value;
    std::int64_t from_step = 0;
    bool operator==(const Entry&) const = default;
  };
  const Entry* before(const std::string& key, std::int64_t step) const;
  std::string text() const;
  static Result<RecipeHistory> parse(std::string_view bytes, const std::string& path);

  std::vector<Entry> entries_;  // in the order in which they came
};

// The error for another origin; `consequence` follows the values.
Error other_origin_error(const std::string& directory, const settings::KnobChange& other,
                         const std::string& consequence = {});

}  // namespace sluice::session
