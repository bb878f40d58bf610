#pragma once
// Messages to people, on stderr, a line each, escaped for a terminal.
//
// Thread contract: any thread; a line is written as a whole.

#include <string_view>

namespace sluice {

void log_info(std::string_view message);     // "sluice: ..."
void log_warning(std::string_view message);  // "sluice: warning: ..."

}  // namespace sluice
