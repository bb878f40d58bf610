#include "core/model/lora.h"

#include <algorithm>

#include "base/check.h"
#include "base/nearest.h"
#include "core/model/architecture.h"

namespace sluice::model {
namespace {

constexpr std::string_view kWeight = ".weight";

bool is_output_table(const ModelShape& shape, const FlatLayout& layout, const TensorInfo& tensor) {
  const bool is_last = &tensor == &layout.tensors.back();
  const bool is_heads = index_of(tensor.layer) == layout.layer_count() - 1;
  return (shape.has_own_output_table() && is_last) ||
         (is_heads && shape.classes > 0 && tensor.shape.front() == shape.classes);
}

bool is_matrix(const ModelShape& shape, const FlatLayout& layout, const TensorInfo& tensor) {
  return index_of(tensor.layer) > 0 && tensor.shape.size() == 2 && tensor.name.ends_with(kWeight) &&
         !is_output_table(shape, layout, tensor);
}

// A * stands for any text, also for none.
bool matches(std::string_view pattern, std::string_view text) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (std::size_t first = star; first <= text.size(); ++first) {
    if (matches(rest, text.substr(first))) return true;
  }
  return false;
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string_view part = text.substr(begin, end - begin);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    parts.emplace_back(part);
    begin = end + 1;
  }
  return parts;
}

bool is_one_of(const std::vector<std::string>& targets, std::string_view name) {
  return std::ranges::any_of(targets,
                             [&](const std::string& target) { return is_target(target, name); });
}

Error no_such_target(const ModelShape& shape, const std::string& target,
                     const std::vector<LinearModule>& modules) {
  std::vector<std::string> known = {std::string(kAllLinear)};
  for (const LinearModule& module : modules) {
    const std::string part(last_part(module.name));
    if (std::ranges::find(known, part) == known.end()) known.push_back(part);
  }
  const std::string parts =
      fmt::format("{}", fmt::join(std::vector<std::string>(known.begin() + 1, known.end()), ", "));
  for (const LinearModule& module : modules) known.push_back(module.name);
  const FlatLayout layout = shape.base_layout();
  const bool is_other = std::ranges::any_of(layout.tensors, [&](const TensorInfo& tensor) {
    return is_target(target, tensor.name.substr(0, tensor.name.rfind('.')));
  });
  return make_error(
      ErrorCode::config, "lora_targets: \"{}\" {} of model {}{}; its linear layers end in {}",
      target,
      is_other ? "takes no adapter (embeddings, norms and the output table stay as they are)"
               : "is the end of no linear layer's name",
      shape.name, is_other ? "" : did_you_mean(target, known), parts);
}

}  // namespace

bool is_target(std::string_view pattern, std::string_view name) {
  while (true) {
    if (matches(pattern, name)) return true;
    const std::size_t dot = name.find('.');
    if (dot == std::string_view::npos) return false;
    name.remove_prefix(dot + 1);
  }
}

std::vector<LinearModule> linear_modules(const ModelShape& shape) {
  const FlatLayout layout = shape.base_layout();
  const bool is_in_out = architecture_of(shape).is_in_out;
  const std::vector<std::string> of_sources = split(architecture_of(shape).source_modules);
  std::vector<LinearModule> modules;
  for (const TensorInfo& tensor : layout.tensors) {
    if (!is_matrix(shape, layout, tensor)) continue;
    const std::int64_t rows = tensor.shape[0], columns = tensor.shape[1];
    const std::string name = tensor.name.substr(0, tensor.name.size() - kWeight.size());
    modules.push_back({name, tensor.layer, is_in_out ? rows : columns, is_in_out ? columns : rows,
                       is_one_of(of_sources, name)});
  }
  return modules;
}

std::vector<LinearModule> adapted_modules(const ModelShape& shape) {
  if (!shape.has_adapters()) return {};
  std::vector<LinearModule> modules = linear_modules(shape);
  auto next = shape.lora.modules.begin();  // in the same order
  std::erase_if(modules, [&](const LinearModule& module) {
    if (next == shape.lora.modules.end() || module.name != *next) return true;
    ++next;
    return false;
  });
  CHECK(next == shape.lora.modules.end());
  return modules;
}

std::vector<LinearModule> adapted_modules(const ModelShape& shape, LayerId layer) {
  std::vector<LinearModule> modules = adapted_modules(shape);
  std::erase_if(modules, [&](const LinearModule& module) { return module.layer != layer; });
  return modules;
}

Result<ModelShape> with_adapters(ModelShape shape, const LoraChoice& choice) {
  shape.lora = {};
  if (choice.rank == 0) return shape;
  if (std::string_view(architecture_of(shape).lora_targets).empty()) {
    return make_error(
        ErrorCode::config,
        "lora_rank = {}: a {}, as {}, takes no adapters; leave lora_rank out, and all "
        "of the model is trained",
        choice.rank, architecture_of(shape).name, shape.name);
  }
  const std::vector<LinearModule> modules = linear_modules(shape);
  const std::vector<std::string> targets =
      split(choice.targets.empty() ? architecture_of(shape).lora_targets : choice.targets);
  const auto is_one = [](const std::string& target, const LinearModule& module) {
    return target == kAllLinear || is_target(target, module.name);
  };
  for (const std::string& target : targets) {
    const bool is_there = std::ranges::any_of(
        modules, [&](const LinearModule& module) { return is_one(target, module); });
    if (!is_there) return no_such_target(shape, target, modules);
  }
  Lora lora{.rank = choice.rank, .alpha = choice.alpha};
  for (const LinearModule& module : modules) {
    const bool is_wanted = std::ranges::any_of(
        targets, [&](const std::string& target) { return is_one(target, module); });
    if (is_wanted) lora.modules.push_back(module.name);
  }
  shape.lora = std::move(lora);
  return shape;
}

FlatLayout adapter_layout(const ModelShape& shape) {
  const FlatLayout base = shape.base_layout();
  const std::vector<LinearModule> modules = adapted_modules(shape);
  LayoutBuilder builder;
  auto module = modules.begin();
  for (std::int32_t l = 0; l < base.layer_count(); ++l) {
    builder.begin_layer(base.layer(LayerId{l}).name);
    for (; module != modules.end() && index_of(module->layer) == l; ++module)
      builder.adapter(module->name, module->in, module->out, shape.lora.rank);
  }
  CHECK(module == modules.end());
  FlatLayout layout = builder.take();
  layout.first_stays = base.first_stays;
  return layout;
}

LayerId first_trained_layer(const ModelShape& shape) {
  return shape.has_adapters() ? adapted_modules(shape).front().layer : LayerId{0};
}

std::vector<MadeTensor> adapter_made(const ModelShape& shape, LayerId layer) {
  MadeTensors made;
  for (const LinearModule& module : adapted_modules(shape, layer)) {
    made.kept("between A and B", shape.lora.rank, module.of_sources);
    made.passing("what an adapter adds", module.out, module.of_sources);
  }
  return made.take();
}

AdapterWidths adapter_widths(const ModelShape& shape) {
  AdapterWidths widths;
  std::int64_t kept = 0;
  LayerId layer = kNoLayer;
  for (const LinearModule& module : adapted_modules(shape)) {
    if (module.layer != layer) kept = 0;
    layer = module.layer;
    kept += shape.lora.rank;
    widths.kept = std::max(widths.kept, kept);
    widths.passing = std::max(widths.passing, shape.lora.rank + 2 * module.out);
  }
  return widths;
}

}  // namespace sluice::model
