#include "gui/views/devices_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

#include "base/words.h"
#include "gui/data/counter_store.h"
#include "gui/data/device_shares.h"
#include "gui/data/opening.h"
#include "gui/data/span_scan.h"
#include "gui/data/verdict.h"
#include "gui/views/doubt_line.h"
#include "gui/views/run_colours.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"
#include "gui/widgets/setting_text.h"

namespace sluice::gui {
namespace {

constexpr double kUneven = 1.1;  // as the verdict's finding (profiler/analyze/advice.cpp)
constexpr const char* kMapKnob = "device_map";
constexpr const char* kDragged = "share of a device";
constexpr float kIndent = 18;

void draw_load(const char* word, double share, ImU32 colour) {
  const float end_x = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
  {
    const FontScope font(look().text, Look::kSmallSize);
    draw_coloured(look().colours.dim, word, false);
  }
  ImGui::SameLine();
  // A name that is longer than others pushes its own bar.
  ImGui::SetCursorPosX(std::max(px(96), ImGui::GetCursorPosX() + px(4)));
  const float width = std::max(px(30), end_x - ImGui::GetCursorPosX() - px(46));
  draw_meter(share, colour, {width, px(8)});
  ImGui::SameLine();
  const FontScope font(look().text, Look::kSmallSize);
  draw_figure(percent_text(share));
}

double share_of(TimeNs busy_ns, double steps_ns) {
  return steps_ns > 0 ? static_cast<double>(busy_ns) / steps_ns : 0;
}

// The stage's time in the whole run; 0 until the statistics have been read.
TimeNs time_of(const RunPieces& pieces, std::string_view name) {
  if (pieces.statistics == nullptr) return 0;
  for (const StatisticRow& row : pieces.statistics->rows[0])
    if (pieces.facts().string_of(row.name_id) == name) return row.sum_ns;
  return 0;
}

double of_step(TimeNs dur_ns, const analyze::RankUse& use) {
  return share_of(dur_ns, static_cast<double>(use.step_ns));
}

// The parts of a rank's step, side by side, and the share that computes at the right.
void draw_rank(const analyze::RankUse& use, bool is_awaited) {
  using analyze::Cause;
  const std::string name = fmt::format("rank {}", use.rank);
  const double computing = 1 - of_step(use.exposed_ns + use.rest_ns, use);
  const double forward = std::min(computing, of_step(use.forward_ns, use));
  const auto tip = [](const char* what, TimeNs dur_ns) {
    return fmt::format("{} {} of a step", what, time_text(dur_ns));
  };
  const float end_x = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
  {
    const FontScope font(look().text, Look::kSmallSize);
    draw_coloured(is_awaited ? look().colours.amber : look().colours.dim, name, false);
  }
  if (is_awaited) ImGui::SetItemTooltip("the others wait for this rank");
  ImGui::SameLine(px(96));
  const float width = std::max(px(30), end_x - ImGui::GetCursorPosX() - px(46));
  if (ImGui::BeginChild(name.c_str(), {width, px(10)})) {
    draw_strip("##parts",
               {{forward, colour_of(analyze::Phase::forward), tip("forward", use.forward_ns)},
                {computing - forward, colour_of(analyze::Phase::backward),
                 tip("backward", use.backward_ns)},
                {of_step(use.exposed_ns, use), colour_of(Cause::ranks),
                 tip("with nothing but other ranks", use.exposed_ns) +
                     fmt::format(", {} of it until the last has begun", time_text(use.waiting_ns))},
                {of_step(use.rest_ns, use), look().colours.line,
                 tip("update, commit and what is between", use.rest_ns)}},
               px(8));
  }
  ImGui::EndChild();
  ImGui::SameLine();
  const FontScope font(look().text, Look::kSmallSize);
  draw_figure(percent_text(computing));
  ImGui::SetItemTooltip("of a step in forward or backward");
}

std::vector<std::string> accelerators_of(const RunFacts& facts) {
  std::vector<std::string> names;
  for (const TrackFacts& track : facts.tracks) {
    const bool is_new = names.empty() || names.back() != track.group;
    const bool is_link = track.group.find('.') != std::string::npos;  // "accelerator0.link"
    if (is_new && !is_link && track.group.starts_with("accelerator")) names.push_back(track.group);
  }
  return names;
}

struct MemoryUse {
  double used_bytes = 0;  // at most so far
  double cap_bytes = 0;
};

// Nothing where the run has not recorded it.
std::optional<MemoryUse> memory_of(const RunPieces& pieces, const std::string& accelerator) {
  const RunFacts& facts = pieces.facts();
  const double cap_bytes = std::atof(facts.info.meta_value("accelerator_memory_cap").c_str());
  if (cap_bytes <= 0 || pieces.run->counters == nullptr) return std::nullopt;
  for (const TrackFacts& track : facts.tracks) {
    if (!track.is_counter || track.group != accelerator || !track.name.starts_with("memory used"))
      continue;
    const auto samples = pieces.run->counters->by_track.find(track.id);
    if (samples == pieces.run->counters->by_track.end()) return std::nullopt;
    return MemoryUse{samples->second->high(), cap_bytes};
  }
  return std::nullopt;
}

// From the trunk at the left to the card that was drawn from `top` on.
void draw_branch(float trunk_x, float trunk_top, float card_top) {
  const ImU32 colour = look().colours.line;
  const float y = card_top + px(14);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddLine({trunk_x, trunk_top}, {trunk_x, y}, colour, px(1.5F));
  list->AddLine({trunk_x, y}, {trunk_x + px(kIndent) - px(8), y}, colour, px(1.5F));
}

// A card that is grabbed as a whole takes no mouse itself: the button over it does.
bool begin_card(const char* name, ImU32 border, ImGuiWindowFlags flags = 0) {
  ImGui::PushStyleColor(ImGuiCol_ChildBg, with_alpha(look().colours.inset, 0.5F));
  ImGui::PushStyleColor(ImGuiCol_Border, border);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(10), px(6)));
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(6), px(2)));
  return ImGui::BeginChild(name, {0, 0},
                           ImGuiChildFlags_AutoResizeY | ImGuiChildFlags_Borders |
                               ImGuiChildFlags_AlwaysUseWindowPadding,
                           flags);
}

