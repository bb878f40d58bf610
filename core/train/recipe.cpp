#include "core/train/recipe.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "base/fnv.h"

namespace sluice::train {
namespace {

using settings::Decides;
using settings::SettingType;

// Settings that stand for others, or for more than what is learnt with, as what they come to.
settings::RunConfig spelled_out(const settings::RunConfig& config) {
  settings::RunConfig spelled = config;
  settings::ScheduleConfig& schedule = spelled.schedule;
  if (schedule.schedule_steps == 0) schedule.schedule_steps = schedule.steps;
  // Which of several GPUs it is, and how a software device is to behave, decide nothing.
  std::string& device = spelled.resources.device;
  device = device.substr(0, device.find(':'));
  return spelled;
}

void add_text(const data::TextFacts& text, Recipe& recipe) {
  recipe.push_back({"text",
                    fmt::format("{} bytes, checksum {:016x}", text.size_bytes, text.checksum),
                    Decides::origin});
}

void add_model(const model::ModelShape& shape, Recipe& recipe) {
  for (auto& [key, value] : model::file_values(shape)) {
    recipe.push_back({"model." + key, std::move(value), Decides::origin});
  }
}

// A file stands for what is in it, wherever it lies.
void add_file(const std::string& key, const model::ModelShape& shape, const data::TextFacts& text,
              Recipe& recipe) {
  if (key == "text") return add_text(text, recipe);
  CHECK(key == "model");  // another file that decides something has nothing here that reads it
  add_model(shape, recipe);
}

// Lengths before texts: a prompt may hold anything.
std::string text_of(const Recipe& recipe) {
  std::string text;
  for (const Fact& fact : recipe) {
    for (const std::string& part : {fact.key, fact.value}) {
      text += fmt::format("{}:", part.size()) + part;
    }
  }
  return text;
}

// What another rank has sent, which may be another program.
std::vector<std::pair<std::string, std::string>> facts_in(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    std::size_t size = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), size);
    const auto digits = static_cast<std::size_t>(parsed.ptr - text.data());
    if (parsed.ec != std::errc() || digits >= text.size() || size > text.size() - digits - 1) break;
    parts.emplace_back(text.substr(digits + 1, size));
    text.remove_prefix(digits + 1 + size);
  }
  std::vector<std::pair<std::string, std::string>> facts;
  for (std::size_t p = 0; p + 1 < parts.size(); p += 2) facts.emplace_back(parts[p], parts[p + 1]);
  return facts;
}

std::string value_in(const std::vector<std::pair<std::string, std::string>>& facts,
                     const std::string& key) {
  for (const auto& [name, value] : facts) {
    if (name == key) return value;
  }
  return "(nothing)";
}

Error differ(const std::string& key, std::size_t rank, const std::string& of_rank,
             const std::string& of_first) {
  return make_error(ErrorCode::config,
                    "the ranks do not train the same: {} is {} on rank 0 and {} on rank {}; give "
                    "all of them the same settings, model and text",
                    key, of_first, of_rank, rank);
}

Status first_difference(const std::vector<std::string>& texts) {
  const auto first = facts_in(texts.front());
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    const auto of_rank = facts_in(texts[rank]);
    for (const auto& [key, value] : first) {
      const std::string other = value_in(of_rank, key);
      if (other != value) return differ(key, rank, other, value);
    }
    for (const auto& [key, value] : of_rank) {
      const std::string other = value_in(first, key);
      if (other != value) return differ(key, rank, value, other);
    }
  }
  return ok_status();
}

}  // namespace

Recipe recipe_of(const settings::RunConfig& config, const model::ModelShape& shape,
                 const data::TextFacts& text) {
  Recipe recipe;
  const settings::RunConfig spelled = spelled_out(config);
  for (const settings::SettingInfo& info : settings::settings()) {
    if (info.decides == Decides::own) continue;
    if (info.type == SettingType::path) {
      add_file(info.key, shape, text, recipe);
    } else {
      recipe.push_back({info.key, settings::value_of(spelled, info.key), info.decides});
    }
  }
  recipe.push_back({"ranks", fmt::format("{}", config.batch.rank_count), Decides::numbers});
  recipe.push_back({"program", "sluice " SLUICE_VERSION, Decides::numbers});
  return recipe;
}

// Thousands of ranks that are alike exchange a few bytes each.
Status check_same_on_ranks(Ranks& ranks, const Recipe& recipe) {
  const std::string text = text_of(recipe);
  const std::string digest = fmt::format("{:016x}", fnv1a(text));
  ASSIGN_OR_RETURN(const std::vector<std::string> digests,
                   ranks.gather_text(digest, "digest of the settings"));
  if (std::ranges::count(digests, digest) == std::ssize(digests)) return ok_status();
  ASSIGN_OR_RETURN(const std::vector<std::string> texts, ranks.gather_text(text, "settings"));
  return first_difference(texts);
}

}  // namespace sluice::train
