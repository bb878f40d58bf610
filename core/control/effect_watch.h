#pragma once
// Whether a change did harm: the medians of a figure over steps before and after it, and the rule
// by which the run takes the change back.
//
// A rule is FIGURE>+N%, with one of step_time, forward, backward, update, loss: "step_time>+5%"
// says that the change is taken back if the steps after it take more than 5 % longer. The step in
// which a change takes effect is not counted: what was under way before it ends there.
//
// Thread contract: one thread.

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/control/messages.h"

namespace sluice::control {

struct RevertRule {
  std::string figure;
  double more_than = 0;  // 0.05: five per cent more
};
Result<RevertRule> parse_revert_rule(const std::string& text);

inline constexpr std::int64_t kWatchStepsDefault = 5;
inline constexpr std::size_t kBeforeStepsMax = 8;

struct WatchResult {
  std::int64_t change = 0;
  bool harmed = false;
  std::vector<std::string> undo;  // settings that were in force before
  std::string message;            // "step_time 1.84 s -> 2.31 s (+25.5 %, limit +5 %)"
};

// The watches of one run. Later changes end a watch: its figure would be of both.
class EffectWatch {
 public:
  void on_step(const RunStatus& status);
  // Knobs change between the steps told so far and those to come. The change whose watch that ends,
  // if one was on.
  std::optional<std::int64_t> on_change();
  // After on_change(): this is the change to watch, and `undo` what was in force before it.
  void begin(std::int64_t change, const RevertRule& rule, std::int64_t step_count,
             std::vector<std::string> undo);
  std::optional<WatchResult> take_result();

 private:
  struct Watch {
    std::int64_t change;
    RevertRule rule;
    std::int64_t step_count;
    std::vector<std::string> undo;
    double before;
    std::vector<double> after;
    bool first_is_over = false;
  };

  std::deque<RunStatus> last_;    // since the last change
  std::deque<RunStatus> before_;  // it
  bool has_changed_ = false;
  bool comes_with_another_ = false;  // no step lies between the last change and the one before
  std::optional<Watch> watch_;
  std::optional<WatchResult> result_;
};

}  // namespace sluice::control