void end_card() {
  ImGui::EndChild();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor(2);
}

void draw_name(const std::string& name) {
  const FontScope font(look().bold, Look::kTextSize);
  ImGui::TextUnformatted(name.c_str());
}

std::string share_text(const std::vector<std::int64_t>& counts, std::size_t index) {
  const auto all = static_cast<double>(std::accumulate(counts.begin(), counts.end(), 0LL));
  const double share = all > 0 ? static_cast<double>(counts[index]) / all : 0;
  return fmt::format("{} \u00b7 {}", percent_text(share), counts[index]);
}

}  // namespace

DevicesView::DevicesView(const RunPieces& pieces, SettingChoice& choice)
    : View(words::kDevices), pieces_(pieces), choice_(choice) {}
const char* DevicesView::help() const {
  return "The machine, how busy each part is, and which device has which share";
}

DevicesView::Shares DevicesView::shares_of() const {
  const std::vector<std::int64_t>& recorded = pieces_.facts().device_subgroups;
  const std::int64_t all = std::accumulate(recorded.begin(), recorded.end(), std::int64_t{0});
  const auto& knobs = choice_.knobs(pieces_.facts());
  const auto knob = std::ranges::find(knobs, kMapKnob, &control::Knob::key);
  if (all == 0 || knob == knobs.end()) return {recorded, recorded};
  const auto counts_of = [&](const std::string& value) {
    const auto shares = parse_shares(value, recorded.size());
    return shares ? subgroups_under(all, *shares) : recorded;
  };
  return {counts_of(knob->value), counts_of(choice_.shown_value(*knob))};
}

void DevicesView::draw_content() {
  const bool has_ranks = pieces_.has_facts() && pieces_.facts().info.has_all_ranks();
  draw_title("Devices", has_ranks ? "busy share of a step; links and drives are rank 0's"
                                  : "busy share of a step");
  draw_doubt_line(pieces_);
  if (pieces_.verdict == nullptr) {
    draw_empty("The steps are being looked at\u2026");
    return;
  }
  const analyze::RunAnalysis& analysis = pieces_.verdict->analysis;
  if (!pieces_.verdict->why_empty.empty()) {
    draw_empty(pieces_.verdict->why_empty);
    return;
  }
  draw_ranks();
  if (analysis.devices.empty()) {
    draw_empty("The run has no storage devices.");
    return;
  }
  const auto count = static_cast<double>(std::max<std::size_t>(1, analysis.steps.size()));
  const double steps_ns = static_cast<double>(analysis.dur) * count;
  const auto busiest = std::ranges::max_element(analysis.devices, {}, &analyze::DeviceUse::busy_ns);
  const bool is_uneven = analyze::imbalance_of(analysis.devices) >= kUneven;
  const Shares shares = shares_of();
  draw_tools(shares);
  draw_host();
  const float trunk_x = ImGui::GetCursorScreenPos().x + px(8);
  float trunk_top = ImGui::GetCursorScreenPos().y - ImGui::GetStyle().ItemSpacing.y;
  ImGui::Indent(px(kIndent));
  for (std::size_t d = 0; d < analysis.devices.size(); ++d) {
    const float card_top = ImGui::GetCursorScreenPos().y;
    draw_branch(trunk_x, trunk_top, card_top);
    trunk_top = card_top + px(14);
    draw_device(shares, d, steps_ns, count, is_uneven && &analysis.devices[d] == &*busiest);
  }
  ImGui::Unindent(px(kIndent));
}

