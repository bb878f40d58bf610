#pragma once
// The pieces of the open run that are not there yet, by name: for whoever waits for a picture that
// stays.
//
// Thread contract: the frame thread.

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::gui {

struct Session;

// A run is open. Predictions are kPredictions (gui/app/picture_wait.h). A live run is ahead of what
// is read of it: what it had when it was opened counts.
std::vector<std::string> awaited_pieces(const Session& session, std::int64_t spans_at_opening);

}  // namespace sluice::gui
