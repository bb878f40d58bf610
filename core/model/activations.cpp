#include "core/model/activations.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/nearest.h"

namespace sluice::model {
namespace {

constexpr std::array<const char*, 4> kWords = {"keep", "recompute", "offload", "offload_inputs"};

const char* word_of(Activations choice) { return kWords[static_cast<std::size_t>(choice)]; }

Result<Activations> choice_of(std::string_view word) {
  for (std::size_t i = 0; i < kWords.size(); ++i) {
    if (word == kWords[i]) return static_cast<Activations>(i);
  }
  const std::vector<std::string> known(kWords.begin(), kWords.end());
  return make_error(ErrorCode::config, "\"{}\" is not one of {}{}", word, fmt::join(known, ", "),
                    did_you_mean(word, known));
}

std::optional<std::int32_t> layer_number(std::string_view text) {
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

Result<LayerActivations::Range> LayerActivations::parse_range(std::string_view word,
                                                              std::string_view layers) {
  ASSIGN_OR_RETURN(const Activations choice, choice_of(word));
  const std::size_t dash = layers.find('-');
  const auto first = layer_number(layers.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : layer_number(layers.substr(dash + 1));
  if (first && last && *first <= *last) return Range{choice, *first, *last};
  return make_error(ErrorCode::config,
                    "\"{}\" is neither a layer nor a range of layers, such as 3 or 1-3", layers);
}

Status LayerActivations::add(const Range& range) {
  for (const Range& other : ranges_) {
    const std::int32_t both = std::max(range.first, other.first);
    if (both > std::min(range.last, other.last)) continue;
    return make_error(ErrorCode::config, "layer {} is named twice, for {} and for {}", both,
                      word_of(other.choice), word_of(range.choice));
  }
  ranges_.push_back(range);
  return ok_status();
}

Result<LayerActivations> LayerActivations::parse(std::string_view text) {
  LayerActivations parsed;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view entry = trimmed(text.substr(0, comma));
    const std::size_t colon = entry.find(':');
    if (colon != std::string_view::npos) {
      ASSIGN_OR_RETURN(const Range range,
                       parse_range(entry.substr(0, colon), entry.substr(colon + 1)));
      RETURN_IF_ERROR(parsed.add(range));
    } else if (comma == std::string_view::npos) {
      ASSIGN_OR_RETURN(parsed.others_, choice_of(entry));
    } else {
      return make_error(ErrorCode::config,
                        "\"{}\" names no layers and is not the last: a word for all other layers "
                        "comes last",
                        entry);
    }
    if (comma == std::string_view::npos) return parsed;
    text.remove_prefix(comma + 1);
  }
}

std::string LayerActivations::text() const {
  std::string text;
  for (const Range& range : ranges_) {
    text += fmt::format("{}:{}", word_of(range.choice), range.first);
    if (range.last > range.first) text += fmt::format("-{}", range.last);
    text += ",";
  }
  return text + word_of(others_);
}

Activations LayerActivations::of(LayerId layer) const {
  for (const Range& range : ranges_) {
    if (index_of(layer) >= range.first && index_of(layer) <= range.last) return range.choice;
  }
  return others_;
}

Status LayerActivations::check(std::int32_t layer_count) const {
  for (const Range& range : ranges_) {
    if (range.last < layer_count) continue;
    return make_error(ErrorCode::config,
                      "activations: there is no layer {}; the model's layers are 0 (the embedding) "
                      "to {} (the head)",
                      range.last, layer_count - 1);
  }
  return ok_status();
}

}  // namespace sluice::model
