#pragma once
// The arrays of a committed state, master weights and the optimizer's, each from its first element
// to its last and compared with its checksums.
//
// Thread contract: one thread. Beside a live run the numbers are those of the last commit when it
// was opened; where the run has written over them since, the checksums tell.

#include <memory>
#include <string>

#include "core/weights/checkpoint_writer.h"
#include "storage/state/checksum.h"
#include "storage/state/state_reader.h"

namespace sluice::cli {

class StateWeights {
 public:
  // ErrorCode::unsupported for the state of one rank of many that has a part of the model.
  static Result<std::unique_ptr<StateWeights>> open(const std::string& directory);

  const state::StateIdentity& identity() const { return store_->identity(); }
  std::vector<std::string> array_names() const {
    return state::decoded_names(identity(), store_->layout().geometry().stored());
  }
  std::int64_t step() const { return store_->committed().position.step; }
  std::int64_t optimizer_step() const { return store_->committed().position.optimizer_step; }

  // weights::ReadElements of the master weights; each call goes on where the last one ended.
  Status read_weights(std::int64_t first, std::int64_t count, const weights::TakeElements& take);
  // The same of the arrays behind them, one behind the other.
  Status read_moments(std::int64_t first, std::int64_t count, const weights::TakeElements& take);

 private:
  StateWeights(std::string directory, std::unique_ptr<state::StateStore> store,
               state::StateReader reader)
      : directory_(std::move(directory)), store_(std::move(store)), reader_(std::move(reader)) {}
  Status read(std::int32_t variable, std::int64_t first, std::int64_t count,
              const weights::TakeElements& take);
  Status check(std::span<const float> values);
  Error damaged(SubgroupId subgroup) const;

  std::string directory_;
  std::unique_ptr<state::StateStore> store_;
  state::StateReader reader_;
  state::Checksummer checksummer_;  // of the subgroup that is being read
  std::int32_t variable_ = 0;
  std::int64_t next_ = 0;  // element of the variable
};

}  // namespace sluice::cli
