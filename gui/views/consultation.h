#pragma once
// The questions to the advisor about the open run, their times, and the answers that still hold:
// one does while the knobs are in force that were when it was asked for.
//
// Thread contract: the frame thread.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gui/data/advisor.h"

namespace sluice::gui {

struct RunSnapshot;
struct Verdict;

class Consultation {
 public:
  // Null: no run is open. It starts from the beginning.
  void open(std::unique_ptr<Advisor> advisor);
  std::unique_ptr<Advisor> release() { return std::move(advisor_); }
  const Advisor* advisor() const { return advisor_.get(); }

  // Once a frame, with what was read.
  void pick_up(const RunSnapshot* run);
  void ask(Question question, std::vector<std::string> settings = {});
  // Asks what every setting would gain, when the run tells something new about it. `now_seconds`
  // comes from a steady clock; a live run is asked about at most twice a minute.
  void ask_for_suggestions(const Verdict& verdict, double now_seconds);

  // The last answer, unless knobs have changed since it was asked for; null: none that holds.
  std::shared_ptr<const Advice> advice(Question question) const;
  // There is an answer, and its settings are no longer in force.
  bool is_outdated(Question question) const;
  // Made of the last answer to Question::suggest.
  const analyze::TurnNext& next() const { return next_; }
  // The settings of a proposal, once.
  std::optional<std::vector<std::string>> take_proposal();

 private:
  void take_suggestions();

  std::unique_ptr<Advisor> advisor_;
  analyze::TurnNext next_;
  std::size_t change_count_ = 0;  // of knobs, in the record so far
  bool awaits_steps_ = false;     // with what was changed last
  // How many changes there were when a question was asked, by its number.
  std::map<std::uint64_t, std::size_t> asked_at_change_;
  std::size_t advised_steps_ = 0;  // recorded when the advisor was asked last; 0: never
  double advised_at_ = -1e9;
  std::uint64_t proposal_taken_ = 0;
  std::uint64_t suggestions_taken_ = 0;
};

}  // namespace sluice::gui
