#pragma once
// What a change should gain, before it is made: asked of the program `sluice`, which has the
// simulation that this one lacks. It runs as a process of its own at low priority, at most one at a
// time, and dies with the window.
//
//   suggest   sluice predict RUN.db --json               every setting by itself, and the best of
//                                                        several knobs together
//   what_if   sluice predict RUN.db --json key=value...   these settings together
//   tune      sluice tune RUN.db --json ...               a whole proposal; --hold KEY keeps one
//   knobs     sluice knobs RUN.db --json --recorded       what a run that is over had, with words
//
// Thread contract: one thread, the one that draws. Destroying it ends the process under way.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/control/knob.h"
#include "profiler/analyze/turn_next.h"

namespace sluice::gui {

enum class Question : std::uint8_t { suggest, what_if, tune, knobs, count_ };
inline constexpr std::size_t kQuestions = static_cast<std::size_t>(Question::count_);

struct Advice {
  std::uint64_t number = 0;             // of the question
  std::vector<std::string> settings;    // that were asked with
  analyze::PredictedChanges predicted;  // of what_if and tune: at most one, in `each`
  std::vector<control::Knob> knobs;     // of knobs
  std::string problem;                  // not empty: why there is no advice
};

struct AdvisorOptions {
  std::string program;  // empty: find_sluice()
  std::function<void()> wake = [] {};
};

class Advisor {
 public:
  explicit Advisor(const std::string& database, AdvisorOptions options = {});
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

// What the program printed, read. Errors: it is not what was expected.
Result<Advice> parse_prediction(const std::string& json);
Result<Advice> parse_proposal(const std::string& json);
Result<Advice> parse_knobs(const std::string& json);

}  // namespace sluice::gui
