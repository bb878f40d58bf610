#pragma once
// The text that a run learns: its bytes are its tokens, or it is a token file (docs/tokens.md).
//
// Thread contract: the schedule's thread.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/stops.h"
#include "core/data/sampler.h"
#include "core/data/text_facts.h"
#include "core/model/model_factory.h"
#include "core/session/start_from.h"
#include "core/settings/run_config.h"

namespace sluice::data {
enum class TokenFormat : std::uint8_t;
class TokenVocabulary;
}  // namespace sluice::data

namespace sluice::train {

class TrainingText {
 public:
  TrainingText();
  TrainingText(TrainingText&&) noexcept;
  TrainingText& operator=(TrainingText&&) noexcept;
  ~TrainingText();

  // Reads the text, and refuses what a run with these settings cannot learn from it. A token file
  // is read from end to end where a new state begins; a resume looks at its spots. Where `stops`
  // says so: ErrorCode::cancelled.
  static Result<TrainingText> look_at(const settings::RunConfig& config,
                                      const model::ModelShape& shape, session::StartFrom start,
                                      const Stops& stops);
  // Makes the tokens of a text, `folder`/text.tokens, or finds them; a token file is there. All
  // ranks have the same: each looks for them and makes them, since a folder may be one machine's;
  // the last one replaces a file by its equal.
  Status open(const settings::RunConfig& config, const std::string& folder, const Stops& stops);

  const data::TextFacts& facts() const { return facts_; }
  // After open().
  data::Sampler& sampler() { return *sampler_; }

  // Why the model can write no text, as a clause; empty: it can.
  const std::string& why_no_sample() const { return why_no_sample_; }
  // Valid as long as this.
  model::SampleOptions sample_options(const settings::RunConfig& config) const;

 private:
  Status look_at_bytes(const settings::RunConfig& config, const model::ModelShape& shape,
                       std::int64_t size_bytes);
  Status look_at_tokens(const settings::RunConfig& config, const model::ModelShape& shape,
                        data::TokenFormat format, session::StartFrom start, const Stops& stops);
  Status look_at_vocabulary(const settings::RunConfig& config, const model::ModelShape& shape);

  data::TextFacts facts_;
  data::SamplerOptions sampler_options_;
  std::unique_ptr<data::TokenFile> tokens_;  // the sampler refers to it
  std::optional<data::Sampler> sampler_;
  std::unique_ptr<data::TokenVocabulary> vocabulary_;  // null: a token is a byte, or has no text
  std::int64_t written_tokens_ = 0;                    // that have a text, from 0 on
  std::vector<std::int32_t> prompt_tokens_;
  std::string why_no_sample_;
};

}  // namespace sluice::train
