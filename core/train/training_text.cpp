#include "core/train/training_text.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/log.h"
#include "core/data/token_file.h"
#include "core/data/token_vocabulary.h"
#include "core/model/span_lengths.h"
#include "core/plan/model_options.h"

namespace sluice::train {
namespace {

constexpr std::int64_t kByteValues = 256;

data::SamplerOptions sampler_options(const settings::RunConfig& config,
                                     const model::ModelShape& shape) {
  data::SamplerOptions options;
  options.classes = shape.classifies() ? shape.classes : 0;
  if (shape.has_decoder()) {
    options.spans = {.rule = shape.stacks.spans,
                     .first_sentinel = static_cast<std::int32_t>(config.objective.sentinel_token),
                     .end = static_cast<std::int32_t>(shape.end_token()),
                     .start = static_cast<std::int32_t>(shape.stacks.start_token)};
  } else if (!shape.is_causal() && !shape.classifies()) {
    options.hidden = {.mask = static_cast<std::int32_t>(config.objective.mask_token),
                      .vocabulary = shape.vocabulary,
                      .share = config.objective.mask_share};
  }
  options.batch = config.batch.batch;
  options.sequence = config.batch.sequence;
  options.validation_fraction = config.validation.fraction;
  options.documents = config.objective.documents;
  options.seed = static_cast<std::uint64_t>(config.schedule.seed);
  return options;
}

// Every window has as many spans, and the lowest sentinel is a token of the vocabulary, too.
Status check_sentinels(const settings::RunConfig& config, const model::ModelShape& shape) {
  const std::int64_t sentinel = config.objective.sentinel_token;
  const std::int64_t spans = model::span_lengths(shape.stacks.spans, config.batch.sequence).spans;
  if (sentinel >= spans - 1 && sentinel < shape.vocabulary) return ok_status();
  return make_error(
      ErrorCode::config,
      "sentinel_token = {}: model {} has a decoder, which learns to answer spans that are taken "
      "out "
      "of a text, here {} of each: set sentinel_token to the first of as many tokens, counting "
      "down, that stand in their places, below its vocabulary of {}; in T5's own vocabularies it "
      "is 32099, and with the bytes of a text the last one",
      sentinel, shape.name, spans, shape.vocabulary);
}

Status check_unused(const char* key, std::int64_t token, const model::ModelShape& shape,
                    const char* why) {
  if (token < 0) return ok_status();
  return make_error(ErrorCode::config, "{} = {}: model {} {}; leave {} out", key, token, shape.name,
                    why, key);
}

Status check_together(const settings::RunConfig& config, const model::ModelShape& shape,
                      const char* which) {
  if (config.objective.documents == model::Documents::together) return ok_status();
  return make_error(ErrorCode::config,
                    "documents = apart: a model {}, as {}, has documents together; leave documents "
                    "out",
                    which, shape.name);
}

Status check_objective(const settings::RunConfig& config, const model::ModelShape& shape) {
  const std::int64_t mask = config.objective.mask_token;
  if (shape.has_decoder()) {
    RETURN_IF_ERROR(check_unused("mask_token", mask, shape, "answers spans that are taken out"));
    RETURN_IF_ERROR(check_together(config, shape, "with a decoder"));
    return check_sentinels(config, shape);
  }
  RETURN_IF_ERROR(check_unused("sentinel_token", config.objective.sentinel_token, shape,
                               "has no decoder, and no span is taken out"));
  if (shape.classifies()) {
    RETURN_IF_ERROR(check_unused("mask_token", mask, shape, "answers classes of records"));
    return check_together(config, shape, "that classifies records");
  }
  if (shape.is_causal()) {
    return check_unused("mask_token", mask, shape,
                        "answers the next token, and none is hidden from it");
  }
  if (mask >= 0 && mask < shape.vocabulary) return ok_status();
  return make_error(
      ErrorCode::config,
      "model {} looks both ways, so it learns to answer tokens that are hidden from it: set "
      "mask_token to the one that stands in their place, below its vocabulary of {}; in BERT's own "
      "vocabularies it is 103, and with the bytes of a text any above 255",
      shape.name, shape.vocabulary);
}

Status check_documents(const settings::RunConfig& config, bool has_marks) {
  if (has_marks || config.objective.documents == model::Documents::together) return ok_status();
  return make_error(ErrorCode::config,
                    "{}: documents = apart needs a token file that says where documents begin, and "
                    "this one does not; make it with scripts/tokenize --marks, or leave documents "
                    "at together",
                    config.files.text);
}

Status check_vocabulary(const model::ModelShape& shape) {
  if (shape.vocabulary >= kByteValues) return ok_status();
  return make_error(ErrorCode::config,
                    "model {} knows {} different tokens; a text has {}, one a byte value",
                    shape.name, shape.vocabulary, kByteValues);
}

// A byte of the text that is a sentinel, too, would answer for it.
Status check_sentinels_of_bytes(const settings::RunConfig& config, const model::ModelShape& shape) {
  if (!shape.has_decoder()) return ok_status();
  const std::int64_t spans = model::span_lengths(shape.stacks.spans, config.batch.sequence).spans;
  const std::int64_t lowest = config.objective.sentinel_token - (spans - 1);
  if (lowest >= kByteValues) return ok_status();
  return make_error(ErrorCode::config,
                    "sentinel_token = {}: the {} sentinels of a text go down to {}, and the bytes "
                    "of a text are the tokens below {}; set it to {} or more",
                    config.objective.sentinel_token, spans, lowest, kByteValues,
                    kByteValues + spans - 1);
}

// None: a text.
Result<std::optional<data::TokenFormat>> format_of(const settings::RunFiles& files) {
  using settings::TextFormat;
  switch (files.text_format) {
    case TextFormat::automatic:
      return data::recognised_format(files.text);
    case TextFormat::sluice:
      return std::optional(data::TokenFormat::sluice);
    case TextFormat::llm_c:
      return std::optional(data::TokenFormat::llm_c);
    case TextFormat::nanogpt:
      return std::optional(data::TokenFormat::nanogpt);
    case TextFormat::bytes:
      break;
  }
  return std::optional<data::TokenFormat>();
}

// A check that somebody has waited for says so, once.
void tell_of_check(const data::TokenFile& tokens, std::chrono::steady_clock::time_point began,
                   const settings::RunConfig& config) {
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  if (took.count() < 2 || config.shards.rank != 0) return;
  log_info(fmt::format("{}: {} tokens looked at in {:.1f} s; a resume looks at some of them",
                       tokens.path(), tokens.token_count(), took.count()));
}

}  // namespace

TrainingText::TrainingText() = default;
TrainingText::TrainingText(TrainingText&&) noexcept = default;
TrainingText& TrainingText::operator=(TrainingText&&) noexcept = default;
TrainingText::~TrainingText() = default;

Result<TrainingText> TrainingText::look_at(const settings::RunConfig& config,
                                           const model::ModelShape& shape, session::StartFrom start,
                                           const Stops& stops) {
  const std::string& path = config.files.text;
  std::error_code error;
  const auto size_bytes = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  if (error) {
    const std::string how = data::how_to_get_text(path);
    return make_error(ErrorCode::not_found, "{}: cannot read the text: {}{}{}", path,
                      error.message(), how.empty() ? "" : "; ", how);
  }
  ASSIGN_OR_RETURN(const std::optional<data::TokenFormat> format, format_of(config.files));
  RETURN_IF_ERROR(check_objective(config, shape));
  TrainingText text;
  text.sampler_options_ = sampler_options(config, shape);
  RETURN_IF_ERROR(format ? text.look_at_tokens(config, shape, *format, start, stops)
                         : text.look_at_bytes(config, shape, size_bytes));
  if (!shape.is_causal()) {
    text.why_no_sample_ = fmt::format("it answers {} and writes no next one",
                                      shape.classifies()    ? "classes of records"
                                      : shape.has_decoder() ? "spans of a text"
                                                            : "hidden tokens");
  }
  return text;
}

Status TrainingText::look_at_bytes(const settings::RunConfig& config,
                                   const model::ModelShape& shape, std::int64_t size_bytes) {
  if (shape.classifies())
    return data::Sampler::check(size_bytes, sampler_options_, config.files.text);
  RETURN_IF_ERROR(check_documents(config, /*has_marks=*/false));
  RETURN_IF_ERROR(check_vocabulary(shape));
  RETURN_IF_ERROR(check_sentinels_of_bytes(config, shape));
  RETURN_IF_ERROR(data::Sampler::check(size_bytes, sampler_options_, config.files.text));
  ASSIGN_OR_RETURN(facts_, data::look_at_text(config.files.text));
  if (shape.vocabulary != kByteValues) {
    why_no_sample_ = fmt::format("model {} knows {} tokens, and a byte is one of {}", shape.name,
                                 shape.vocabulary, kByteValues);
  }
  return ok_status();
}

Status TrainingText::look_at_tokens(const settings::RunConfig& config,
                                    const model::ModelShape& shape, data::TokenFormat format,
                                    session::StartFrom start, const Stops& stops) {
  const bool is_new = start == session::StartFrom::new_state;
  const auto began = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(
      data::TokenFile tokens,
      data::TokenFile::open(config.files.text,
                            {.format = format,
                             .check = is_new ? data::TokenCheck::whole : data::TokenCheck::spots,
                             .model_vocabulary = shape.vocabulary},
                            stops));
  tell_of_check(tokens, began, config);
  RETURN_IF_ERROR(check_documents(config, tokens.has_marks()));
  RETURN_IF_ERROR(data::Sampler::check(tokens, sampler_options_));
  facts_ = tokens.facts();
  tokens_ = std::make_unique<data::TokenFile>(std::move(tokens));
  return look_at_vocabulary(config, shape);
}

// Before the first step: what is wrong with it should not be said behind the last one.
Status TrainingText::look_at_vocabulary(const settings::RunConfig& config,
                                        const model::ModelShape& shape) {
  if (config.sample.tokens == 0) return ok_status();
  const std::string& path = config.files.text;
  ASSIGN_OR_RETURN(std::optional<data::TokenVocabulary> vocabulary,
                   data::TokenVocabulary::load_beside(path));
  if (!vocabulary) {
    why_no_sample_ = fmt::format("{} has tokens, and there is no {} that says their bytes", path,
                                 data::TokenVocabulary::path_beside(path));
    return ok_status();
  }
  written_tokens_ = std::min(vocabulary->token_count(), shape.vocabulary);
  ASSIGN_OR_RETURN(prompt_tokens_, vocabulary->tokens_of(config.sample.prompt, written_tokens_));
  vocabulary_ = std::make_unique<data::TokenVocabulary>(*std::move(vocabulary));
  return ok_status();
}

Status TrainingText::open(const settings::RunConfig& config, const std::string& folder,
                          const Stops& stops) {
  if (tokens_ == nullptr) {
    const std::string path = (std::filesystem::path(folder) / "text.tokens").string();
    RETURN_IF_ERROR(data::prepare_byte_tokens(config.files.text, facts_, path, stops));
    ASSIGN_OR_RETURN(data::TokenFile tokens, data::TokenFile::open(path));
    tokens_ = std::make_unique<data::TokenFile>(std::move(tokens));
  }
  ASSIGN_OR_RETURN(data::Sampler sampler, data::Sampler::make(tokens_.get(), sampler_options_));
  sampler_ = std::move(sampler);
  return ok_status();
}

model::SampleOptions TrainingText::sample_options(const settings::RunConfig& config) const {
  model::SampleOptions options = plan::sample_options(config);
  if (vocabulary_ == nullptr) return options;
  options.prompt_tokens = prompt_tokens_;
  options.written_tokens = written_tokens_;
  options.text_of = [this](std::int32_t token) { return vocabulary_->text_of(token); };
  return options;
}

}  // namespace sluice::train
