#include "profiler/analyze/run_mode.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "base/status.h"

namespace sluice::analyze {
namespace {

constexpr std::string_view kJoint = " · ";
constexpr std::size_t kRangesNamed = 3;

void join(std::string& line, std::string_view part) {
  if (part.empty()) return;
  if (!line.empty()) line += kJoint;
  line += part;
}

// A device that XRT drives has the name that its driver gives it.
bool names_stand_in(std::string_view part) {
  return part.find("EMULATED") != std::string_view::npos ||
         part.find("SIMULATED") != std::string_view::npos ||
         part.find("XRT: sluice_software") != std::string_view::npos;
}

using Part = std::string ModeStretch::*;

Part part_of(std::string_view part) {
  if (names_stand_in(part)) return &ModeStretch::stand_ins;
  return part.find(": other numbers than ") != std::string_view::npos ? &ModeStretch::other_numbers
                                                                      : &ModeStretch::method;
}

ModeStretch stretch_of(const rundb::ModeRow& row) {
  ModeStretch stretch{.first_step = row.step_id, .line = row.line};
  const std::string_view line = row.line;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(kJoint, at), line.size());
    const std::string_view part = line.substr(at, end - at);
    join(stretch.*part_of(part), part);
    at = end + kJoint.size();
  }
  return stretch;
}

// "EMULATED CLOCK x12, EMULATED CSDs (files, host memory)" is two.
std::vector<std::string> single_ones(const std::string& all) {
  std::vector<std::string> single;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t joint = std::min(all.find(kJoint, at), all.size());
    const std::size_t end = std::min(all.find(", EMULATED", at), joint);
    single.push_back(all.substr(at, end - at));
    at = end == all.size() ? end : end + (end == joint ? kJoint.size() : 2);
  }
  return single;
}

bool has(const ModeStretch& stretch, Part part, const std::string& one) {
  const std::vector<std::string> all = single_ones(stretch.*part);
  return std::ranges::find(all, one) != all.end();
}

// "" where it was so for the whole run. Steps count from 1 where people read them.
std::string steps_of(const std::vector<ModeStretch>& stretches, Part part, const std::string& one) {
  std::string text;
  std::size_t count = 0;
  for (std::size_t first = 0; first < stretches.size(); ++first) {
    if (!has(stretches[first], part, one)) continue;
    std::size_t last = first;
    while (last + 1 < stretches.size() && has(stretches[last + 1], part, one)) ++last;
    if (first == 0 && last + 1 == stretches.size()) return "";
    if (++count <= kRangesNamed) {
      text += count > 1 ? ", " : " in steps ";
      text += fmt::format("{} ", stretches[first].first_step + 1);
      text +=
          last + 1 == stretches.size() ? "on" : fmt::format("to {}", stretches[last].last_step + 1);
    }
    first = last;
  }
  if (count > kRangesNamed) text += fmt::format(" and {} more", count - kRangesNamed);
  return text;
}

// Those of now first.
std::vector<std::string> all_of(const std::vector<ModeStretch>& stretches, Part part) {
  std::vector<std::string> different;
  for (auto stretch = stretches.rbegin(); stretch != stretches.rend(); ++stretch) {
    for (const std::string& one : single_ones((*stretch).*part)) {
      if (std::ranges::find(different, one) == different.end()) different.push_back(one);
    }
  }
  for (std::string& one : different) one += steps_of(stretches, part, one);
  return different;
}

}  // namespace

std::string RunMode::line() const {
  std::string text = method;
  for (const std::string& one : other_numbers) join(text, one);
  join(text, stand_ins);
  return text;
}

RunMode run_mode(std::span<const rundb::ModeRow> rows) {
  RunMode mode;
  for (const rundb::ModeRow& row : rows) {
    if (!mode.stretches.empty()) {
      ModeStretch& before = mode.stretches.back();
      if (before.first_step >= row.step_id) {  // no step ran in it
        mode.stretches.pop_back();
      } else {
        before.last_step = row.step_id - 1;
      }
    }
    if (!mode.stretches.empty() && mode.stretches.back().line == row.line) {
      mode.stretches.back().last_step = -1;
      continue;
    }
    mode.stretches.push_back(stretch_of(row));
  }
  if (mode.stretches.empty()) return mode;
  mode.method = mode.stretches.back().method;
  mode.other_numbers = all_of(mode.stretches, &ModeStretch::other_numbers);
  mode.stand_ins =
      fmt::format("{}", fmt::join(all_of(mode.stretches, &ModeStretch::stand_ins), ", "));
  return mode;
}

}  // namespace sluice::analyze
