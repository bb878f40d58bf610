#pragma once
// Questions about what a change should gain (advice.h), answered by a thread of their own at low
// priority, one at a time.
//
// Thread contract: one thread, the one that draws. Destroying it stops the question under way
// before its next simulated step.

#include <functional>
#include <memory>

#include "gui/data/advice.h"

namespace sluice::gui {

// As advice_on(); another stands in for it in tests of what is shown.
using Answers = std::function<decltype(advice_on)>;

class Advisor {
 public:
  // `wake` is called by the thread when there is an answer.
  explicit Advisor(
      const std::string& database, std::function<void()> wake = [] {}, Answers answers = advice_on);
  ~Advisor();
  Advisor(const Advisor&) = delete;
  Advisor& operator=(const Advisor&) = delete;

  // Its number. The last of several of a kind that wait counts.
  std::uint64_t ask(Question question, std::vector<std::string> settings = {});
  // The last answer of a kind; null: none yet.
  std::shared_ptr<const Advice> advice(Question question) const;
  bool is_working(Question question) const;  // asked and not answered

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

}  // namespace sluice::gui
