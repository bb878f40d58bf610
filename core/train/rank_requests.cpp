#include "core/train/rank_requests.h"

#include <charconv>
#include <utility>

namespace sluice::train {
namespace {

// What a rank tells: a line for each thing that it is asked for, whose parts are apart by ASCII's
// own separator, which is in no setting.
constexpr char kPart = '\x1f';
constexpr char kLine = '\x1e';
constexpr std::string_view kStop = "stop";
constexpr std::string_view kSnapshot = "snapshot";

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

void add_line(std::string& text, std::string_view line) {
  text += line;
  text += kLine;
}

std::string line_of(const AskedChange& change) {
  std::string line = fmt::format("{}{}{}", change.id, kPart, change.who);
  for (const std::string& setting : change.settings) line += kPart + setting;
  return line;
}

AskedChange change_of(std::string_view line) {
  const std::vector<std::string_view> parts = split(line, kPart);
  CHECK_GE(parts.size(), 3U);
  AskedChange change;
  std::from_chars(parts[0].data(), parts[0].data() + parts[0].size(), change.id);
  change.who = parts[1];
  change.settings.assign(parts.begin() + 2, parts.end());
  return change;
}

}  // namespace

bool RankRequests::wants_stop() {
  std::string mine;
  for (TrainRequests* requests : inner_) {
    if (requests->wants_stop()) add_line(mine, kStop);
    if (requests->wants_snapshot()) add_line(mine, kSnapshot);
    for (const AskedChange& change : requests->take_changes()) add_line(mine, line_of(change));
  }
  const auto heard = ranks_.gather_text(mine, "what is asked of the run");
  if (!heard.ok()) return true;  // no step can follow; the communicator has the failure
  bool stops = false;
  for (const std::string& text : *heard) {
    for (const std::string_view line : split(text, kLine)) {
      if (line == kStop) {
        stops = true;
      } else if (line == kSnapshot) {
        wants_snapshot_ = true;
      } else {
        changes_.push_back(change_of(line));
      }
    }
  }
  return stops;
}

std::vector<AskedChange> RankRequests::take_changes() { return std::exchange(changes_, {}); }

}  // namespace sluice::train
