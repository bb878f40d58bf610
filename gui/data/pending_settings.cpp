#include "gui/data/pending_settings.h"

#include "base/setting_text.h"

namespace sluice::gui {

void PendingSettings::choose(const std::string& key, const std::string& value,
                             const std::string& in_force) {
  refusal_.clear();
  if (value == in_force) {
    chosen_.erase(key);
  } else {
    chosen_[key] = value;
  }
}

void PendingSettings::clear() { *this = PendingSettings(); }

const std::string* PendingSettings::chosen(const std::string& key) const {
  const auto found = chosen_.find(key);
  return found == chosen_.end() ? nullptr : &found->second;
}

std::vector<std::string> PendingSettings::settings() const {
  std::vector<std::string> settings;
  for (const auto& [key, value] : chosen_) settings.push_back(key + "=" + value);
  return settings;
}

void PendingSettings::follow(const ControlState& state) {
  const AskedSet* asked = sent_ == 0 ? nullptr : state.asked_set(sent_);
  if (asked != nullptr && asked->outcome == SetOutcome::refused) {
    refusal_ = asked->message;
    sent_ = 0;
  } else if (asked != nullptr && asked->outcome != SetOutcome::waiting) {
    // The run writes values in its own way ("1MiB" for "1024KiB"), so texts are not compared.
    for (const std::string& setting : asked->settings) {
      const auto found = chosen_.find(key_of(setting));
      // Another value may have been chosen since.
      if (found != chosen_.end() && found->second == value_of(setting)) chosen_.erase(found);
    }
    sent_ = 0;
  }
  if (sent_ != 0) return;
  std::erase_if(chosen_, [&state](const auto& entry) {
    const control::Knob* knob = state.knob(entry.first);
    return knob != nullptr && knob->value == entry.second;
  });
}

}  // namespace sluice::gui
