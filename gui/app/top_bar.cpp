#include "gui/app/top_bar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gui/data/followed_run.h"
#include "gui/data/opening.h"
#include "gui/data/run_path.h"
#include "gui/data/verdict.h"
#include "gui/views/run_pieces.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"
#include "profiler/analyze/answers.h"

namespace sluice::gui {
namespace {

constexpr const char* kOfAnInstant = "the picture is of the instant at which the ranks were read";

// The median of the last twenty steps; 0 without any.
TimeNs recent_dur(const std::vector<rundb::StepRow>& steps) {
  std::vector<TimeNs> durs;
  for (auto step = steps.rbegin(); step != steps.rend() && durs.size() < 20; ++step)
    durs.push_back(step->dur);
  if (durs.empty()) return 0;
  std::ranges::nth_element(durs, durs.begin() + static_cast<std::ptrdiff_t>(durs.size() / 2));
  return durs[durs.size() / 2];
}

void draw_badge(const std::string& text, ImU32 colour) {
  const FontScope font(look().bold, Look::kSmallSize);
  const ImVec2 size = ImGui::CalcTextSize(text.c_str());
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 pad = {px(8), px(2)};
  const float y = at.y + (ImGui::GetFrameHeight() - size.y) / 2;
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled({at.x, y - pad.y}, {at.x + size.x + 2 * pad.x, y + size.y + pad.y}, colour,
                      px(9));
  list->AddText({at.x + pad.x, y}, text_on(colour), text.c_str());
  ImGui::Dummy({size.x + 2 * pad.x, size.y});
}

float badge_width(const std::string& text) {
  const FontScope font(look().bold, Look::kSmallSize);
  return ImGui::CalcTextSize(text.c_str()).x + 2 * px(8);
}

// Right of what is there. Text that does not fit as a whole is left out: false.
bool draw_fitting(const std::string& text, float room_end, ImU32 colour = 0) {
  ImGui::SameLine(0, px(14));
  const float end = ImGui::GetCursorPosX() + ImGui::CalcTextSize(text.c_str()).x + px(6);
  if (end > room_end) return false;
  draw_coloured(colour == 0 ? look().colours.text : colour, text, false);
  return true;
}

// A dot and a word: whether the run is live, else how it ended.
void draw_liveness(const RunPieces& pieces, std::int64_t planned_count) {
  const Colours& colours = look().colours;
  const bool is_live = pieces.was_live();
  const ImU32 colour = is_live ? colours.green : colours.dim;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::GetWindowDrawList()->AddCircleFilled({at.x + px(5), at.y + ImGui::GetFrameHeight() / 2},
                                              px(4.5F), colour);
  ImGui::Dummy({px(10), ImGui::GetTextLineHeight()});
  ImGui::SameLine(0, px(5));
  const bool is_cut = planned_count > static_cast<std::int64_t>(pieces.steps().size());
  if (pieces.ranks != nullptr && pieces.ranks->was_live) {
    draw_coloured(colour, "live, read at " + pieces.ranks->read_at, false);
    ImGui::SetItemTooltip("%s (UTC)", kOfAnInstant);
    return;
  }
  draw_coloured(colour,
                is_live                         ? "live"
                : pieces.facts().is_simulated() ? "simulated"
                : is_cut                        ? "ended before its last step"
                                                : "finished",
                false);
}

// The number of ranks in the picture, and whose they are. The picture of a live run does not grow.
// True: it is to be read again.
bool draw_ranks(const MergedRanks& ranks, const Opening* again) {
  bool is_asked = false;
  ImGui::SameLine(0, px(8));
  if (again != nullptr) {
    draw_coloured(look().colours.dim, "reading " + percent_text(again->share()), false);
  } else if (ranks.was_live) {
    is_asked = ImGui::SmallButton("Read again");
    ImGui::SetItemTooltip("F5: %s", kOfAnInstant);
  }
  if (again != nullptr || ranks.was_live) ImGui::SameLine(0, px(8));
  const std::string place =
      ranks.folder.empty() ? file_name(ranks.place()) : file_name(ranks.folder) + "/";
  draw_coloured(look().colours.accent, fmt::format("{} ranks of {}", ranks.databases.size(), place),
                false);
  ImGui::SetItemTooltip("merged for this window, by rank 0's clock, at %s UTC:\n%s",
                        ranks.read_at.c_str(),
                        fmt::format("{}", fmt::join(ranks.databases, "\n")).c_str());
  return is_asked;
}

// Where it is recorded, and what is wrong with the line.
void draw_far(const FollowedRun& run) {
  ImGui::SameLine(0, px(8));
  draw_coloured(look().colours.accent, "from " + run.host(), false);
  ImGui::SetItemTooltip("a copy that follows %s", run.name().c_str());
  const std::string words = run.words();
  if (words.empty()) return;
  ImGui::SameLine(0, px(8));
  draw_coloured(look().colours.amber, words, false);
}

// The last step, its loss, the pace and the time left, as far as there is room.
void draw_progress(const RunPieces& pieces, std::int64_t planned_count, float room_end) {
  const std::vector<rundb::StepRow>& steps = pieces.steps();
  if (steps.empty()) return;
  const rundb::StepRow& last = steps.back();
  const TimeNs dur = recent_dur(steps);
  const FontScope font(look().mono, Look::kTextSize);
  if (!draw_fitting(fmt::format("step {}{}", step_text(last.id),
                                planned_count > 0 ? " / " + grouped_text(planned_count) : ""),
                    room_end))
    return;
  if (std::isfinite(last.loss) && !draw_fitting(fmt::format("loss {:.3f}", last.loss), room_end))
    return;
  if (last.tokens > 0 && dur > 0) {
    const double tokens = static_cast<double>(last.tokens) * 1e9 / static_cast<double>(dur);
    if (!draw_fitting(fmt::format("{} tok/s", count_text(tokens)), room_end)) return;
  }
  if (pieces.run->is_live && planned_count > last.id + 1) {
    draw_fitting("left " + time_text((planned_count - last.id - 1) * dur), room_end,
                 look().colours.dim);
  }
}

struct Title {
  std::string text;
  std::vector<std::string> badges;
};

// The run's name and mode, and what changes its numbers or stands in for hardware. The latter are
// badges and never left out: first they are said in fewer words, then mode and name make room.
std::vector<Title> titles_of(const RunFacts& facts) {
  const std::string mode = facts.method_line.empty() ? "mode not known" : facts.method_line;
  const std::string whole = facts.name() + " \u00b7 " + mode;
  Title full{whole, {}};
  std::vector<std::string> in_short;
  const auto add = [&](const std::string& badge, char end) {
    full.badges.push_back(badge);
    in_short.push_back(badge.substr(0, badge.find(end)));
  };
  for (const std::string& one : facts.info.mode.other_numbers) add(one, ':');
  if (!facts.stand_ins.empty()) add(facts.stand_ins, ' ');
  return {full, {whole, in_short}, {facts.name(), in_short}, {"", in_short}};
}

// As much of it as there is room for. A tooltip has all of it.
void draw_mode(const RunFacts& facts) {
  const std::vector<Title> titles = titles_of(facts);
  ImGui::SameLine(0, px(8));
  const float room = ImGui::GetWindowWidth() - ImGui::GetCursorPosX() - px(6);
  const auto fits = [room](const Title& title) {
    float width = ImGui::CalcTextSize(title.text.c_str()).x;
    for (const std::string& badge : title.badges) width += px(8) + badge_width(badge);
    return width <= room;
  };
  const auto found = std::ranges::find_if(titles, fits);
  const Title& title = found == titles.end() ? titles.back() : *found;
  std::string all = titles.front().text;
  for (const std::string& badge : titles.front().badges) all += "\n" + badge;
  const bool is_whole = &title == &titles.front();
  ImGui::TextUnformatted(title.text.c_str());
  if (!is_whole) ImGui::SetItemTooltip("%s", all.c_str());
  bool is_first = title.text.empty();
  for (const std::string& badge : title.badges) {
    ImGui::SameLine(0, std::exchange(is_first, false) ? 0 : px(8));
    draw_badge(badge, look().colours.amber);
    if (!is_whole) ImGui::SetItemTooltip("%s", all.c_str());
  }
}

// How the record fares. `amiss`: what of it nobody should overlook; empty: nothing.
struct RecorderWords {
  std::string all;
  std::string amiss;
};

RecorderWords recorder_words(const RunPieces& pieces) {
  const std::int64_t lost = lost_count(pieces.facts().losses);
  const analyze::Outcome outcome = pieces.losses().outcome;
  RecorderWords words;
  if (outcome == analyze::Outcome::nothing_found) {
    words.all = "recording: nothing lost";
  } else {
    words.amiss = lost > 0 ? fmt::format("recording: {} LOST", grouped_text(lost))
                  : outcome == analyze::Outcome::answer ? "recording: rows MISSING"
                                                        : "recording: losses NOT KNOWN";
    words.all = words.amiss;
  }
  if (pieces.verdict != nullptr) {
    for (const analyze::Doubt& doubt : pieces.verdict->doubts) {
      if (doubt.label == analyze::kLostLabel) continue;  // said above, with how many
      words.all += " \u00b7 " + doubt.mark;
      words.amiss += (words.amiss.empty() ? "" : " \u00b7 ") + doubt.mark;
    }
  }
  if (pieces.run->recorder_share >= 0)
    words.all +=
        fmt::format(" \u00b7 {} of a processor", percent_text(pieces.run->recorder_share, 1));
  return words;
}

bool draw_run_state(const RunPieces& pieces, const Opening* again, const RecorderWords& words) {
  const RunFacts& facts = pieces.facts();
  const std::int64_t planned_count = facts.info.planned_step_count();
  ImGui::SameLine(0, px(18));
  draw_liveness(pieces, planned_count);
  const bool is_asked = pieces.ranks != nullptr && draw_ranks(*pieces.ranks, again);
  if (pieces.far != nullptr) draw_far(*pieces.far);
  draw_mode(facts);
  const float amiss = words.amiss.empty() ? 0 : ImGui::CalcTextSize(words.amiss.c_str()).x + px(24);
  draw_progress(pieces, planned_count, ImGui::GetWindowWidth() - amiss);
  return is_asked;
}

// At the right end; what is amiss has its room before the progress, the rest if there is some. It
// is also in the view of losses and facts.
void draw_recorder_state(const RecorderWords& words) {
  const auto begin_of = [](const std::string& text) {
    return ImGui::GetWindowWidth() - ImGui::CalcTextSize(text.c_str()).x - px(14);
  };
  ImGui::SameLine();
  const float least = ImGui::GetCursorPosX() + px(10);
  const std::string& text = begin_of(words.all) >= least ? words.all : words.amiss;
  if (text.empty()) return;
  ImGui::SetCursorPosX(std::max(begin_of(text), least));
  draw_coloured(words.amiss.empty() ? look().colours.dim : look().colours.amber, text, false);
  ImGui::SetItemTooltip("%s", words.all.c_str());
}

}  // namespace

bool TopBar::draw(const RunPieces& pieces, const Opening* again,
                  const std::vector<Command>& commands, const FrameCost& cost) {
  bool is_asked = false;
  if (!ImGui::BeginMainMenuBar()) return is_asked;
  {
    const FontScope font(look().bold, Look::kTitleSize);
    ImGui::TextUnformatted("Sluice");
  }
  draw_menus(commands);
  if (pieces.has_facts()) {
    const RecorderWords words = recorder_words(pieces);
    is_asked = draw_run_state(pieces, again, words);
    draw_recorder_state(words);
  }
  if (shows_cost_) {
    ImGui::SameLine(0, px(16));
    const FontScope font(look().mono, Look::kSmallSize);
    ImGui::Text("%.2f ms a frame, worst %.2f ms, %d vertices", cost.last_ms, cost.worst_ms,
                cost.vertex_count);
  }
  ImGui::EndMainMenuBar();
  return is_asked;
}

}  // namespace sluice::gui
