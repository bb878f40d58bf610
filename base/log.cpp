#include "base/log.h"

#include <cstdio>

namespace sluice {

void log_info(std::string_view message) {
  std::fprintf(stderr, "sluice: %.*s\n", static_cast<int>(message.size()), message.data());
}

void log_warning(std::string_view message) {
  std::fprintf(stderr, "sluice: warning: %.*s\n", static_cast<int>(message.size()), message.data());
}

}  // namespace sluice
