#include "base/log.h"

#include <cstdio>

#include "base/escaped_text.h"

namespace sluice {

void log_info(std::string_view message) {
  std::fprintf(stderr, "sluice: %s\n", escaped_for_terminal(message).c_str());
}

void log_warning(std::string_view message) {
  std::fprintf(stderr, "sluice: warning: %s\n", escaped_for_terminal(message).c_str());
}

}  // namespace sluice
