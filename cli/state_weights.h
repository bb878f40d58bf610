#pragma once
// The master weights of a committed state, from the first to the last, each array compared with its
// checksum.
//
// Thread contract: one thread. Beside a live run the weights are those of the last commit when it
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
  std::int64_t step() const { return store_->committed().position.step; }

  // weights::ReadElements; each call goes on where the last one ended.
  Status read(std::int64_t first, std::int64_t count, const weights::TakeElements& take);

 private:
  StateWeights(std::string directory, std::unique_ptr<state::StateStore> store,
               state::StateReader reader)
      : directory_(std::move(directory)), store_(std::move(store)), reader_(std::move(reader)) {}
  Status check(std::span<const float> values);
  Error damaged(SubgroupId subgroup) const;

  std::string directory_;
  std::unique_ptr<state::StateStore> store_;
  state::StateReader reader_;
  state::Checksummer checksummer_;  // of the subgroup that is being read
  std::int64_t next_ = 0;           // element
};

}  // namespace sluice::cli
