#pragma once
// Bytes over each link and direction, exactly: every operation that moved something is counted when
// it finishes, payload and padding apart.
//
// Thread contract: owner thread only.

#include <array>
#include <vector>

#include "base/id_vector.h"
#include "core/runtime/operation.h"

namespace sluice::runtime {

struct LinkBytes {
  std::array<std::int64_t, 2> size_bytes{};  // by platform::Direction
  std::array<std::int64_t, 2> padding_bytes{};
};

// sum += factor * more, link by link; both are of one run.
inline void add(std::vector<LinkBytes>& sum, const std::vector<LinkBytes>& more,
                std::int64_t factor) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    for (std::size_t d = 0; d < 2; ++d) {
      sum[i].size_bytes[d] += factor * more[i].size_bytes[d];
      sum[i].padding_bytes[d] += factor * more[i].padding_bytes[d];
    }
  }
}

class ByteCounters final : public OperationSink {
 public:
  explicit ByteCounters(std::size_t link_count) : links_(static_cast<std::int32_t>(link_count)) {}
  void on_submit(const OperationState& /*state*/) override {}
  void on_finish(const OperationState& state) override {
    const Operation& operation = state.operation;
    const auto direction = static_cast<std::size_t>(operation.cost.direction);
    for (const platform::LinkId link : operation.cost.route) {
      LinkBytes& bytes = links_[link];
      bytes.size_bytes[direction] += operation.label.size_bytes;
      bytes.padding_bytes[direction] += operation.label.padding_bytes;
    }
  }
  const std::vector<LinkBytes>& links() const { return links_.values(); }

 private:
  IdVector<platform::LinkId, LinkBytes> links_;
};

}  // namespace sluice::runtime
