#pragma once
// The calendar's time as run databases have it: "2026-11-22T02:40:00Z".
//
// Thread contract: free function, any thread.

#include <ctime>
#include <string>

namespace sluice {

inline std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace sluice
