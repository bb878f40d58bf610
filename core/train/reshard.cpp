#include "core/train/reshard.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <ranges>
#include <sstream>
#include <tuple>

#include "core/offload/residual_file.h"
#include "core/plan/run_plan.h"
#include "core/train/ranks.h"
#include "core/train/state_pieces.h"
#include "storage/state/replacement.h"
#include "storage/state/return_to.h"
#include "storage/state/state_reader.h"
#include "storage/state/state_writer.h"

namespace sluice::train {
namespace {

namespace fs = std::filesystem;
using state::StateStore;

// The state of one rank of a run that was.
struct Found {
  std::string directory;
  state::Share share;
  std::int64_t subgroup_elements = 0;
  std::int64_t step = 0;
};

// Those that have all of the model among them.
struct FoundSet {
  std::vector<Found> parts;  // by part of the state, and among these by part of the parameters
  std::int64_t step = 0;     // that all have
};

bool has_residual(const FoundSet& set) {
  return std::ranges::any_of(set.parts, [](const Found& found) {
    return offload::has_residual((fs::path(found.directory) / offload::kResidualFileName).string());
  });
}

class Resharder {
 public:
  Resharder(const plan::RunPlan& plan, const state::StateIdentity& wanted, Ranks* ranks,
            const Stops& stops)
      : plan_(plan), files_(plan.config.files), wanted_(wanted), ranks_(ranks), stops_(stops) {}

  Result<Resharded> run();

 private:
  bool is_first() const { return ranks_ == nullptr || ranks_->is_first(); }
  int rank() const { return ranks_ == nullptr ? 0 : ranks_->rank(); }
  int rank_count() const { return ranks_ == nullptr ? 1 : ranks_->count(); }
  Status agreed(const Status& mine) {
    return ranks_ == nullptr ? mine : ranks_->agreed_or_end(mine, "other ranks");
  }
  StateStore::Options at(const std::string& directory) const {
    return {directory, plan_.config.storage.durability, plan_.config.storage.caching};
  }
  // Kept while the new states take the place of the old ones: how many ranks there are then.
  std::string note_path() const {
    return (fs::path(files_.state_places.before_rank).parent_path() / "resharded").string();
  }
  std::vector<std::string> all_places() const;
  Status finish_earlier();
  Status put_all_in_place(int new_rank_count);
  Result<bool> all_fit();
  Result<FoundSet> choose_set();
  Result<FoundSet> hear_set();
  Status write_new(const FoundSet& set);
  Status write_arrays(const FoundSet& set, StateStore& to);

