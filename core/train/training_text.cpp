#include "core/train/training_text.h"

#include <filesystem>

#include "core/data/token_file.h"

namespace sluice::train {
namespace {

data::SamplerOptions sampler_options(const settings::RunConfig& config) {
  data::SamplerOptions options;
  options.batch = config.batch.batch;
  options.sequence = config.batch.sequence;
  options.validation_fraction = config.validation.fraction;
  options.seed = static_cast<std::uint64_t>(config.schedule.seed);
  return options;
}

Status check_vocabulary(const model::ModelShape& shape) {
  constexpr std::int64_t kByteValues = 256;
  if (shape.vocabulary >= kByteValues) return ok_status();
  return make_error(ErrorCode::config,
                    "model {} knows {} different tokens; a text has {}, one a byte value",
                    shape.name, shape.vocabulary, kByteValues);
}

}  // namespace

TrainingText::TrainingText() = default;
TrainingText::TrainingText(TrainingText&&) noexcept = default;
TrainingText& TrainingText::operator=(TrainingText&&) noexcept = default;
TrainingText::~TrainingText() = default;

Result<TrainingText> TrainingText::look_at(const settings::RunConfig& config,
                                           const model::ModelShape& shape) {
  RETURN_IF_ERROR(check_vocabulary(shape));
  const std::string& path = config.files.text;
  std::error_code error;
  const auto size_bytes = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  if (error) {
    const std::string how = data::how_to_get_text(path);
    return make_error(ErrorCode::not_found, "{}: cannot read the text: {}{}{}", path,
                      error.message(), how.empty() ? "" : "; ", how);
  }
  RETURN_IF_ERROR(data::Sampler::check(size_bytes, sampler_options(config), path));
  TrainingText text;
  ASSIGN_OR_RETURN(text.facts_, data::look_at_text(path));
  return text;
}

Status TrainingText::open(const settings::RunConfig& config, const std::string& folder,
                          const Stops& stops) {
  const std::string path = (std::filesystem::path(folder) / "text.tokens").string();
  RETURN_IF_ERROR(data::prepare_byte_tokens(config.files.text, facts_, path, stops));
  ASSIGN_OR_RETURN(data::TokenFile tokens, data::TokenFile::open(path));
  tokens_ = std::make_unique<data::TokenFile>(std::move(tokens));
  ASSIGN_OR_RETURN(data::Sampler sampler,
                   data::Sampler::make(tokens_.get(), sampler_options(config)));
  sampler_ = std::move(sampler);
  return ok_status();
}

}  // namespace sluice::train
