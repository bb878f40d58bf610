#include "cli/state_weights.h"

#include <algorithm>

#include "base/check.h"
#include "cli/program.h"

namespace sluice::cli {
namespace {

constexpr std::int32_t kMasterWeights = 0;  // the first of a state's variables

}  // namespace

Result<std::unique_ptr<StateWeights>> StateWeights::open(const std::string& directory) {
  ASSIGN_OR_RETURN(std::unique_ptr<state::StateStore> store,
                   state::StateStore::open_read_only({.directory = directory}));
  if (!store->identity().share.is_whole()) {
    return make_error(ErrorCode::unsupported,
                      "{}: is a part of a state that several ranks have together; resume the run "
                      "on one rank, which makes it whole, and export that",
                      directory);
  }
  // A decoded array is made of several stored ones, so all of these are checked first.
  if (store->layout().geometry().stored().is_split()) {
    RETURN_IF_ERROR(state::digest_state(*store, nullptr, nullptr));
  }
  ASSIGN_OR_RETURN(state::StateReader reader, state::StateReader::make(*store));
  return std::unique_ptr<StateWeights>(
      new StateWeights(directory, std::move(store), std::move(reader)));
}

Status StateWeights::read_weights(std::int64_t first, std::int64_t count,
                                  const weights::TakeElements& take) {
  return read(kMasterWeights, first, count, take);
}

Status StateWeights::read_moments(std::int64_t first, std::int64_t count,
                                  const weights::TakeElements& take) {
  const std::int64_t of_each = store_->layout().geometry().parameter_count;
  const std::int64_t end = first + count;
  while (first < end) {
    const std::int64_t array = first / of_each;
    const std::int64_t part = std::min(end, (array + 1) * of_each) - first;
    RETURN_IF_ERROR(read(kMasterWeights + 1 + static_cast<std::int32_t>(array),
                         first - array * of_each, part, take));
    first += part;
  }
  return ok_status();
}

Status StateWeights::read(std::int32_t variable, std::int64_t first, std::int64_t count,
                          const weights::TakeElements& take) {
  if (variable != variable_) {
    variable_ = variable;
    next_ = 0;
  }
  CHECK_EQ(first, next_);
  return reader_.read(variable, first, count,
                      [this, &take](std::span<const float> values) -> Status {
                        RETURN_IF_ERROR(check(values));
                        return take(values);
                      });
}

// The reader hands over values of one subgroup at a time.
Status StateWeights::check(std::span<const float> values) {
  const state::Geometry& geometry = store_->layout().geometry();
  if (geometry.stored().is_split()) {
    next_ += std::ssize(values);
    return ok_status();
  }
  const SubgroupId subgroup{static_cast<std::int32_t>(next_ / geometry.subgroup_elements)};
  checksummer_.add(std::as_bytes(values));
  next_ += std::ssize(values);
  const std::int64_t end = geometry.first_element(subgroup) + geometry.element_count(subgroup);
  if (next_ < end) return ok_status();
  const std::uint64_t found = checksummer_.digest();
  checksummer_ = {};
  const state::SubgroupVersion& version =
      store_->committed().subgroups[static_cast<std::size_t>(index_of(subgroup))];
  return found == version.checksums[static_cast<std::size_t>(variable_)]
             ? ok_status()
             : Status(damaged(subgroup));
}

Error StateWeights::damaged(SubgroupId subgroup) const {
  const auto now = state::StateStore::open_read_only({.directory = directory_});
  if (now.ok() && (*now)->committed().position.step != step()) {
    return make_error(ErrorCode::busy,
                      "{}: a run is writing this state and has gone on from step {}; keep a "
                      "snapshot of it, or export when it has ended",
                      directory_, step());
  }
  return make_error(ErrorCode::corrupt,
                    "{}: the numbers of {} in subgroup {} are not what was committed; `{} state {} "
                    "--verify` lists all damage",
                    directory_, array_names()[static_cast<std::size_t>(variable_)],
                    index_of(subgroup), program(), directory_);
}

}  // namespace sluice::cli
