#pragma once
// Which of a model's layers is what: the embedding first, then the blocks, then the head.
//
// Where tables are wider than a block and the head has one of its own, both are cut into pieces of
// rows that are layers, so that no buffer is sized by them: the embedding's pieces come first, and
// those of the output table behind the head, which is a norm alone then. The flat array is the
// same. A table that is embedding and output table both stays whole: the head uses it long before
// its gradient is complete.
//
// Thread contract: plain data, free functions.

#include <cstdint>

#include "base/ids.h"
#include "core/model/flat_layout.h"
#include "core/model/model_shape.h"

namespace sluice::model {

struct LayerPlaces {
  std::int32_t embeddings = 1;  // layers
  std::int32_t blocks = 0;
  std::int32_t outputs = 0;     // pieces of the output table; 0: tables are whole
  std::int64_t piece_rows = 0;  // of a table; the last piece has what is left
  std::int64_t table_rows = 0;

  std::int32_t count() const { return embeddings + blocks + 1 + outputs; }
  LayerId first_block() const { return LayerId{embeddings}; }
  LayerId head() const { return LayerId{embeddings + blocks}; }
  LayerId last() const { return LayerId{count() - 1}; }

  bool are_tables_cut() const { return outputs > 0; }
  bool is_embedding(LayerId layer) const { return index_of(layer) < embeddings; }
  bool is_block(LayerId layer) const { return !is_embedding(layer) && layer < head(); }
  bool is_output(LayerId layer) const { return layer > head(); }
  // Whether logits are made there: the head, or a piece of the output table.
  bool has_logits(LayerId layer) const {
    return are_tables_cut() ? is_output(layer) : layer == head();
  }
  std::int64_t block_of(LayerId layer) const { return index_of(layer) - embeddings; }  // 0: first

  // The rows of the table that a piece has.
  std::int64_t first_row(LayerId layer) const { return piece_of(layer) * piece_rows; }
  std::int64_t row_count(LayerId layer) const {
    const std::int64_t left = table_rows - first_row(layer);
    return left < piece_rows ? left : piece_rows;
  }

 private:
  std::int64_t piece_of(LayerId layer) const {
    return is_output(layer) ? index_of(layer) - index_of(head()) - 1 : index_of(layer);
  }
};

LayerPlaces layer_places(const ModelShape& shape);

// The answers whose logits a layer makes: all of them, or a piece's rows; of other layers 0.
std::int64_t logit_count(const ModelShape& shape, LayerId layer);

// The logits of a token that exist together: those of a piece of the output table, or all.
std::int64_t widest_logits(const ModelShape& shape);

// The layers of a layout of whole tables, as `places` cuts them; tensors name the first layer that
// has any of them.
FlatLayout cut_tables(FlatLayout layout, const LayerPlaces& places);

}  // namespace sluice::model
