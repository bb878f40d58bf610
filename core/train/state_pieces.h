#pragma once
// The whole state of a model, read from the folders of the ranks that have parts of it.
//
// Thread contract: one thread; nobody writes to any of them.

#include <memory>
#include <string>
#include <vector>

#include "core/model/flat_layout.h"
#include "storage/state/state_reader.h"
#include "storage/state/state_store.h"

namespace sluice::train {

class StatePieces {
 public:
  // Folders that have all of the model among them, each part once. Errors: those of opening;
  // ErrorCode::corrupt where the parts do not fit together.
  static Result<StatePieces> open(const std::vector<std::string>& directories,
                                  const model::FlatLayout& model, io::Caching caching);

  // Reads parts `rank`, rank + rank_count, ... as a whole and compares them with their checksums,
  // so that all ranks together do so once. Errors: ErrorCode::corrupt where one is damaged.
  Status check_parts(int rank, int rank_count) const;
  // Whether they are of such a model and optimizer, whatever part.
  Status check_identity(const state::StateIdentity& wanted) const;
  const state::TrainingPosition& position() const { return stores_.front()->committed().position; }

  // Elements [first, first + out.size()) of `held`, a layout of stretches of the model's layers.
  Status read(std::int32_t variable, const model::FlatLayout& held, std::int64_t first,
              std::span<float> out);

 private:
  // Elements of a layer that lie one behind the other in one store.
  struct Piece {
    std::int64_t first = 0;  // of the layer
    std::int64_t count = 0;
    std::size_t store = 0;
    std::int64_t first_in_store = 0;
  };
  Status add(std::size_t store, const model::FlatLayout& model);
  Status read_layer(std::int32_t variable, std::size_t layer, std::int64_t first,
                    std::span<float> out);

  std::vector<std::string> directories_;
  std::vector<std::unique_ptr<state::StateStore>> stores_;
  std::vector<state::StateReader> readers_;
  std::vector<std::vector<Piece>> pieces_;  // by layer, in order
};

}  // namespace sluice::train
