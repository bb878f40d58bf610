#pragma once
// The text that a run learns: its bytes are its tokens.
//
// Thread contract: the schedule's thread.

#include <memory>
#include <optional>
#include <string>

#include "base/stops.h"
#include "core/data/sampler.h"
#include "core/data/text_facts.h"
#include "core/model/model_shape.h"
#include "core/settings/run_config.h"

namespace sluice::train {

class TrainingText {
 public:
  TrainingText();
  TrainingText(TrainingText&&) noexcept;
  TrainingText& operator=(TrainingText&&) noexcept;
  ~TrainingText();

  // Reads the text, and refuses what a run with these settings cannot learn from it.
  static Result<TrainingText> look_at(const settings::RunConfig& config,
                                      const model::ModelShape& shape);
  // Makes the tokens, `folder`/text.tokens, or finds them. All ranks have the same: each looks for
  // them and makes them, since a folder may be one machine's; the last one replaces a file by its
  // equal.
  Status open(const settings::RunConfig& config, const std::string& folder, const Stops& stops);

  const data::TextFacts& facts() const { return facts_; }
  // After open().
  data::Sampler& sampler() { return *sampler_; }

 private:
  data::TextFacts facts_;
  std::unique_ptr<data::TokenFile> tokens_;  // the sampler refers to it
  std::optional<data::Sampler> sampler_;
};

}  // namespace sluice::train
