#include "core/weights/detail/config_families.h"

namespace sluice::weights::detail {
namespace {

constexpr std::string_view kGpt2Harmless =
    "summary_type summary_use_proj summary_activation summary_first_dropout "
    "summary_proj_to_labels";

}  // namespace

Status read_gpt2(Reading& at) {
  RETURN_IF_ERROR(check_class(at.fields, "GPT2LMHeadModel"));
  at.keys.put("family", "gpt2");
  RETURN_IF_ERROR(read_whole(at, "n_layer", "layers"));
  RETURN_IF_ERROR(read_whole(at, "n_embd", "hidden"));
  RETURN_IF_ERROR(read_whole(at, "n_head", "heads"));
  RETURN_IF_ERROR(read_whole(at, "n_positions", "sequence"));
  RETURN_IF_ERROR(read_whole(at, "vocab_size", "vocabulary"));
  ASSIGN_OR_RETURN(const std::int64_t positions, at.fields.whole("n_positions"));
  ASSIGN_OR_RETURN(const std::int64_t hidden, at.fields.whole("n_embd"));
  RETURN_IF_ERROR(at.fields.only("n_ctx", positions));
  RETURN_IF_ERROR(at.fields.only("n_inner", 4 * hidden));
  // Two names of the same formula.
  ASSIGN_OR_RETURN(const std::string activation,
                   at.fields.text_or("activation_function", "gelu_new"));
  if (activation != "gelu_pytorch_tanh") {
    RETURN_IF_ERROR(at.fields.only("activation_function", "gelu_new"));
  }
  RETURN_IF_ERROR(at.fields.only("layer_norm_epsilon", 1e-5));
  RETURN_IF_ERROR(at.fields.only("scale_attn_weights", true));
  RETURN_IF_ERROR(at.fields.only("scale_attn_by_inverse_layer_idx", false));
  RETURN_IF_ERROR(at.fields.only("reorder_and_upcast_attn", false));
  RETURN_IF_ERROR(at.fields.only("add_cross_attention", false));
  RETURN_IF_ERROR(at.fields.only("tie_word_embeddings", true));
  RETURN_IF_ERROR(read_dropout(at, "attn_pdrop", kUsualDropout, "attention_dropout"));
  RETURN_IF_ERROR(read_dropout(at, "embd_pdrop", kUsualDropout, "embedding_dropout"));
  RETURN_IF_ERROR(read_dropout(at, "resid_pdrop", kUsualDropout, "dropout"));
  at.fields.pass_over(kGpt2Harmless);
  return ok_status();
}

}  // namespace sluice::weights::detail
