#pragma once
// Whether a step with overlap=exact is updated ahead of its decision. What the decision refutes is
// done twice, so after a refuted step speculation pauses until so many decisions in a row were the
// expected ones: however often a run clips or overflows, at most one step in kPauseSteps + 1 is
// done again. In a session a step whose gradients were replaced counts as one that is not as
// expected. What is done ahead changes no number, so nothing of this is in a commit.
//
// Thread contract: the schedule's thread.

namespace sluice::session {

class SpeculationPolicy {
 public:
  static constexpr int kPauseSteps = 50;

  explicit SpeculationPolicy(int pause_steps = kPauseSteps)
      : pause_steps_(pause_steps), as_expected_in_a_row_(pause_steps) {}

  bool speculates() const { return as_expected_in_a_row_ >= pause_steps_; }
  // After every step, whether it was updated ahead or not.
  void on_decision(bool is_as_expected) {
    if (!is_as_expected) {
      as_expected_in_a_row_ = 0;
    } else if (!speculates()) {
      as_expected_in_a_row_ += 1;
    }
  }

 private:
  int pause_steps_;
  int as_expected_in_a_row_;  // a run begins without a pause
};

}  // namespace sluice::session
