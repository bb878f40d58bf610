#include "core/session/program_change.h"

namespace sluice::session {
namespace {

// No number that the socket gives.
constexpr std::int64_t kProgram = -1;

}  // namespace

std::vector<AskedChange> ProgramChange::take_changes() {
  return {{kProgram, settings_, "program"}};
}

void ProgramChange::on_change_refused(std::int64_t /*step*/, TimeNs /*ts*/,
                                      const AskedChange& asked, const Error& why) {
  if (asked.id == kProgram) outcome_ = why;
}

}  // namespace sluice::session
