#include "gui/data/change_effects.h"

#include <catch2/catch.hpp>

#include "gui/data/span_scan.h"

namespace sluice::gui {
namespace {

constexpr TimeNs kEffectMs = 1'000'000;

std::vector<rundb::StepRow> steps_of(const std::vector<TimeNs>& durs_ms) {
  std::vector<rundb::StepRow> steps;
  for (std::size_t i = 0; i < durs_ms.size(); ++i) {
    const auto id = static_cast<std::int64_t>(i);
    steps.push_back({.id = id,
                     .ts = id * 1000 * kEffectMs,
                     .dur = durs_ms[i] * kEffectMs,
                     .loss = 5 - 0.1 * static_cast<double>(i)});
  }
  return steps;
}

rundb::KnobChangeRow change_at(std::int64_t step, const std::string& knob = "buffers") {
  return {.step_id = step, .knob = knob, .old_value = "3", .new_value = "6", .who = "gui"};
}

}  // namespace

TEST_CASE("medians of eight steps on each side, without the step in which the change begins") {
  // 700 and 900 are the ninth on their sides; 5 is the step of the change.
  const auto steps = steps_of({700, 100, 101, 99, 100, 100, 100, 100, 100, 5,  //
                               50, 51, 49, 50, 50, 50, 50, 50, 900});
  const std::vector<rundb::KnobChangeRow> changes = {change_at(9)};
  const auto effects = change_effects(changes, steps, {});
  REQUIRE(effects.size() == 1);
  CHECK(effects[0].before_count == 8);
  CHECK(effects[0].after_count == 8);
  CHECK(effects[0].is_settled);
  const FigureEffect* time = effects[0].figure("step_time");
  REQUIRE(time != nullptr);
  CHECK(time->before == Approx(0.1));
  CHECK(time->after == Approx(0.05));
  CHECK(time->change() == Approx(-0.5));
  CHECK(time->is_more_than_noise());
  REQUIRE(effects[0].figure("loss") != nullptr);
  CHECK(effects[0].figure("loss")->before == Approx(4.55));
  CHECK(effects[0].figure("update") == nullptr);  // no operations were recorded
}

TEST_CASE("neither side goes past another change, and knobs of one step are one change") {
  const auto steps = steps_of({100, 100, 100, 70, 80, 80, 80, 1, 40, 40});
  const std::vector<rundb::KnobChangeRow> changes = {change_at(3), change_at(3, "prefetch"),
                                                     change_at(7)};
  const auto effects = change_effects(changes, steps, {});
  REQUIRE(effects.size() == 2);
  CHECK(effects[0].changes.size() == 2);
  CHECK(effects[0].before_count == 3);
  CHECK(effects[0].after_count == 3);  // 4, 5, 6
  CHECK(effects[0].is_settled);
  CHECK(effects[0].figure("step_time")->after == Approx(0.08));
  CHECK(effects[1].before_count == 4);  // 3 to 6: the run counts its first step, too
  CHECK(effects[1].figure("step_time")->before == Approx(0.08));
  CHECK(effects[1].after_count == 2);
  CHECK_FALSE(effects[1].is_settled);
}

TEST_CASE("a difference within the steps' own scatter is not more than noise") {
  const auto steps = steps_of({100, 120, 90, 110, 100, 120, 90, 110, 100, 112, 94, 123, 101, 108});
  const std::vector<rundb::KnobChangeRow> changes = {change_at(7)};
  const auto effects = change_effects(changes, steps, {});
  const FigureEffect& time = *effects[0].figure("step_time");
  CHECK(time.noise > 0.01);
  CHECK_FALSE(time.is_more_than_noise());
}

TEST_CASE("phases and bytes are compared where the record has them on both sides") {
  const auto steps = steps_of({100, 100, 100, 60, 60});
  std::vector<PhaseRow> phases;
  for (const std::int64_t step : {0, 1, 3, 4}) {
    phases.push_back(
        {.step = step,
         .dur_ns = {10 * kEffectMs, 20 * kEffectMs, step < 2 ? 70 * kEffectMs : 30 * kEffectMs},
         .shared_link_bytes = step < 2 ? 1000 : 500});
  }
  const std::vector<rundb::KnobChangeRow> changes = {change_at(2)};
  const auto effects = change_effects(changes, steps, phases);
  CHECK(effects[0].figure("update")->difference() == Approx(-0.04));
  CHECK(effects[0].figure("forward")->difference() == Approx(0));
  CHECK(effects[0].figure("shared_link")->change() == Approx(-0.5));
  phases.resize(2);
  const auto half = change_effects(changes, steps, phases);
  CHECK(half[0].figure("update") == nullptr);
  CHECK(half[0].figure("step_time") != nullptr);
}

TEST_CASE("a phase that grew while steps got no longer is explained, and no other") {
  const auto note_of = [](std::vector<TimeNs> steps_ms, std::array<TimeNs, 3> before,
                          std::array<TimeNs, 3> after) {
    const auto steps = steps_of(steps_ms);
    std::vector<PhaseRow> phases;
    for (const std::int64_t step : {0, 1, 3, 4})
      phases.push_back({.step = step, .dur_ns = step < 2 ? before : after});
    const std::vector<rundb::KnobChangeRow> changes = {change_at(2)};
    return phase_note(change_effects(changes, steps, phases)[0]);
  };
  // The updates end earlier, so forward is counted from earlier on.
  CHECK(note_of({100, 100, 100, 80, 80}, {10 * kEffectMs, 20 * kEffectMs, 70 * kEffectMs},
                {20 * kEffectMs, 20 * kEffectMs, 40 * kEffectMs})
            .starts_with("Forward starts counting when the previous updates end."));
  CHECK(note_of({100, 100, 100, 80, 80}, {10 * kEffectMs, 20 * kEffectMs, 70 * kEffectMs},
                {5 * kEffectMs, 25 * kEffectMs, 50 * kEffectMs})
            .starts_with("backward takes more of a step that is no longer: phases overlap"));
  CHECK(note_of({100, 100, 100, 120, 120}, {10 * kEffectMs, 20 * kEffectMs, 70 * kEffectMs},
                {20 * kEffectMs, 20 * kEffectMs, 80 * kEffectMs}) == "");
  CHECK(note_of({100, 100, 100, 80, 80}, {10 * kEffectMs, 20 * kEffectMs, 70 * kEffectMs},
                {10 * kEffectMs, 20 * kEffectMs, 50 * kEffectMs}) == "");
}

TEST_CASE("a change without steps on a side says why it has no figures") {
  const auto steps = steps_of({100, 100, 100});
  const std::vector<rundb::KnobChangeRow> last = {change_at(2)};
  CHECK(change_effects(last, steps, {})[0].why_empty.starts_with("No whole step has ended"));
  const std::vector<rundb::KnobChangeRow> twice = {change_at(1), change_at(2)};
  CHECK(change_effects(twice, steps, {})[0].why_empty.starts_with("The next change came"));
  const std::vector<rundb::StepRow> late = {steps.begin() + 1, steps.end()};
  const std::vector<rundb::KnobChangeRow> first = {change_at(1)};
  CHECK(change_effects(first, late, {})[0].why_empty.starts_with("There is no step before"));
  const std::vector<rundb::KnobChangeRow> planned = {change_at(0)};
  CHECK(change_effects(planned, steps, {}).empty());
  CHECK(change_effects({}, steps, {}).empty());
}

TEST_CASE("changes are said in one line") {
  const std::vector<rundb::KnobChangeRow> changes = {change_at(2), change_at(2, "queue_depth")};
  CHECK(changes_text(changes) == "buffers 3 \u2192 6, queue_depth 3 \u2192 6");
}

}  // namespace sluice::gui
