#include "profiler/cupti/correlations.h"

namespace sluice::cupti {

Correlation* Correlations::find_or_add(std::uint32_t id) {
  if (const auto known = by_id_.find(id); known != by_id_.end()) return &known->second;
  while (by_id_.size() >= options_.count_max && generations_.size() > 1) {
    lost_count_ += static_cast<std::int64_t>(generations_.front().size());
    forget_oldest();
  }
  if (by_id_.size() >= options_.count_max) {
    lost_count_ += 1;
    return nullptr;
  }
  generations_.back().push_back(id);
  return &by_id_[id];
}

const Correlation* Correlations::find(std::uint32_t id) const {
  const auto known = by_id_.find(id);
  return known == by_id_.end() ? nullptr : &known->second;
}

void Correlations::end_flush() {
  generations_.emplace_back();
  while (static_cast<int>(generations_.size()) > options_.flush_count) forget_oldest();
}

void Correlations::forget_oldest() {
  for (const std::uint32_t id : generations_.front()) by_id_.erase(id);
  generations_.pop_front();
}

}  // namespace sluice::cupti
