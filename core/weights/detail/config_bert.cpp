#include "core/weights/detail/config_families.h"

namespace sluice::weights::detail {
namespace {

using nlohmann::json;

constexpr const char* kBertClassifier = "BertForSequenceClassification";

// Whether it is the class that classifies, of the two that are trained.
Result<bool> is_bert_classifier(ConfigFields& fields) {
  const json* const classes = fields.find("architectures");
  if (classes != nullptr && *classes == json::array({kBertClassifier})) return true;
  RETURN_IF_ERROR(check_class(fields, "BertForMaskedLM", fmt::format(" and {}", kBertClassifier)));
  return false;
}

// As many as have a name, or are counted, or transformers' own number.
Result<std::int64_t> label_count(ConfigFields& fields) {
  const json* const names = fields.find("id2label");
  if (names != nullptr && (!names->is_object() || names->empty())) {
    return fields.refused("'id2label' is {}, and no names of labels", value_text(*names));
  }
  const std::int64_t named = names != nullptr ? std::ssize(*names) : 2;
  ASSIGN_OR_RETURN(const std::int64_t count, fields.whole_or("num_labels", named));
  if (names == nullptr || count == named) return count;
  return fields.refused("'num_labels' is {}, and 'id2label' has {} names", count, named);
}

Status read_bert_classifier(Reading& at, double dropout) {
  RETURN_IF_ERROR(at.fields.only("problem_type", "single_label_classification"));
  ASSIGN_OR_RETURN(const std::int64_t count, label_count(at.fields));
  if (count == 1) {
    return at.fields.refused(
        "has one label (num_labels, id2label), which is regression; trained "
        "is a choice of two or more");
  }
  at.keys.put("classes", count);
  return read_dropout(at, "classifier_dropout", dropout, "classifier_dropout");
}

// The arithmetic that is trained: an encoder's, with a table of positions and gelu by erf.
Status check_bert(ConfigFields& fields) {
  RETURN_IF_ERROR(fields.only("is_decoder", false));
  RETURN_IF_ERROR(fields.only("add_cross_attention", false));
  RETURN_IF_ERROR(fields.only("position_embedding_type", "absolute"));
  RETURN_IF_ERROR(fields.only("hidden_act", "gelu"));
  return fields.only("tie_word_embeddings", true);
}

}  // namespace

Status read_bert(Reading& at) {
  ASSIGN_OR_RETURN(const bool is_classifier, is_bert_classifier(at.fields));
  RETURN_IF_ERROR(check_bert(at.fields));
  at.keys.put("family", "bert");
  RETURN_IF_ERROR(read_usual_sizes(at));
  ASSIGN_OR_RETURN(const std::int64_t segments, at.fields.whole_or("type_vocab_size", 2));
  ASSIGN_OR_RETURN(const double eps, at.fields.real_or("layer_norm_eps", 1e-12));
  at.keys.put("segments", segments);
  at.keys.put("norm_eps", eps);
  at.keys.set("masked_head", !is_classifier);
  RETURN_IF_ERROR(read_dropout(at, "hidden_dropout_prob", kUsualDropout, "dropout"));
  RETURN_IF_ERROR(
      read_dropout(at, "attention_probs_dropout_prob", kUsualDropout, "attention_dropout"));
  ASSIGN_OR_RETURN(const double dropout, at.fields.real_or("hidden_dropout_prob", kUsualDropout));
  if (is_classifier) return read_bert_classifier(at, dropout);
  at.fields.pass_over("classifier_dropout");  // of another head
  return ok_status();
}

}  // namespace sluice::weights::detail
