#include "core/train/rank_requests.h"

#include <charconv>
#include <utility>

#include "core/train/ranks.h"

namespace sluice::train {
namespace {

constexpr std::string_view kStop = "stop";
constexpr std::string_view kSnapshot = "snapshot";
constexpr std::string_view kChange = "change";

// The message of a rank is a row of texts, each behind its length: who asks, and so what stands in
// a text, is a stranger's affair.
void add(std::string& row, std::string_view text) {
  row += fmt::format("{}:", text.size());
  row += text;
}

std::string_view take(std::string_view& row) {
  std::size_t size = 0;
  const std::size_t colon = row.find(':');
  CHECK(colon != std::string_view::npos);
  std::from_chars(row.data(), row.data() + colon, size);
  CHECK_LE(size, row.size() - colon - 1);
  const std::string_view text = row.substr(colon + 1, size);
  row.remove_prefix(colon + 1 + size);
  return text;
}

void add(std::string& row, const session::AskedChange& change) {
  add(row, kChange);
  add(row, fmt::format("{}", change.id));
  add(row, change.who);
  add(row, fmt::format("{}", change.settings.size()));
  for (const std::string& setting : change.settings) add(row, setting);
}

std::int64_t take_number(std::string_view& row) {
  const std::string_view text = take(row);
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

session::AskedChange take_change(std::string_view& row) {
  session::AskedChange change;
  change.id = take_number(row);
  change.who = take(row);
  for (std::int64_t left = take_number(row); left > 0; --left) {
    change.settings.emplace_back(take(row));
  }
  return change;
}

}  // namespace

bool RankRequests::wants_stop() {
  std::string mine;
  for (session::RunRequests* requests : inner_) {
    if (requests->wants_stop()) add(mine, kStop);
    if (requests->wants_snapshot()) add(mine, kSnapshot);
    for (const session::AskedChange& change : requests->take_changes()) add(mine, change);
  }
  const auto heard = ranks_.gather_text(mine, "what is asked of the run");
  if (!heard.ok()) return true;  // no step can follow; the communicator has the failure
  bool stops = false;
  for (const std::string& text : *heard) {
    std::string_view row = text;
    while (!row.empty()) {
      const std::string_view what = take(row);
      if (what == kStop) stops = true;
      if (what == kSnapshot) wants_snapshot_ = true;
      if (what == kChange) changes_.push_back(take_change(row));
    }
  }
  return stops;
}

std::vector<session::AskedChange> RankRequests::take_changes() {
  return std::exchange(changes_, {});
}

}  // namespace sluice::train
