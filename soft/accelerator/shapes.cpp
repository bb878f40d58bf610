// libtorch's kernels for the device "meta", which compute shapes only, know most. A few of the
// CPU's own operators have none; their shapes are written down here, as the CPU's kernels make
// them.

#include "soft/accelerator/shapes.h"

#include <ATen/ops/empty_strided.h>
#include <c10/util/Exception.h>

#include <map>
#include <string>

#include "soft/accelerator/alias.h"

namespace sluice::soft_accelerator {
namespace {

using Shapes = std::vector<OutputShape>;
using Arguments = torch::jit::Stack;

OutputShape contiguous(std::vector<std::int64_t> sizes, at::ScalarType dtype) {
  OutputShape shape{.sizes = std::move(sizes), .dtype = dtype};
  shape.strides.resize(shape.sizes.size());
  std::int64_t stride = 1;
  for (std::size_t i = shape.sizes.size(); i-- > 0;) {
    shape.strides[i] = stride;
    stride *= std::max<std::int64_t>(shape.sizes[i], 1);
  }
  return shape;
}

OutputShape like(const at::Tensor& tensor) {
  return contiguous(tensor.sizes().vec(), tensor.scalar_type());
}

// Four dimensions, of which memory has the second and third the other way round.
OutputShape with_heads_inside(const at::Tensor& tensor) {
  OutputShape shape = contiguous({tensor.size(0), tensor.size(2), tensor.size(1), tensor.size(3)},
                                 tensor.scalar_type());
  std::swap(shape.sizes[1], shape.sizes[2]);
  std::swap(shape.strides[1], shape.strides[2]);
  return shape;
}

Shapes layer_norm(const Arguments& in) {
  const at::Tensor& x = in[0].toTensor();
  const std::size_t normalized = in[1].toIntVector().size();
  const bool is_mixed = !in[2].isNone() && in[2].toTensor().defined() &&
                        in[2].toTensor().scalar_type() != x.scalar_type();
  std::vector<std::int64_t> rows = x.sizes().vec();
  for (std::size_t i = rows.size() - normalized; i < rows.size(); ++i) rows[i] = 1;
  const OutputShape statistic = contiguous(rows, is_mixed ? at::kFloat : x.scalar_type());
  return {like(x), statistic, statistic};
}

Shapes layer_norm_backward(const Arguments& in) {
  const auto wanted = in[7].toBoolList();
  Shapes shapes;
  for (const std::size_t source : {std::size_t{1}, std::size_t{5}, std::size_t{6}}) {
    const bool is_there =
        wanted.get(shapes.size()) && in[source].isTensor() && in[source].toTensor().defined();
    shapes.push_back(is_there ? like(in[source].toTensor()) : OutputShape{.is_defined = false});
  }
  return shapes;
}

Shapes embedding_dense_backward(const Arguments& in) {
  const at::Tensor& gradient = in[0].toTensor();
  return {contiguous({in[2].toInt(), gradient.size(-1)}, gradient.scalar_type())};
}

Shapes index_select(const Arguments& in) {
  const at::Tensor& self = in[0].toTensor();
  std::vector<std::int64_t> sizes = self.sizes().vec();
  const std::int64_t dimension = in[1].toInt() < 0 ? in[1].toInt() + self.dim() : in[1].toInt();
  if (self.dim() > 0) sizes.at(static_cast<std::size_t>(dimension)) = in[2].toTensor().numel();
  return {contiguous(sizes, self.scalar_type())};
}

Shapes attention(const Arguments& in) {
  const at::Tensor& query = in[0].toTensor();
  const at::ScalarType sums =
      query.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;  // what the CPU adds in
  OutputShape log_sums = contiguous({query.size(0), query.size(2), query.size(1)}, sums);
  std::swap(log_sums.sizes[1], log_sums.sizes[2]);
  std::swap(log_sums.strides[1], log_sums.strides[2]);
  OutputShape output = with_heads_inside(query);
  return {output, log_sums};
}

Shapes attention_backward(const Arguments& in) {
  return {with_heads_inside(in[1].toTensor()), with_heads_inside(in[2].toTensor()),
          with_heads_inside(in[3].toTensor())};
}

Shapes of_first(const Arguments& in) { return {like(in[0].toTensor())}; }

Shapes reduced(const Arguments& in) {
  const at::Tensor& self = in[0].toTensor();
  std::vector<bool> is_reduced(static_cast<std::size_t>(self.dim()), in[1].toIntVector().empty());
  for (const std::int64_t dimension : in[1].toIntVector())
    is_reduced.at(static_cast<std::size_t>(dimension < 0 ? dimension + self.dim() : dimension)) =
        true;
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < is_reduced.size(); ++i) {
    if (!is_reduced[i])
      sizes.push_back(self.sizes()[i]);
    else if (in[2].toBool())
      sizes.push_back(1);
  }
  return {contiguous(sizes, self.scalar_type())};
}

using Rule = Shapes (*)(const Arguments&);

Rule written_rule(const std::string& name) {
  static const std::map<std::string, Rule> rules = {
      {"aten::native_layer_norm", layer_norm},
      {"aten::native_layer_norm_backward", layer_norm_backward},
      {"aten::embedding_dense_backward", embedding_dense_backward},
      {"aten::index_select", index_select},
      {"aten::logsumexp.out", reduced},
      {"aten::abs.out", of_first},
      {"aten::_scaled_dot_product_flash_attention_for_cpu", attention},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", attention_backward},
  };
  const auto found = rules.find(name);
  return found == rules.end() ? nullptr : found->second;
}

at::Tensor on_meta(const at::Tensor& tensor) {
  at::Tensor meta = at::empty_strided(tensor.sizes(), tensor.strides(),
                                      tensor.options().device(at::kMeta).pinned_memory(false));
  mark_as_number(tensor, meta);
  return meta;
}

std::optional<Shapes> meta_rule(const c10::OperatorHandle& op, const Arguments& arguments) {
  if (!op.hasComputedKernelForDispatchKey(c10::DispatchKey::Meta)) return std::nullopt;
  Arguments stack;
  for (const c10::IValue& value : arguments)
    stack.push_back(value.isDevice() ? c10::IValue(c10::Device(at::kMeta))
                                     : with_tensors(value, on_meta));
  try {
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
  } catch (const c10::Error&) {
    return std::nullopt;
  }
  Shapes shapes;
  for (const c10::IValue& value : stack) {
    if (!value.isTensor()) return std::nullopt;
    const at::Tensor& tensor = value.toTensor();
    if (tensor.defined())
      shapes.push_back({true, tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type()});
    else
      shapes.push_back({.is_defined = false});
  }
  return shapes;
}

}  // namespace

std::optional<Shapes> output_shapes(const c10::OperatorHandle& op, const Arguments& arguments) {
  const std::string& overload = op.schema().overload_name();
  const std::string& name = op.schema().name();
  if (const Rule rule = written_rule(overload.empty() ? name : name + "." + overload))
    return rule(arguments);
  return meta_rule(op, arguments);
}

}  // namespace sluice::soft_accelerator