void DevicesView::draw_tools(const Shares& shares) {
  const bool can_drag =
      choice_.can_turn() && choice_.is_knob(kMapKnob) && shares.in_force.size() > 1;
  if (!can_drag) return;
  const std::int64_t most = *std::ranges::max_element(shares.chosen);
  if (amount_ == 0) amount_ = static_cast<int>(std::max<std::int64_t>(1, (most + 5) / 10));
  ImGui::AlignTextToFramePadding();
  const std::string what = "drag one onto another: moves";
  const std::string unit = "subgroups";
  const float words = ImGui::CalcTextSize((what + unit).c_str()).x + px(52 + 2 * 5);
  const bool is_narrow = words > ImGui::GetContentRegionAvail().x;
  draw_coloured(look().colours.dim, what, false);
  if (!is_narrow) ImGui::SameLine(0, px(5));
  ImGui::SetNextItemWidth(px(52));
  ImGui::DragInt("##amount", &amount_, 0.1F, 1, static_cast<int>(std::max<std::int64_t>(1, most)),
                 "%d", ImGuiSliderFlags_AlwaysClamp);
  ImGui::SetItemTooltip("subgroups; drag, or Ctrl+click to type");
  ImGui::SameLine(0, px(5));
  draw_coloured(look().colours.dim, unit, false);
}

// Over the whole run: what the host computes, and how full the links are that devices share.
void DevicesView::draw_host() const {
  if (begin_card("host", look().colours.inset)) {
    draw_name(pieces_.facts().info.has_all_ranks() ? analyze::rank_prefix(0) + "host" : "host");
    if (accelerators_of(pieces_.facts()).empty()) draw_computing();
    draw_links([](const analyze::LinkLoad& load) { return load.is_shared; });
  }
  end_card();
  draw_accelerators();
}

// A record of all ranks has their computing here, and not as the host's: one adds up what several
// hosts did.
void DevicesView::draw_ranks() const {
  const std::optional<analyze::RankAnalysis>& ranks = pieces_.verdict->analysis.ranks;
  if (!ranks || ranks->ranks.empty()) return;
  if (begin_card("ranks", look().colours.inset)) {
    draw_name("ranks");
    ImGui::SameLine();
    {
      const FontScope font(look().text, Look::kSmallSize);
      draw_coloured(look().colours.dim, "computing", false);
    }
    for (const analyze::RankUse& use : ranks->ranks) draw_rank(use, ranks->straggler == use.rank);
  }
  end_card();
}

void DevicesView::draw_computing() const {
  if (pieces_.facts().info.has_all_ranks()) return;
  double all_ns = 0;
  for (const rundb::StepRow& step : pieces_.steps()) all_ns += static_cast<double>(step.dur);
  for (const analyze::Phase phase : {analyze::Phase::forward, analyze::Phase::backward}) {
    const std::string name(analyze::phase_info(phase).name);
    draw_load(name.c_str(), share_of(time_of(pieces_, name), all_ns), colour_of(phase));
    ImGui::SetItemTooltip("of all steps so far");
  }
}

void DevicesView::draw_links(const std::function<bool(const analyze::LinkLoad&)>& belongs) const {
  for (const analyze::LinkLoad& load : pieces_.verdict->analysis.links) {
    if (!belongs(load)) continue;
    const bool is_read = load.direction == rundb::Direction::read;
    const std::string name = load.name.substr(load.name.find('.') + 1);
    const char* way = load.is_between_ranks ? "" : is_read ? " up" : " down";
    draw_load((name + way).c_str(), load.share, colour_of(analyze::Cause::host_link));
    const std::string clock = pieces_.facts().info.clock_note();
    const std::string limit =
        load.bytes_per_s_max > 0 ? " of " + rate_text(load.bytes_per_s_max) : std::string();
    ImGui::SetItemTooltip("%s%s %s%s", rate_text(load.bytes_per_s).c_str(), limit.c_str(),
                          words::kWhenActive, clock.empty() ? "" : (" (" + clock + ")").c_str());
  }
}

