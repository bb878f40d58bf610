#pragma once
// The names that files of Hugging Face's have for the tensors of a FlatLayout: its classes hold the
// model itself as a member, whose name stands before those of the model's tensors ("model.",
// "transformer.", "bert."). Files of that inner model alone have none, and T5 has no such member.
//
// Thread contract: free functions.

#include <string>
#include <string_view>

#include "core/model/model_shape.h"

namespace sluice::weights {

// "model.norm.weight" of "norm.weight"; the output table and BERT's head stay what they are.
std::string name_in_files(model::Family family, const std::string& name);
// The same of a tensor that is trained: of an adapter what PEFT calls it.
std::string trained_name_in_files(const model::ModelShape& shape, const std::string& name);
// The reverse; a name without the prefix stays what it is. Old words are as the new ones.
std::string name_in_layout(model::Family family, std::string_view name);

// Tensors of a file that the model has no use for: tables of old files, which follow from the
// configuration, a BERT's head for the next sentence, or of one that classifies all that it was
// pretrained with, and a T5's token table by its other names and a table of biases that its class
// does not read.
bool is_passed_over(const model::ModelShape& shape, std::string_view name_in_layout);

inline constexpr std::string_view kOutputTable = "lm_head.weight";
// The table that a tied output table is.
std::string_view token_table(model::Family family);
// The name of the output table, or of the copy of a tied one that a file may have.
std::string_view output_table(model::Family family);

}  // namespace sluice::weights
