#include "gui/views/compare_view.h"

#include <fmt/format.h>

#include <cmath>

#include "base/words.h"
#include "gui/data/run_path.h"
#include "gui/views/looked.h"
#include "gui/views/run_colours.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"
#include "gui/widgets/text_input.h"
#include "profiler/analyze/comparison_words.h"

namespace sluice::gui {
namespace {

std::string value_text(const analyze::ComparedFigure& figure, double value) {
  if (figure.unit == "s") return time_text(static_cast<TimeNs>(value * 1e9));
  if (figure.unit == "B") return bytes_text(value);
  return figure.key == "loss" ? figure_text(value, 4) : count_text(value);
}

// Ten times as much and more is no percentage any more.
std::string change_text(double a, double b) {
  if (a == 0) return "";
  if (b / a < 10) return fmt::format("{:+.1f}\u2009%", (b / a - 1) * 100);
  return "x" + grouped_text(std::llround(b / a));
}

// Nothing is better or worse in runs that cannot be compared.
ImU32 change_colour(const analyze::ComparedFigure& figure, bool can_compare) {
  if (figure.a == figure.b || !figure.is_more_than_noise() || !can_compare)
    return look().colours.dim;
  return figure.is_better() ? look().colours.green : look().colours.amber;
}

std::string judgement(const analyze::ComparedFigure& figure) {
  if (figure.a == figure.b) return "the same";
  const double share = figure.noise_share();
  if (!figure.is_more_than_noise())
    return fmt::format("within the noise, \u00b1{:.1f} %", share * 100);
  return figure.noise > 0 ? fmt::format("noise \u00b1{:.1f} %", share * 100) : "exact";
}

// Figures end at the right, and so do the heads over them.
void draw_run_heads() {
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (int column = 0; column < ImGui::TableGetColumnCount(); ++column) {
    if (!ImGui::TableSetColumnIndex(column)) continue;
    if (column == 0) {
      ImGui::TextUnformatted(ImGui::TableGetColumnName(column));
    } else {
      draw_figure(ImGui::TableGetColumnName(column));
    }
  }
}

void begin_columns(const char* first, bool has_noise) {
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn(first, ImGuiTableColumnFlags_WidthStretch, 1.6F);
  ImGui::TableSetupColumn("A", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableSetupColumn("B", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableSetupColumn("B to A", ImGuiTableColumnFlags_WidthStretch, 0.8F);
  if (has_noise) ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthStretch, 1.5F);
  draw_run_heads();
}

void draw_cell(const std::string& text, ImU32 colour = 0) {
  ImGui::TableNextColumn();
  draw_figure(text, colour);
}

void draw_figures(const analyze::Comparison& comparison) {
  const ImGuiTableFlags flags = ImGuiTableFlags_RowBg;
  if (!ImGui::BeginTable("##figures", 5, flags)) return;
  begin_columns("medians a step", true);
  for (const analyze::ComparedFigure& figure : comparison.figures) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(figure.key.c_str());
    draw_cell(value_text(figure, figure.a));
    draw_cell(value_text(figure, figure.b));
    draw_cell(change_text(figure.a, figure.b),
              change_colour(figure, comparison.comparability.is_comparable()));
    ImGui::TableNextColumn();
    draw_coloured(look().colours.dim, judgement(figure), false);
  }
  ImGui::EndTable();
}

// Whether the runs can be compared, before any figure: open where they cannot.
void draw_comparability(const analyze::Comparability& comparability) {
  if (!comparability.is_comparable()) {
    ImGui::PushStyleColor(ImGuiCol_Text, look().colours.amber);
    const std::string words = analyze::incomparable_words(comparability) + "###incomparable";
    const bool is_open = ImGui::TreeNodeEx(words.c_str(), ImGuiTreeNodeFlags_DefaultOpen);
    ImGui::PopStyleColor();
    if (is_open) {
      for (const analyze::Mismatch& mismatch : comparability.mismatches) {
        draw_note(fmt::format("{}: {} \u2192 {}. {}", mismatch.what, mismatch.a, mismatch.b,
                              mismatch.meaning));
      }
      ImGui::TreePop();
    }
  }
  if (!comparability.same.empty())
    draw_empty(fmt::format("The same in both: {}.", analyze::listed(comparability.same)));
  if (!comparability.unknown.empty()) {
    draw_coloured(look().colours.amber,
                  fmt::format("Neither run says its {}, so whether that is the same is not known.",
                              analyze::listed(comparability.unknown)));
  }
  for (const std::string& caution : comparability.cautions)
    draw_coloured(look().colours.amber, caution);
}

void draw_verdict(const analyze::Comparison& comparison) {
  const analyze::ComparisonWords words = analyze::words_of(comparison, "\u00b1");
  ImGui::Dummy({0, px(2)});
  draw_coloured(look().colours.text, words.headline);
  if (!words.where.empty()) draw_note(words.where);
  ImGui::Dummy({0, px(2)});
}

void draw_causes(const std::vector<analyze::CausePair>& causes) {
  ImGui::Dummy({0, px(4)});
  if (causes.empty()) {
    draw_empty("One of the two recorded no operations: there are no causes to compare.");
    return;
  }
  if (!ImGui::BeginTable("##causes", 4, ImGuiTableFlags_RowBg)) return;
  begin_columns("of a step's time", false);
  for (const analyze::CausePair& pair : causes) {
    const std::string name(analyze::cause_label(pair.cause));
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    draw_dot(colour_of(pair.cause));
    ImGui::SameLine(0, px(6));
    ImGui::TextUnformatted(name.c_str());
    draw_cell(time_text(static_cast<TimeNs>(pair.a_ns)));
    draw_cell(time_text(static_cast<TimeNs>(pair.b_ns)));
    draw_cell(change_text(pair.a_ns, pair.b_ns), look().colours.dim);
  }
  ImGui::EndTable();
}

void draw_differences(const std::vector<analyze::SettingDifference>& differences) {
  ImGui::Dummy({0, px(4)});
  if (differences.empty()) {
    draw_empty("Both ran with the same settings on the same machine.");
    return;
  }
  if (!ImGui::BeginTable("##settings", 3, ImGuiTableFlags_RowBg)) return;
  ImGui::TableSetupColumn("what was different", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableSetupColumn("A", ImGuiTableColumnFlags_WidthStretch, 1.6F);
  ImGui::TableSetupColumn("B", ImGuiTableColumnFlags_WidthStretch, 1.6F);
  ImGui::TableHeadersRow();
  for (const analyze::SettingDifference& difference : differences) {
    ImGui::TableNextRow();
    for (const std::string* text : {&difference.key, &difference.a, &difference.b}) {
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(text->c_str());
      if (text->size() > 20) ImGui::SetItemTooltip("%s", text->c_str());
    }
  }
  ImGui::EndTable();
}

void draw_switch(const char* text, bool is_on, bool& into, bool value) {
  if (is_on) ImGui::PushStyleColor(ImGuiCol_Text, look().colours.accent);
  if (ImGui::Button(text)) into = value;
  if (is_on) ImGui::PopStyleColor();
}

std::string stretch_text(const RunPieces& pieces, Stretch stretch) {
  return fmt::format("{} from {}", time_text(stretch.end - stretch.begin),
                     time_text(stretch.begin - pieces.run->begin_ts));
}

}  // namespace

CompareView::CompareView(const RunPieces& pieces, const TimelineState& timeline,
                         const std::vector<std::string>& recent, const std::function<void()>& wake)
    : View(words::kCompare), pieces_(pieces), timeline_(timeline), recent_(recent), wake_(wake) {}
const char* CompareView::help() const { return "Two runs, or two stretches of one, side by side"; }

void CompareView::forget_other_run() {
  if (pieces_.feed.get() == shown_of_) return;
  shown_of_ = pieces_.feed.get();
  runs_.forget();
  stretches_.forget();
  asked_a_ = asked_b_ = {};
}

// Whoever pins a stretch wants to compare it.
void CompareView::turn_to_stretches() {
  if (timeline_.measure.pinned() == seen_pinned_) return;
  seen_pinned_ = timeline_.measure.pinned();
  if (seen_pinned_) shows_stretches_ = true;
}

void CompareView::draw_content() {
  forget_other_run();
  turn_to_stretches();
  draw_title("Compare", shows_stretches_ ? "two stretches of this run" : "this run is B");
  draw_switch("two runs", !shows_stretches_, shows_stretches_, false);
  ImGui::SameLine();
  draw_switch("two stretches", shows_stretches_, shows_stretches_, true);
  if (shows_stretches_) {
    draw_stretches();
    return;
  }
  ImGui::SameLine();
  draw_choice();
  draw_runs();
}

void CompareView::compare_with(const std::string& database) {
  const std::string own = pieces_.own_database();  // what there is once is rank 0's
  runs_.begin([database, own] { return compare_two_runs(database, own); }, wake_);
}

// The other run: one opened before, or a path.
void CompareView::draw_choice() {
  ImGui::SetNextItemWidth(px(150));
  if (ImGui::BeginCombo("##recent", "opened before")) {
    for (const std::string& path : recent_) {
      if (path == pieces_.place()) continue;
      if (ImGui::Selectable(path.c_str())) compare_with(path);
    }
    if (recent_.size() < 2) draw_empty("no other run");
    ImGui::EndCombo();
  }
  ImGui::SameLine();
  if (ImGui::GetContentRegionAvail().x < px(240)) ImGui::NewLine();
  ImGui::SetNextItemWidth(-1);
  const bool is_entered =
      input_line("##other", "path of another run's database, which is A", typed_path_);
  if (is_entered && !typed_path_.empty()) compare_with(absolute_path(typed_path_));
}

void CompareView::draw_runs() const {
  const std::shared_ptr<const RunPair> pair = runs_.result();
  if (runs_.is_working()) draw_empty("Both runs are being read\u2026");
  if (pair == nullptr) {
    if (!runs_.is_working())
      draw_empty("Choose another run above: A, the one that this one is compared with.");
    return;
  }
  if (!pair->problem.empty()) {
    draw_coloured(look().colours.amber, pair->problem);
    return;
  }
  draw_note(fmt::format("A: {} ({} steps)   B: {} ({} steps{})", pair->a, pair->comparison.steps_a,
                        pair->b, pair->comparison.steps_b,
                        pieces_.run->is_live ? ", as it was when this was read" : ""));
  if (ImGui::BeginChild("##pair")) {
    draw_comparability(pair->comparison.comparability);
    draw_verdict(pair->comparison);
    draw_figures(pair->comparison);
    draw_causes(pair->causes);
    if (!pair->comparison.differences.empty() ||
        pair->comparison.answers.back().outcome == analyze::Outcome::nothing_found) {
      draw_differences(pair->comparison.differences);
    }
    draw_looked(pair->comparison.answers);
  }
  ImGui::EndChild();
}

void CompareView::draw_stretches() {
  if (!timeline_.measure.pinned().has_value() || !timeline_.measure.range().has_value()) {
    draw_empty(timeline_.measure.pinned().has_value()
                   ? "A is pinned. Measure B on the timeline: Shift+drag."
                   : "Measure a stretch on the timeline (Shift+drag) and press P to pin it; then "
                     "measure another.");
    return;
  }
  const Stretch a{timeline_.measure.pinned()->begin, timeline_.measure.pinned()->end};
  const Stretch b{timeline_.measure.range()->begin, timeline_.measure.range()->end};
  // While somebody drags, no question is asked for each pixel.
  const bool is_other = !(a == asked_a_ && b == asked_b_);
  if (is_other && !ImGui::IsMouseDown(ImGuiMouseButton_Left)) {
    asked_a_ = a;
    asked_b_ = b;
    const std::string path = pieces_.feed->path();
    stretches_.begin([path, a, b] { return compare_two_stretches(path, a, b); }, wake_);
  }
  const std::shared_ptr<const StretchPair> pair = stretches_.result();
  if (pair == nullptr) {
    draw_empty("The spans of both stretches are being read\u2026");
    return;
  }
  if (!pair->problem.empty()) {
    draw_coloured(look().colours.amber, pair->problem);
    return;
  }
  draw_note(
      fmt::format("A: {}   B: {}", stretch_text(pieces_, pair->a), stretch_text(pieces_, pair->b)));
  const ImGuiTableFlags flags = ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY;
  if (!ImGui::BeginTable("##names", 6, flags)) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("what", ImGuiTableColumnFlags_WidthStretch, 1.6F);
  for (const char* column : {"A count", "B count", "A time", "B time", "B to A"})
    ImGui::TableSetupColumn(column, ImGuiTableColumnFlags_WidthStretch, 0.8F);
  draw_run_heads();
  for (const NamePair& name : pair->names) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    draw_dot(stage_colour(pieces_.facts().stage_colour(name.name)));
    ImGui::SameLine(0, px(6));
    ImGui::TextUnformatted(name.name.c_str());
    ImGui::SetItemTooltip("bytes: A %s, B %s", bytes_text(name.a.bytes).c_str(),
                          bytes_text(name.b.bytes).c_str());
    draw_cell(grouped_text(name.a.count));
    draw_cell(grouped_text(name.b.count));
    draw_cell(time_text(static_cast<TimeNs>(name.a.busy_ns)));
    draw_cell(time_text(static_cast<TimeNs>(name.b.busy_ns)));
    draw_cell(change_text(name.a.busy_ns, name.b.busy_ns), look().colours.dim);
  }
  ImGui::EndTable();
}

}  // namespace sluice::gui
