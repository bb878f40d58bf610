#include "core/model/model_shape.h"

#include "core/model/architecture.h"
#include "core/model/layer_places.h"
#include "core/model/lora.h"
#include "core/model/span_lengths.h"

namespace sluice::model {

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Architecture* architecture : architectures()) names.emplace_back(architecture->name);
  return names;
}

std::string family_name(Family family) {
  return architectures()[static_cast<std::size_t>(family)]->name;
}

FlatLayout ModelShape::flat_layout() const {
  return has_adapters() ? adapter_layout(*this) : base_layout();
}

FlatLayout ModelShape::base_layout() const {
  const Architecture& architecture = architecture_of(*this);
  LayoutBuilder builder;
  builder.begin_layer("embedding");
  architecture.embedding.add_tensors(builder, "embedding", *this);
  const std::int64_t first_stack = has_decoder() ? stacks.encoder_layers : layers;
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool is_first = i < first_stack;
    const std::string block =
        fmt::format("{}.{}", is_first ? architecture.block_name : architecture.decoder_block_name,
                    is_first ? i : i - first_stack);
    builder.begin_layer(block);
    (is_first ? architecture.block : architecture.decoder_block).add_tensors(builder, block, *this);
  }
  builder.begin_layer("head");
  head_kind(*this).add_tensors(builder, "head", *this);
  return cut_tables(builder.take(), layer_places(*this));
}

bool ModelShape::is_causal() const { return architecture_of(*this).is_causal; }

bool ModelShape::classifies() const {
  return classes > 0 && architecture_of(*this).classifier_head.add_tensors != nullptr;
}

bool ModelShape::has_own_output_table() const {
  const bool has_one = architecture_of(*this).output_table == OutputTable::own_unless_tied;
  return classifies() || (has_one && !tied_tables);
}

std::int64_t ModelShape::target_sequence(std::int64_t of) const {
  if (classifies()) return 1;
  return has_decoder() ? span_lengths(stacks.spans, of).targets : of;
}

std::int64_t ModelShape::looked_up_sequence(std::int64_t of) const {
  return has_decoder() ? of + target_sequence(of) : of;
}

ModelShape ModelShape::with_least_depth() const {
  ModelShape least = *this;
  least.layers = has_decoder() ? 2 : 1;
  least.stacks.encoder_layers = has_decoder() ? 1 : 0;
  return least;
}

Status ModelShape::check_sequence(std::int64_t asked) const {
  if (has_decoder() && asked < kLeastSource) {
    return make_error(ErrorCode::config,
                      "sequence={} is too short for model {}: a source has a token, a sentinel and "
                      "an end, so {} at least",
                      asked, name, kLeastSource);
  }
  switch (architecture_of(*this).positions) {
    case Positions::any:
      return ok_status();
    case Positions::table:
      if (asked <= sequence) return ok_status();
      return make_error(ErrorCode::config, "sequence={} is longer than model {} allows ({})", asked,
                        name, sequence);
    case Positions::patches:
      break;
  }
  if (asked == sequence) return ok_status();
  return make_error(ErrorCode::config,
                    "sequence={} contradicts model {}: an image of {} x {} pixels in patches of "
                    "{} x {} is always {} tokens; leave 'sequence' out",
                    asked, name, image, image, patch, patch, sequence);
}

Status check_trainable(const ModelShape& shape) {
  const Architecture& own = architecture_of(shape);
  if (own.is_trainable) {
    const char* const why = own.why_not_trainable ? own.why_not_trainable(shape) : nullptr;
    if (why == nullptr) return ok_status();
    return make_error(ErrorCode::config, "model {}: {}", shape.name, why);
  }
  std::vector<std::string> trainable;
  for (const Architecture* architecture : architectures()) {
    if (architecture->is_trainable) trainable.emplace_back(architecture->name);
  }
  return make_error(ErrorCode::config,
                    "model {}: {} models can be simulated and tuned; training knows {}", shape.name,
                    family_name(shape.family), fmt::join(trainable, ", "));
}

}  // namespace sluice::model
