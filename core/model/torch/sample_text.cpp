#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mv.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/split_mix.h"
#include "core/model/torch/stack_model.h"
#include "core/model/torch/torch_border.h"

namespace sluice::model {
namespace {

// A token drawn from softmax(logits / temperature) by a number in (0, 1]; temperature 0 takes the
// most probable. In double and in order, so that a seed gives the same text on any thread count.
std::int64_t choose_token(std::span<const float> logits, double temperature, double random) {
  const auto largest = std::max_element(logits.begin(), logits.end());
  if (temperature == 0) return largest - logits.begin();
  std::vector<double> weights;
  double total = 0;
  for (const float logit : logits) {
    weights.push_back(std::exp((double{logit} - double{*largest}) / temperature));
    total += weights.back();
  }
  double rest = random * total;
  for (std::size_t token = 0; token < weights.size(); ++token) {
    rest -= weights[token];
    if (rest <= 0) return static_cast<std::int64_t>(token);
  }
  return largest - logits.begin();  // rounding left a little over
}

Status check_sampling(const SampleOptions& options, const ModelShape& shape) {
  if (!shape.is_causal()) {
    return make_error(ErrorCode::config,
                      "a text was asked of '{}', which {} and writes no next one", shape.name,
                      shape.classifies()    ? "answers classes"
                      : shape.has_decoder() ? "answers spans of a text"
                                            : "answers hidden tokens");
  }
  const auto is_there = [&](std::int64_t token) {
    return token >= 0 && token < options.written_tokens;
  };
  if (options.written_tokens < 1 || options.written_tokens > shape.vocabulary ||
      !std::ranges::all_of(options.prompt_tokens, is_there)) {
    return make_error(ErrorCode::config,
                      "a text of the first {} tokens was asked of '{}', which has a vocabulary of "
                      "{}; the tokens and the model do not belong together",
                      options.written_tokens, shape.name, shape.vocabulary);
  }
  if (options.token_count < 0 || !(options.temperature >= 0)) {
    return make_error(ErrorCode::config,
                      "{} tokens at temperature {} were asked for; neither may be negative",
                      options.token_count, options.temperature);
  }
  return ok_status();
}

}  // namespace

// Always a whole window: attention is causal, so what follows the context cannot reach its last
// token, and libtorch keeps the kernels of one shape only, not of every length up to the sequence.
class StackModel::Text final : public TextWriter {
 public:
  Text(StackModel& model, const SampleOptions& options)
      : model_(model), options_(options), text_(options.prompt) {
    if (options.text_of) {
      tokens_.assign(options.prompt_tokens.begin(), options.prompt_tokens.end());
      if (tokens_.empty()) tokens_.push_back(0);
      return;
    }
    // Without a prompt the text begins as a new line does.
    const std::string prompt = options.prompt.empty() ? "\n" : options.prompt;
    for (const char c : prompt) tokens_.push_back(static_cast<unsigned char>(c));
  }

  bool is_done() const override { return written_count_ == options_.token_count; }
  const std::string& text() const override { return text_; }
  std::int64_t written_count() const override { return written_count_; }

  Status forward(LayerId layer) override {
    return at_torch_border("sampling text", [&]() -> Status {
      RETURN_IF_ERROR(model_.threads_.start());
      const at::NoGradGuard no_grad;
      const WindowShape window{1, model_.options_.sequence};
      const LayerPlaces places = model_.places();
      if (places.is_embedding(layer)) {
        x_ = embed(layer, window);
      } else if (!places.is_output(layer)) {
        const Dropout nothing_dropped;
        x_ = model_.run_layer(layer, x_, model_.host_views_,
                              {model_.shape_, window, model_.host_views_.constants,
                               places.block_of(layer), nothing_dropped});
      }
      if (places.has_logits(layer)) add_logits(layer);
      if (layer == places.last()) add_token();
      return ok_status();
    });
  }

 private:
  // The context slides: positions beyond the trained sequence were never learned.
  std::size_t context_size() const {
    return std::min(tokens_.size(), static_cast<std::size_t>(model_.options_.sequence));
  }

  at::Tensor embed(LayerId layer, WindowShape window) const {
    const std::span<const std::int64_t> context = std::span(tokens_).last(context_size());
    std::vector<std::int64_t> padded(context.begin(), context.end());
    padded.resize(static_cast<std::size_t>(window.sequence));
    const at::Tensor tokens = at::from_blob(padded.data(), {window.sequence}, at::kLong);
    const FlatViews& views = model_.host_views_;
    if (model_.places().are_tables_cut())
      return look_up(model_.embedding_piece(layer, views), tokens, x_);
    return model_.architecture_.embed(tokens, views.embedding(), {window}, model_.shape_);
  }

  void add_logits(LayerId layer) {
    const auto last = static_cast<std::int64_t>(context_size()) - 1;
    logits_.push_back(
        at::mv(model_.output_table(model_.host_views_, layer), x_[last]).to(at::kFloat));
  }

  void add_token() {
    x_ = at::Tensor();
    const at::Tensor logits = at::cat(std::exchange(logits_, {}));
    const double random =
        unit_interval(split_mix(mix64(options_.seed), static_cast<std::uint64_t>(written_count_)));
    const std::span all(logits.const_data_ptr<float>(), static_cast<std::size_t>(logits.numel()));
    const std::int64_t token = choose_token(
        all.first(static_cast<std::size_t>(options_.written_tokens)), options_.temperature, random);
    tokens_.push_back(token);
    if (options_.text_of) {
      text_ += options_.text_of(static_cast<std::int32_t>(token));
    } else {
      text_.push_back(static_cast<char>(token));
    }
    written_count_ += 1;
  }

  StackModel& model_;
  SampleOptions options_;
  std::vector<std::int64_t> tokens_;
  std::string text_;
  std::int64_t written_count_ = 0;
  at::Tensor x_;                    // the last layer's output
  std::vector<at::Tensor> logits_;  // of the next token, by layers that make any
};

Result<std::unique_ptr<TextWriter>> StackModel::write_text(const SampleOptions& options) {
  RETURN_IF_ERROR(check_sampling(options, shape_));
  return std::unique_ptr<TextWriter>(std::make_unique<Text>(*this, options));
}

}  // namespace sluice::model