// The accelerators beside the host. The first of several has the figures of all together.
void DevicesView::draw_accelerators() const {
  const std::vector<std::string> names = accelerators_of(pieces_.facts());
  for (const std::string& name : names) {
    if (begin_card(name.c_str(), look().colours.inset)) {
      draw_name(name);
      if (name == names.front()) draw_computing();
      draw_links([&](const analyze::LinkLoad& load) { return load.name.starts_with(name + "."); });
      if (const auto memory = memory_of(pieces_, name)) {
        draw_load("memory", memory->used_bytes / memory->cap_bytes, look().colours.accent);
        ImGui::SetItemTooltip("at most %s of %s so far", bytes_text(memory->used_bytes).c_str(),
                              bytes_text(memory->cap_bytes).c_str());
      }
    }
    end_card();
  }
}

void DevicesView::draw_device(const Shares& shares, std::size_t index, double steps_ns,
                              double step_count, bool is_slowest) {
  const analyze::DeviceUse& device = pieces_.verdict->analysis.devices[index];
  const Colours& colours = look().colours;
  const bool has_share = index < shares.in_force.size();
  const bool is_pending = has_share && shares.chosen[index] != shares.in_force[index];
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImU32 border = is_slowest || is_pending ? colours.amber : colours.inset;
  if (begin_card(device.name.c_str(), border, ImGuiWindowFlags_NoInputs)) {
    draw_name(device.name);
    // Not in a line of its own: a card that is aimed at must not move as figures change.
    if (is_slowest && !is_pending) {
      ImGui::SameLine();
      const FontScope font(look().text, Look::kSmallSize);
      draw_coloured(colours.amber, "busiest of all", false);
    }
    if (has_share) {
      ImGui::SameLine();
      const std::string text = share_text(shares.in_force, index);
      const std::string chosen = is_pending ? " \u2192 " + share_text(shares.chosen, index) : "";
      draw_figure(text + chosen, is_pending ? colours.amber : colours.dim);
    }
    draw_load("drive, read", share_of(device.read_ns, steps_ns), colour_of(analyze::Cause::read));
    draw_load("drive, write", share_of(device.write_ns, steps_ns),
              colour_of(analyze::Cause::write));
    draw_load("engine", share_of(device.update_ns, steps_ns),
              colour_of(analyze::Cause::update_engine));
  }
  end_card();
  const ImVec2 size = ImGui::GetItemRectSize();
  ImGui::SetCursorScreenPos(at);
  ImGui::InvisibleButton(("##" + device.name).c_str(), size);
  if (ImGui::IsItemHovered() && ImGui::GetDragDropPayload() == nullptr) {
    ImGui::SetTooltip("%s: %s read, %s written in a step%s", device.name.c_str(),
                      bytes_text(static_cast<double>(device.read_bytes) / step_count).c_str(),
                      bytes_text(static_cast<double>(device.write_bytes) / step_count).c_str(),
                      has_share ? "; share of the subgroups, and how many" : "");
  }
  if (has_share) drag_share(shares, index);
}

// The card that was drawn last gives, or takes.
void DevicesView::drag_share(const Shares& shares, std::size_t index) {
  const control::Knob* knob = choice_.can_turn() ? choice_.state()->knob(kMapKnob) : nullptr;
  if (knob == nullptr) return;
  const auto name = [&](std::size_t d) { return pieces_.facts().info.devices[d].name; };
  if (ImGui::BeginDragDropSource()) {
    ImGui::SetDragDropPayload(kDragged, &index, sizeof index);
    const std::int64_t count = std::min<std::int64_t>(amount_, shares.chosen[index]);
    ImGui::Text("%s of %s's %s subgroups", grouped_text(count).c_str(), name(index).c_str(),
                grouped_text(shares.chosen[index]).c_str());
    ImGui::EndDragDropSource();
  }
  if (!ImGui::BeginDragDropTarget()) return;
  const ImGuiPayload* payload = ImGui::AcceptDragDropPayload(kDragged);
  if (payload != nullptr && payload->DataSize == sizeof index) {
    const std::size_t from = *static_cast<const std::size_t*>(payload->Data);
    if (from != index && from < shares.chosen.size())
      choice_.choose(*knob, shares_setting(shares_after_move(shares.chosen, from, index, amount_)));
  }
  ImGui::EndDragDropTarget();
}

}  // namespace sluice::gui
