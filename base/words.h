#pragma once
// The words of what the window, the page, the terminal and docs/ all speak of: one word a concept.
// The three surfaces take them from here, and docs say them as they stand here.
// tests/structure/words_test.py finds strays: behind `not` stands what a concept is not called.
//
// Thread contract: constants.

namespace sluice::words {

// The verdict ------------------------------------------------------------------------------------
// Ahead of the time of a step, or of kAsLong where there is none.
inline constexpr const char* kWhy = "Why a step takes";  // not "Why a step takes so long"
inline constexpr const char* kAsLong = "as long as it does";
// Changes that are predicted to make a step shorter: of knobs, of what needs a new run, of several.
inline constexpr const char* kTurnNext = "Turn next";  // not "What to turn next"
inline constexpr const char* kAnotherRun = "Another run";
inline constexpr const char* kTogether = "Several together";
inline constexpr const char* kStretches = "What each change brought";

// Views and sections -----------------------------------------------------------------------------
inline constexpr const char* kOverview = "Overview";
inline constexpr const char* kTimeline = "Timeline";
inline constexpr const char* kSteps = "Steps";
// Forward, backward and update of every step.
inline constexpr const char* kPhases = "Where the time went";  // not "How steps divide"
// Counts, sums and quantiles of operations by their stage.
inline constexpr const char* kStatistics = "Statistics";
inline constexpr const char* kLinks = "Links";
inline constexpr const char* kDevices = "Devices";
inline constexpr const char* kRuns = "Runs";  // all runs of a folder
inline constexpr const char* kKnobs = "Knobs";
inline constexpr const char* kCompare = "Compare";
// The gaps of the recording, the machine, the settings. A loss is the model's.
inline constexpr const char* kRunInfo =
    "Recording and run info";  // not "Losses and facts", "Facts of the run"

// The changes of knobs ---------------------------------------------------------------------------
// Values that were set and are not applied yet.
inline constexpr const char* kPending = "pending changes";
inline constexpr const char* kApply = "Apply";
inline constexpr const char* kDiscard = "Discard";
inline constexpr const char* kWhatIf = "What if";  // not "Predict what is chosen"
inline constexpr const char* kTune = "Tune";       // not "Propose settings"
inline constexpr const char* kRevert = "Revert";   // not "Take back the last change"

// Shares -------------------------------------------------------------------------------------
inline constexpr const char* kOfLimit = "of limit";        // not "share of its room"
inline constexpr const char* kWhenActive = "when active";  // not "while it moves"

}  // namespace sluice::words
