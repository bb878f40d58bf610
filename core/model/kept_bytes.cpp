#include "core/model/kept_bytes.h"

#include "core/model/architecture.h"
#include "core/model/layer_places.h"
#include "core/model/lora.h"

namespace sluice::model {
namespace {

// Storages as blocks: the small ones together.
class Blocks {
 public:
  void add(std::int64_t storage_bytes) {
    if (storage_bytes >= kOwnBlockBytes) {
      bytes_.push_back(storage_bytes);
    } else {
      small_bytes_ += storage_bytes;
    }
  }
  std::vector<std::int64_t> all() {
    if (small_bytes_ > 0) bytes_.push_back(small_bytes_);
    return std::move(bytes_);
  }

 private:
  std::vector<std::int64_t> bytes_;
  std::int64_t small_bytes_ = 0;
};

}  // namespace

std::vector<std::int64_t> kept_block_bytes(const ModelShape& shape, LayerId layer,
                                           std::int64_t batch, std::int64_t sequence,
                                           Activations choice, ParameterKind precision) {
  if (!is_offloaded(choice) || layer_places(shape).is_embedding(layer)) return {};
  if (layer < first_trained_layer(shape)) return {};
  const LayerTokens tokens = layer_tokens(shape, layer, batch, sequence);
  Blocks blocks;
  std::vector<MadeTensor> made = made_of(shape, layer);
  const std::vector<MadeTensor> of_adapters = adapter_made(shape, layer);
  made.insert(made.end(), of_adapters.begin(), of_adapters.end());
  for (const MadeTensor& tensor : made) {
    if (!is_needed(tensor.use)) continue;
    if (is_recomputed(choice) && tensor.use != MadeUse::input) continue;
    blocks.add(tokens.rows_of(tensor) * tensor.token_bytes(precision));
  }
  return blocks.all();
}

}  // namespace sluice::model