  const plan::RunPlan& plan_;
  const settings::RunFiles& files_;
  const state::StateIdentity& wanted_;
  Ranks* ranks_;
  const Stops& stops_;
};

Result<Resharded> Resharder::run() {
  RETURN_IF_ERROR(agreed(is_first() ? finish_earlier() : ok_status()));
  ASSIGN_OR_RETURN(const bool fit, all_fit());
  if (fit) return Resharded{};
  ASSIGN_OR_RETURN(const FoundSet set, hear_set());
  const Status written = agreed(write_new(set));
  if (!written.ok()) {
    const Status dropped = state::drop_replacement(at(files_.state_directory));
    static_cast<void>(dropped);  // the first error is the one to tell
    return written.error();
  }
  const bool drops_residual = is_first() && has_residual(set);  // before it is gone
  RETURN_IF_ERROR(agreed(is_first() ? put_all_in_place(rank_count()) : ok_status()));
  return Resharded{true, set.step,
                   set.parts.size() == 1 ? "whole" : fmt::format("in {} parts", set.parts.size()),
                   drops_residual};
}

// That of one rank, and of ranks as far as they are numbered through.
std::vector<std::string> Resharder::all_places() const {
  std::vector<std::string> places = {files_.state_places.alone};
  std::error_code ignored;
  for (int rank = 0; fs::exists(files_.state_places.of_rank(rank), ignored); ++rank) {
    places.push_back(files_.state_places.of_rank(rank));
  }
  return places;
}

// The change that a crash has cut: put in place if all of it was written, dropped if not.
Status Resharder::finish_earlier() {
  std::error_code error;  // a pipe in its place would be waited for
  std::ifstream note;
  if (fs::is_regular_file(note_path(), error)) note.open(note_path());
  int new_rank_count = 0;
  if (note >> new_rank_count) return put_all_in_place(new_rank_count);
  for (const std::string& place : all_places()) {
    RETURN_IF_ERROR(state::drop_replacement(at(place)));
  }
  return ok_status();
}

Status Resharder::put_all_in_place(int new_rank_count) {
  RETURN_IF_ERROR(state::keep_note(at(files_.state_directory), note_path(),
                                   fmt::format("{}\n", new_rank_count)));
  // From the last on, so that after a crash they are still numbered through. The first is that of a
  // run of one rank.
  const std::vector<std::string> places = all_places();
  for (std::size_t p = places.size(); p-- > 0;) {
    const int rank = static_cast<int>(p) - 1;
    const bool is_new = p == 0 ? new_rank_count == 1 : new_rank_count > 1 && rank < new_rank_count;
    RETURN_IF_ERROR(is_new ? state::put_in_place(at(places[p]))
                           : state::remove_state(at(places[p])));
  }
  return state::drop_note(at(files_.state_directory), note_path());
}

// Whether each rank's own folder has what it is to have, no more than a commit apart.
Result<bool> Resharder::all_fit() {
  double step = -1;
  if (StateStore::exists(files_.state_directory)) {
    const auto store = StateStore::open_read_only(at(files_.state_directory));
    if (!store.ok() && store.error().code() != ErrorCode::not_found) return store.error();
    if (store.ok() && (*store)->identity().share == wanted_.share &&
        (*store)->layout().geometry().codes == plan_.geometry.codes) {
      step = static_cast<double>((*store)->committed().position.step);
    }
  }
  std::vector<double> steps = {step};
  if (ranks_ != nullptr) {
    ASSIGN_OR_RETURN(steps, ranks_->gather(steps, "committed steps"));
  }
  const auto [least, most] = std::ranges::minmax(steps);
  return least >= 0 && most - least <= static_cast<double>(plan_.config.offload.commit_every);
}

// The set with the newest step that all of its parts have.
Result<FoundSet> Resharder::choose_set() {
  using Kind = std::tuple<std::int32_t, std::int32_t, std::int64_t>;
  std::map<Kind, std::map<std::pair<std::int32_t, std::int32_t>, Found>> kinds;
  std::optional<Error> never_committed;
  for (const std::string& place : all_places()) {
    if (!StateStore::exists(place)) continue;
    const auto store = StateStore::open_read_only(at(place));
    if (!store.ok()) {
      if (store.error().code() != ErrorCode::not_found) return store.error();
      if (!never_committed) never_committed = store.error();
      continue;
    }
    const Found found{place, (*store)->identity().share,
                      (*store)->layout().geometry().subgroup_elements,
                      (*store)->committed().position.step};
    const state::Share& share = found.share;
    Found& best = kinds[{share.parameter_parts, share.state_parts, found.subgroup_elements}]
                       [{share.state_part, share.parameter_part}];
    if (best.directory.empty() || best.step < found.step) best = found;
  }
  FoundSet newest;
  newest.step = -1;
  for (const auto& [kind, parts] : kinds) {
    const auto part_count = static_cast<std::size_t>(std::get<0>(kind) * std::get<1>(kind));
    if (parts.size() < part_count) continue;
    FoundSet set;
    for (const auto& [part, found] : parts) set.parts.push_back(found);
    set.step = std::ranges::min(set.parts, {}, &Found::step).step;
    if (set.step > newest.step) newest = set;
  }
  if (newest.parts.empty() && never_committed) return *never_committed;
  if (newest.parts.empty()) {
    return make_error(ErrorCode::not_found,
                      "there is no whole state in {} and {}* to go on from; leave out --resume to "
                      "begin",
                      files_.state_places.alone, files_.state_places.before_rank);
  }
  for (const Found& found : newest.parts) {
    if (found.step > newest.step) {
      RETURN_IF_ERROR(state::return_to(at(found.directory), newest.step));
    }
  }
  return newest;
}

// The first rank has looked; the others hear which folders it has found.
Result<FoundSet> Resharder::hear_set() {
  Result<FoundSet> chosen = is_first() ? choose_set() : Result<FoundSet>(FoundSet{});
  RETURN_IF_ERROR(agreed(chosen.ok() ? ok_status() : Status(chosen.error())));
  if (ranks_ == nullptr) return chosen;
  std::string text = fmt::format("{}", chosen->step);
  for (const Found& found : chosen->parts) text += "\n" + found.directory;
  ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                   ranks_->gather_text(text, "state folders"));
  std::istringstream lines(texts.front());
  FoundSet set;
  std::string line;
  std::getline(lines, line);
  set.step = std::stoll(line);
  while (std::getline(lines, line)) {
    Found found;
    found.directory = line;
    set.parts.push_back(found);
  }
  return set;
}

Status Resharder::write_new(const FoundSet& set) {
  const StateStore::Options own = at(files_.state_directory);
  RETURN_IF_ERROR(state::prepare_replacement(own, plan_.geometry.device_count));
  StateStore::Options options = own;
  options.directory = state::replacement_of(own.directory);
  ASSIGN_OR_RETURN(const auto store,
                   StateStore::create(options, wanted_, plan_.geometry, plan_.device_map));
  return write_arrays(set, *store);
}

// Subgroup by subgroup, each in memory as a whole.
Status Resharder::write_arrays(const FoundSet& set, StateStore& to) {
  std::vector<std::string> directories;
  for (const Found& found : set.parts) directories.push_back(found.directory);
  ASSIGN_OR_RETURN(StatePieces pieces,
                   StatePieces::open(directories, plan_.layout, plan_.config.storage.caching));
  RETURN_IF_ERROR(pieces.check_identity(wanted_));
  // Before anything is put in place, all ranks hear of what one finds.
  RETURN_IF_ERROR(pieces.check_parts(rank(), rank_count()));
  state::StateWriter writer(to);
  state::CommitRecord record;
  record.position = pieces.position();
  for (const SubgroupId subgroup : all_ids<SubgroupId>(plan_.geometry.subgroup_count())) {
    for (std::int32_t v = 0; v < plan_.geometry.stored().decoded_count(); ++v) {
      RETURN_IF_ERROR(unless_stopped(stops_, "writing the state for other ranks"));
      RETURN_IF_ERROR(pieces.read(v, plan_.share.state, plan_.geometry.first_element(subgroup),
                                  writer.values(subgroup, v)));
    }
    ASSIGN_OR_RETURN(record.subgroups.emplace_back(), writer.write(subgroup));
  }
  return to.commit(record);
}

}  // namespace

Result<Resharded> reshard(const plan::RunPlan& plan, const state::StateIdentity& wanted,
                          Ranks* ranks, const Stops& stops) {
  return Resharder(plan, wanted, ranks, stops).run();
}

}  // namespace sluice::train
