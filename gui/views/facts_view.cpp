#include "gui/views/facts_view.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/words.h"
#include "gui/data/opening.h"
#include "gui/data/run_notes.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"
#include "profiler/analyze/answers.h"
#include "profiler/analyze/fact_keys.h"

namespace sluice::gui {
namespace {

void draw_row(const char* key, const std::string& value) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  draw_coloured(look().colours.dim, key, false);
  ImGui::TableNextColumn();
  ImGui::PushTextWrapPos(0);
  ImGui::TextUnformatted(value.c_str());
  ImGui::PopTextWrapPos();
}

// A count as the record has it, "3257856"; any other text stays as it is.
std::string grouped_digits(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_count = error == std::errc() && end == text.data() + text.size();
  return is_count ? grouped_text(value) : text;
}

bool begin_pairs(const char* id) {
  if (!ImGui::BeginTable(id, 2, ImGuiTableFlags_RowBg)) return false;
  ImGui::TableSetupColumn("key", ImGuiTableColumnFlags_WidthFixed, px(190));
  ImGui::TableSetupColumn("value", ImGuiTableColumnFlags_WidthStretch);
  return true;
}

void draw_losses(const RunPieces& pieces) {
  const RunFacts& facts = pieces.facts();
  const analyze::Answer losses = pieces.losses();
  if (losses.outcome == analyze::Outcome::nothing_found) {
    draw_title("Losses");
    draw_empty(analyze::losses_sentence(losses));
  } else {
    draw_title("Losses");
    draw_coloured(look().colours.amber, analyze::losses_sentence(losses));
    for (const rundb::StatRow& loss : facts.losses) {
      draw_coloured(look().colours.amber, loss.name + ": " + grouped_text(loss.value));
      draw_empty(loss.description);
    }
  }
  ImGui::Dummy({0, px(6)});
}

void draw_facts(const RunPieces& pieces) {
  const RunFacts& facts = pieces.facts();
  draw_title("Run");
  if (begin_pairs("##facts")) {
    const std::string mode = facts.info.mode.line();
    draw_row("Mode", mode.empty() ? "not in the record" : mode);
    draw_row("Steps recorded", grouped_text(static_cast<std::int64_t>(pieces.steps().size())));
    for (const auto& [key, title] : analyze::kFactKeys) {
      const std::string value = facts.info.meta_value(key);
      if (!value.empty()) draw_row(title, key == "parameters" ? grouped_digits(value) : value);
    }
    for (const ChangeMark& change : facts.changes) {
      draw_row(("From step " + step_text(change.step)).c_str(),
               change.text +
                   (change.who == "settings" ? ", as planned" : ", asked for by " + change.who));
    }
    if (pieces.ranks == nullptr) {
      draw_row("Database", pieces.feed->path());
    } else {
      draw_row("Databases",
               fmt::format("{}\nread at {} UTC", fmt::join(pieces.ranks->databases, "\n"),
                           pieces.ranks->read_at));
    }
    ImGui::EndTable();
  }
  ImGui::Dummy({0, px(6)});
}

void draw_settings(const RunFacts& facts) {
  draw_title("Settings", "docs/settings.md");
  if (facts.info.meta.empty()) draw_empty("The database holds no settings.");
  if (!begin_pairs("##settings")) return;
  for (const rundb::MetaRow& row : facts.info.meta) {
    const bool is_fact =
        std::ranges::any_of(analyze::kFactKeys, [&](const auto& f) { return f.first == row.key; });
    if (is_fact || std::ranges::find(analyze::kNotSettings, row.key) != analyze::kNotSettings.end())
      continue;
    draw_row(row.key.c_str(), row.value);
  }
  ImGui::EndTable();
  ImGui::Dummy({0, px(6)});
}

void draw_stats(const RunFacts& facts) {
  draw_title("What the recording says about itself");
  if (facts.stats.empty()) draw_empty("It kept no counts.");
  if (!begin_pairs("##stats")) return;
  for (const rundb::StatRow& stat : facts.stats)
    draw_row(stat.name.c_str(), grouped_text(stat.value) + ": " + stat.description);
  ImGui::EndTable();
}

}  // namespace

FactsView::FactsView(const RunPieces& pieces, TimelineState& timeline,
                     const std::unique_ptr<RunNotes>& notes, Foreground& foreground)
    : View(words::kRunInfo),
      pieces_(pieces),
      timeline_(timeline),
      notes_(notes),
      foreground_(foreground) {}
const char* FactsView::help() const { return "What was lost, the machine, the settings"; }

// A click goes there; they are changed at their flags on the timeline.
void FactsView::draw_notes() {
  if (notes_ == nullptr || (notes_->all().empty() && notes_->problem().empty())) return;
  draw_title("Notes", "beside the run");
  if (!notes_->problem().empty()) draw_coloured(look().colours.red, notes_->problem());
  int index = 0;
  for (const RunNote& note : notes_->all()) {
    ImGui::PushID(index++);
    const std::string text = time_text(note.ts - pieces_.run->begin_ts) + "  " + note.text;
    if (draw_link("note", text, look().colours.accent)) {
      timeline_.view.show_span(note.ts, 0);
      if (note.span_id != 0) timeline_.go_to(note.span_id);
      foreground_.bring("Timeline");
    }
    ImGui::PopID();
  }
  ImGui::Dummy({0, px(6)});
}

void FactsView::draw_content() {
  draw_losses(pieces_);
  draw_notes();
  draw_facts(pieces_);
  draw_settings(pieces_.facts());
  draw_stats(pieces_.facts());
}

}  // namespace sluice::gui
