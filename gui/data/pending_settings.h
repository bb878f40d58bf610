#pragma once
// Values that somebody at the window has chosen and the run has not taken over. They stand in one
// place, whichever view they were chosen in, and go to the run together.
//
// A value stays here until it is in force, or is taken back: what was sent is still only chosen.
//
// Thread contract: one thread.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gui/data/control_link.h"

namespace sluice::gui {

class PendingSettings {
 public:
  // The value in force chosen again is none.
  void choose(const std::string& key, const std::string& value, const std::string& in_force);
  void forget(const std::string& key) { chosen_.erase(key); }
  void clear();

  bool empty() const { return chosen_.empty(); }
  std::size_t size() const { return chosen_.size(); }
  const std::string* chosen(const std::string& key) const;  // null: none
  std::vector<std::string> settings() const;                // "key=value", by key

  // All of them went to the run, by this number.
  void note_sent(std::uint64_t number) { sent_ = number; }
  bool is_under_way() const { return sent_ != 0; }
  // Why the run refused them; empty: it did not, or other values were chosen since.
  const std::string& refusal() const { return refusal_; }

  // News of the run: what is in force is chosen no longer; what was refused stays.
  void follow(const ControlState& state);

 private:
  std::map<std::string, std::string> chosen_;
  std::uint64_t sent_ = 0;
  std::string refusal_;
};

}  // namespace sluice::gui
