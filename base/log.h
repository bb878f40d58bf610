#pragma once
// Messages to people, on stderr, a line each, escaped for a terminal. Safe from any thread.

#include <string_view>

namespace sluice {

void log_info(std::string_view message);     // "sluice: ..."
void log_warning(std::string_view message);  // "sluice: warning: ..."

}  // namespace sluice
