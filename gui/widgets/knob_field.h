#pragma once
// A knob to turn: its name, the value in force, the value chosen beside it in amber, and a control
// of the kind that its type asks for. What is chosen is not in force: the filled part of a slider
// is what the run has, its grab is what was chosen.
//
// Thread contract: the frame thread, inside an ImGui window.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::gui {

enum class KnobKind : std::uint8_t { integer, number, boolean, word, bytes, shares, text };
// By the type that a run names (core/control/knob.h); unknown ones are text.
KnobKind knob_kind(const std::string& type);

struct KnobField {
  std::string key;
  KnobKind kind = KnobKind::text;
  std::optional<double> min;  // of numbers; none: unbounded
  std::optional<double> max;
  std::vector<std::string> words;        // to choose from
  std::vector<std::string> share_names;  // of kind shares: whose they are
  std::string unit;
  std::string tip;       // what it does, range, default
  std::string in_force;  // as text, as settings have it
  bool can_turn = true;
};

// `chosen` begins as the value in force or the one chosen before; true: it is another one now.
bool draw_knob_field(const KnobField& field, std::string& chosen);

}  // namespace sluice::gui
