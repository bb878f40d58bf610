#pragma once
// The facts of a span, in words: for the pane that shows it, and as text to be copied.
//
// Thread contract: the frame thread; what is returned is plain data.

#include <optional>
#include <string>
#include <vector>

#include "gui/views/run_pieces.h"

namespace sluice::gui {

struct DetailLine {
  std::string label;
  std::string text;
};

// A span that set the chosen one off, or that it set off.
struct DetailLink {
  rundb::SpanRow row;
  std::string text;
};

struct SpanDetails {
  std::int64_t span_id = 0;
  std::string name;
  std::optional<std::uint32_t> colour;  // of its stage
  bool is_failed = false;
  std::vector<DetailLine> lines;
  std::vector<DetailLink> causes;
  std::vector<DetailLink> effects;
};

SpanDetails details_of(const RunPieces& pieces, const ChosenSpan& chosen);

// One line each, in plain characters: for an issue or a message.
std::string details_text(const SpanDetails& details);

// For the SQL console: the span and what set it off.
std::string details_question(std::int64_t span_id);

// "longer than 93 % of 1 204 state_read"; at either end "the longest of 1 204 state_read".
std::string rank_words(const SpanRank& rank, const std::string& name);

// The step in whose time, as the ruler shows it, this lies; null: in none. Updates run while the
// next step computes, so it may be the step after the one that a span is work of.
const rundb::StepRow* step_at(const std::vector<rundb::StepRow>& steps, TimeNs ts);

}  // namespace sluice::gui
