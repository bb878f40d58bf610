#pragma once
// Which layers may be computed with: their parameters are those of the last update, in host
// memory. Forward goes up through the flat array, so a layer counts as up once it and all below it
// are. Between updates every layer is.
//
// Thread contract: the schedule's thread.

#include <deque>
#include <vector>

#include "base/id_vector.h"
#include "core/model/flat_layout.h"
#include "core/runtime/sync.h"
#include "storage/state/state_layout.h"

namespace sluice::offload {

class ParameterArrival {
 public:
  ParameterArrival(runtime::Runtime& runtime, const model::FlatLayout& layout,
                   const state::Geometry& geometry);

  // An update begins, and all parameters are to come. Nobody may be waiting.
  void expect_all();
  void arrived(SubgroupId subgroup);
  runtime::Event::Awaiter wait(LayerId layer);
  bool is_complete() const { return next_ == last_subgroup_.size(); }
  TimeNs completed_ns() const { return completed_ns_; }  // the last time it became so

 private:
  runtime::Runtime& runtime_;
  std::vector<std::int32_t> last_subgroup_;  // of a layer: the last that holds any of it
  std::deque<runtime::Event> is_up_;         // of a layer
  std::size_t next_;                         // layers below it are up
  IdVector<SubgroupId, char> has_arrived_;
  std::int32_t arrived_below_;  // all subgroups below it have arrived
  TimeNs completed_ns_ = 0;
};

}  // namespace sluice::offload
