#include "core/train/training_recipe.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "base/fnv.h"
#include "core/train/base_weights.h"
#include "core/train/ranks.h"

namespace sluice::train {
namespace {

using settings::Decides;

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

// In a token file's value, before its format.
constexpr const char* kTokensOf = ", tokens of ";

session::Recipe facts_of(const data::TextFacts& text) {
  std::string value = fmt::format("{} bytes, checksum {:016x}", text.size_bytes, text.checksum);
  if (!text.tokens_of.empty()) value += kTokensOf + text.tokens_of;
  return {{"text", std::move(value), Decides::origin}};
}

session::Recipe facts_of(const model::ModelShape& shape) {
  session::Recipe facts;
  for (auto& [key, value] : model::file_values(shape)) {
    facts.push_back({"model." + key, std::move(value), Decides::origin});
  }
  return facts;
}

// The bytes of the text that a value speaks of.
std::int64_t bytes_in(const std::string& value) {
  std::int64_t size_bytes = 0;
  std::from_chars(value.data(), value.data() + value.size(), size_bytes);
  return size_bytes;
}

// How another text differs from the one that the state has learnt so far.
std::string text_difference(const std::string& was, const std::string& is,
                            const std::string& path) {
  const std::int64_t was_bytes = bytes_in(was);
  const auto has_tokens = [](const std::string& value) {
    return value.find(kTokensOf) != std::string::npos;
  };
  if (has_tokens(was) != has_tokens(is)) {
    return "one has bytes, the other one tokens (text_format says how a file is read)";
  }
  if (bytes_in(is) <= was_bytes) return "it is another text";
  const auto begin = data::look_at_begin(path, was_bytes);
  const bool has_grown =
      begin.ok() && was.ends_with(fmt::format("checksum {:016x}", begin->checksum));
  if (!has_grown) return "it is another text";
  return fmt::format(
      "something was appended to it (head -c {} {} gives what it was): the order of all of "
      "the text would change",
      was_bytes, path);
}

// Lengths before texts: a prompt may hold anything.
std::string text_of(const session::Recipe& recipe) {
  std::string text;
  for (const session::Fact& fact : recipe) {
    for (const std::string& part : {fact.key, fact.value}) {
      text += fmt::format("{}:", part.size()) + part;
    }
  }
  return text;
}

// The facts that another rank has sent, which may be another program.
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

session::Recipe recipe_of(const settings::RunConfig& config, const model::ModelShape& shape,
                          const data::TextFacts& text) {
  session::Recipe recipe =
      session::recipe_of_settings(spelled_out(config), [&](const std::string& key) {
        if (key == "text") return facts_of(text);
        CHECK(key ==
              "model");  // another file that decides something has nothing here that reads it
        return facts_of(shape);
      });
  recipe.push_back({"ranks", fmt::format("{}", config.batch.rank_count), Decides::numbers});
  recipe.push_back({"program", "sluice " SLUICE_VERSION, Decides::numbers});
  return recipe;
}

Status check_origin(const session::RecipeHistory& history, const session::Recipe& recipe,
                    const std::string& directory, const settings::RunFiles& files) {
  const std::optional<settings::KnobChange> other = history.other_origin(recipe);
  if (!other) return ok_status();
  if (other->knob == "text") {
    return make_error(ErrorCode::config,
                      "{} was begun with a text of {}, and {} has {}: {}; resume with the text "
                      "that it was begun with, or begin another run with --set output=",
                      directory, other->from, files.text, other->to,
                      text_difference(other->from, other->to, files.text));
  }
  if (other->knob == kBaseFact) {
    return make_error(ErrorCode::config,
                      "{} has adapters of other base weights than those of model={}: it was begun "
                      "with {}, and these are {}; set model= to the folder that it was begun with",
                      directory, files.model, other->from, other->to);
  }
  return session::other_origin_error(
      directory, *other, other->knob == "seed" ? ": the order of the text would change" : "");
}

// Thousands of ranks that are alike exchange a few bytes each.
Status check_same_on_ranks(Ranks& ranks, const session::Recipe& recipe) {
  const std::string text = text_of(recipe);
  const std::string digest = fmt::format("{:016x}", fnv1a(text));
  ASSIGN_OR_RETURN(const std::vector<std::string> digests,
                   ranks.gather_text(digest, "digest of the settings"));
  if (std::ranges::count(digests, digest) == std::ssize(digests)) return ok_status();
  ASSIGN_OR_RETURN(const std::vector<std::string> texts, ranks.gather_text(text, "settings"));
  return first_difference(texts);
}

}  // namespace sluice::train
