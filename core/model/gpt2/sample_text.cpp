#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mv.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/split_mix.h"
#include "core/model/gpt2/gpt2_model.h"
#include "core/model/torch/torch_border.h"

namespace sluice::model {
namespace {

constexpr std::int64_t kByteVocabulary = 256;

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

Status check_options(const SampleOptions& options, const ModelShape& shape) {
  if (shape.vocabulary != kByteVocabulary) {
    return make_error(ErrorCode::unsupported,
                      "text can be sampled from models of bytes (vocabulary 256) only; '{}' has a "
                      "vocabulary of {}",
                      shape.name, shape.vocabulary);
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
at::Tensor Gpt2Model::next_token_logits(std::span<const std::int64_t> context) const {
  const WindowShape window{1, options_.sequence};
  std::vector<std::int64_t> tokens(context.begin(), context.end());
  tokens.resize(static_cast<std::size_t>(window.sequence));
  at::Tensor x = embedding_forward(at::from_blob(tokens.data(), {window.sequence}, at::kLong),
                                   host_views_, window);
  for (std::int32_t layer = 1; layer < layout_.layer_count(); ++layer) {
    x = run_layer(LayerId{layer}, x, window, host_views_);
  }
  const auto last = static_cast<std::int64_t>(context.size()) - 1;
  return at::mv(host_views_.token_table, x[last]).to(at::kFloat);
}

Result<std::string> Gpt2Model::sample_text(const SampleOptions& options) {
  RETURN_IF_ERROR(check_options(options, shape_));
  return at_torch_border("sampling text", [&]() -> Result<std::string> {
    threads_.apply();
    const at::NoGradGuard no_grad;
    // Without a prompt the text begins as a new line does.
    const std::string prompt = options.prompt.empty() ? "\n" : options.prompt;
    std::vector<std::int64_t> tokens;
    for (const char c : prompt) tokens.push_back(static_cast<unsigned char>(c));
    std::string text = options.prompt;
    for (std::int64_t i = 0; i < options.token_count; ++i) {
      // The context slides: positions beyond the trained sequence were never learned.
      const std::size_t seen = std::min(tokens.size(), static_cast<std::size_t>(options_.sequence));
      const at::Tensor logits = next_token_logits(std::span(tokens).last(seen));
      const double random =
          unit_interval(split_mix(mix64(options.seed), static_cast<std::uint64_t>(i)));
      tokens.push_back(choose_token({logits.const_data_ptr<float>(), kByteVocabulary},
                                    options.temperature, random));
      text.push_back(static_cast<char>(tokens.back()));
    }
    return text;
  });
}

}  // namespace sluice::model
