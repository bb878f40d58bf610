#pragma once
// The tensors of a session as its layers: each one that is trained is a layer, and begins on a page
// of whatever is written to the drives, so that its gradient can go down whenever it comes. Groups
// lie one behind the other, and each begins with a subgroup of the state, so that no subgroup is
// updated by the rates of two. A tensor that is tied to another has that one's layer. A frozen one
// has none: its parameters are kept here.
//
// Thread contract: immutable once it is made.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/parameter_span.h"
#include "base/units.h"
#include "core/model/flat_layout.h"
#include "core/session/session.h"

namespace sluice::session {

// A page of the narrowest elements that are written, 16 bits each. Layers and subgroups begin at
// multiples of it.
inline constexpr std::int64_t kPageElements = kPageBytes / 2;

class TensorTable {
 public:
  TensorTable() = default;
  // `subgroup_elements`: whole pages. Errors (ErrorCode::config): no tensor that is trained, a name
  // that comes twice, a shape without elements, a group that there is not, a tie to a tensor that
  // is not there, or to one of another shape.
  static Result<TensorTable> make(const Session::Request& request, std::int64_t subgroup_elements);

  // A layer for each tensor that is trained, and zeros behind it to the end of its last page, or,
  // behind a group, of its last subgroup.
  const model::FlatLayout& layout() const { return layout_; }
  // The size that was asked for. With several groups no more than the largest of them has, so that
  // small ones are not padded to what none of them fills.
  std::int64_t subgroup_elements() const { return subgroup_elements_; }
  // The number of the subgroup behind each group's last one; empty: there is one group.
  std::span<const std::int32_t> group_ends() const { return group_ends_; }
  // "2 3": trained tensors of each group; empty: there is one.
  std::string groups_text() const;

  std::size_t count() const { return layer_of_.size(); }
  // kNoLayer: it is frozen.
  LayerId layer(std::size_t tensor) const { return layer_of_.at(tensor); }

  // Initial values of an array of the state: 0 = the flat parameters. `out` has zeros.
  void fill(std::size_t array, std::int64_t first, std::span<float> out) const;
  // The parameters of what is frozen.
  std::int64_t frozen_bytes(ParameterKind kind) const;
  void fill_frozen(ParameterKind kind);
  ParameterSpan frozen_parameters(std::size_t tensor) const;

 private:
  Status take(const Session::Request& request);
  Status tie(std::span<const Tensor> tensors);
  Status lay_out(const Session::Request& request);
  Status add_layer(std::size_t tensor, const Tensor& info);
  void end_group(bool is_last);

  void fill_tensor(std::size_t tensor, std::size_t array, std::int64_t first,
                   std::span<float> out) const;

  std::function<void(std::size_t tensor, std::int64_t first, std::span<float> out)> initial_;
  std::function<void(std::size_t tensor, std::size_t array, std::int64_t first,
                     std::span<float> out)>
      initial_array_;
  model::FlatLayout layout_;
  std::int64_t subgroup_elements_ = 0;
  std::vector<std::int32_t> group_ends_;
  std::vector<std::int64_t> group_sizes_;  // trained tensors
  std::vector<std::size_t> tensor_of_;     // by layer
  std::vector<std::size_t> owner_of_;      // the tensor whose parameters it has
  std::vector<LayerId> layer_of_;
  std::vector<std::int64_t> frozen_count_;  // elements by tensor; 0: it is trained, or tied
  ParameterKind frozen_kind_ = ParameterKind::bf16;
  std::vector<std::unique_ptr<std::byte[]>> frozen_;
};

// The elements of a tensor, without the zeros behind it.
std::int64_t element_count(const Tensor& tensor);

}  // namespace sluice::session
