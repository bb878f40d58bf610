#include "core/train/rank_digest.h"

#include <algorithm>

#include "core/train/ranks.h"
#include "storage/state/flat_digest.h"

namespace sluice::train {
namespace {

using state::FlatDigest;

// Elements of the state of the rank `rank`, in the flat order of the model.
struct Piece {
  int rank = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// The first ranks have all of the model among them: part p of the parameters and part j of its
// state are those of rank j * parts + p.
std::vector<Piece> pieces_of(const shard::RankShare& share, const model::FlatLayout& model) {
  const std::int32_t parts = share.share.parameter_parts;
  std::vector<model::FlatLayout> layouts;
  std::vector<std::vector<shard::Stretch>> owners;
  for (std::int32_t p = 0; p < parts; ++p) {
    layouts.push_back(shard::parameter_part(model, p, parts));
    owners.push_back(shard::owned_stretches(layouts.back().parameter_count, share.subgroup_elements,
                                            share.share.state_parts));
  }
  std::vector<Piece> pieces;
  for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
    for (std::int32_t p = 0; p < parts; ++p) {
      const auto at = static_cast<std::size_t>(p);
      const model::LayerRange& range = layouts[at].layers[layer];
      for (std::int32_t j = 0; j < share.share.state_parts; ++j) {
        const shard::Stretch& stretch = owners[at][static_cast<std::size_t>(j)];
        const std::int64_t low = std::max(range.first, stretch.first);
        const std::int64_t high =
            std::min(range.first + range.count, stretch.first + stretch.count);
        if (low >= high) continue;
        const Piece piece{j * parts + p, low - stretch.first, high - low};
        if (!pieces.empty() && pieces.back().rank == piece.rank &&
            pieces.back().first + pieces.back().count == piece.first) {
          pieces.back().count += piece.count;
        } else {
          pieces.push_back(piece);
        }
      }
    }
  }
  return pieces;
}

Status check_replicas(Ranks& ranks, const shard::RankShare& share, const std::string& digest) {
  ASSIGN_OR_RETURN(const std::vector<std::string> digests,
                   ranks.gather_text(digest, "digest of the state"));
  const std::int32_t distinct = share.triple.state.size();
  for (std::size_t rank = 0; rank < digests.size(); ++rank) {
    const std::size_t like = rank % static_cast<std::size_t>(distinct);
    if (digests[rank] == digests[like]) continue;
    return make_error(
        ErrorCode::internal,
        "the state of rank {} has the digest {}, and that of rank {} {}: the ranks no "
        "longer train the same model",
        rank, digests[rank], like, digests[like]);
  }
  return ok_status();
}

}  // namespace

Result<std::string> digest_of_ranks(Ranks& ranks, const shard::RankShare& share,
                                    const model::FlatLayout& model, state::StateStore& store) {
  const Result<state::StateDigest> own = state::digest_state(store, nullptr, nullptr);
  RETURN_IF_ERROR(ranks.agreed(own.ok() ? ok_status() : Status(own.error()), "digest"));
  RETURN_IF_ERROR(check_replicas(ranks, share, own->digest));
  if (!share.is_sharded()) return own->digest;
  FlatDigest digest;
  ASSIGN_OR_RETURN(state::StateReader reader, state::StateReader::make(store));
  const std::vector<Piece> pieces = pieces_of(share, model);
  const std::int32_t variable_count = store.layout().geometry().stored().decoded_count();
  for (std::int32_t variable = 0; variable < variable_count; ++variable) {
    for (const Piece& piece : pieces) {
      if (piece.rank == ranks.rank()) {
        RETURN_IF_ERROR(digest.add(reader, variable, piece.first, piece.count));
      }
      std::vector<std::byte> hash = digest.handed_on();
      RETURN_IF_ERROR(ranks.hand_on(hash, piece.rank, "digest of the state"));
      digest.take_over(hash);
    }
  }
  return digest.digest();
}

}  // namespace sluice::train
