#include "core/train/state_pieces.h"

#include <algorithm>

#include "base/check.h"
#include "core/shard/share.h"

namespace sluice::train {

using model::LayerRange;
using state::StateStore;

Result<StatePieces> StatePieces::open(const std::vector<std::string>& directories,
                                      const model::FlatLayout& model, io::Caching caching) {
  StatePieces pieces;
  pieces.directories_ = directories;
  pieces.pieces_.resize(model.layers.size());
  for (const std::string& directory : directories) {
    StateStore::Options options;
    options.directory = directory;
    options.caching = caching;
    ASSIGN_OR_RETURN(std::unique_ptr<StateStore> store, StateStore::open_read_only(options));
    pieces.stores_.push_back(std::move(store));
    ASSIGN_OR_RETURN(state::StateReader reader, state::StateReader::make(*pieces.stores_.back()));
    pieces.readers_.push_back(std::move(reader));
    RETURN_IF_ERROR(pieces.add(pieces.stores_.size() - 1, model));
  }
  for (auto& layer : pieces.pieces_) std::ranges::sort(layer, {}, &Piece::first);
  return pieces;
}

// The stretch of each layer that a part has follows from its share and its subgroups.
Status StatePieces::add(std::size_t number, const model::FlatLayout& model) {
  const StateStore& store = *stores_[number];
  const state::Share share = store.identity().share;
  const state::Geometry geometry = stores_[number]->layout().geometry();
  const model::FlatLayout part =
      shard::parameter_part(model, share.parameter_part, share.parameter_parts);
  const auto owned =
      shard::owned_stretches(part.parameter_count, geometry.subgroup_elements, share.state_parts);
  const model::FlatLayout held =
      shard::stretch_of(part, owned[static_cast<std::size_t>(share.state_part)]);
  if (held.parameter_count != geometry.parameter_count ||
      position() != store.committed().position) {
    return make_error(
        ErrorCode::corrupt, "{}: has {} elements of step {} ({}), and {} has another model or step",
        directories_[number], geometry.parameter_count, store.committed().position.step,
        state::share_text(share), directories_.front());
  }
  for (std::size_t layer = 0; layer < held.layers.size(); ++layer) {
    const LayerRange& range = held.layers[layer];
    if (range.count == 0) continue;
    pieces_[layer].push_back({range.before, range.count, number, range.first});
  }
  return ok_status();
}

Status StatePieces::check_parts(int rank, int rank_count) const {
  for (auto s = static_cast<std::size_t>(rank); s < stores_.size();
       s += static_cast<std::size_t>(rank_count)) {
    RETURN_IF_ERROR(state::digest_state(*stores_[s], nullptr, nullptr));
  }
  return ok_status();
}

Status StatePieces::check_identity(const state::StateIdentity& wanted) const {
  for (std::size_t s = 0; s < stores_.size(); ++s) {
    state::StateIdentity any_share = wanted;
    any_share.share = stores_[s]->identity().share;
    any_share.variable_names = stores_[s]->identity().variable_names;  // in whatever format
    RETURN_IF_ERROR(state::check_identity(any_share, stores_[s]->identity(), directories_[s]));
  }
  return ok_status();
}

Status StatePieces::read(std::int32_t variable, const model::FlatLayout& held, std::int64_t first,
                         std::span<float> out) {
  const std::int64_t end = first + std::ssize(out);
  for (std::size_t layer = 0; layer < held.layers.size(); ++layer) {
    const LayerRange& range = held.layers[layer];
    const std::int64_t low = std::max(first, range.first);
    const std::int64_t high = std::min(end, range.first + range.count);
    if (low >= high) continue;
    RETURN_IF_ERROR(read_layer(
        variable, layer, range.before + low - range.first,
        out.subspan(static_cast<std::size_t>(low - first), static_cast<std::size_t>(high - low))));
  }
  return ok_status();
}

Status StatePieces::read_layer(std::int32_t variable, std::size_t layer, std::int64_t first,
                               std::span<float> out) {
  const std::int64_t end = first + std::ssize(out);
  std::int64_t done = first;
  for (const Piece& piece : pieces_[layer]) {
    const std::int64_t low = std::max(first, piece.first);
    const std::int64_t high = std::min(end, piece.first + piece.count);
    if (low >= high) continue;
    CHECK_EQ(low, done);
    auto into = out.begin() + (low - first);
    RETURN_IF_ERROR(readers_[piece.store].read(variable, piece.first_in_store + low - piece.first,
                                               high - low, [&into](std::span<const float> values) {
                                                 into = std::ranges::copy(values, into).out;
                                                 return ok_status();
                                               }));
    done = high;
  }
  CHECK_EQ(done, end);  // all parts are there
  return ok_status();
}

}  // namespace sluice::train
