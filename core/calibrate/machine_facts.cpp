#include "core/calibrate/machine_facts.h"

#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "base/process_limits.h"

namespace sluice::calibrate {
namespace {

std::string processor_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) {
      return line.substr(line.find(": ") + 2);
    }
  }
  return "unknown processor";
}

// The text of a file must not end its line or its string.
std::string plain(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) {
        return c == '"' || c == '\\' || c == '\x7f' || static_cast<unsigned char>(c) < ' ';
      },
      ' ');
  return text;
}

}  // namespace

MachineFacts machine_facts() {
  MachineFacts facts;
  facts.processor = plain(processor_model());
  const ProcessFacts process = process_facts();
  facts.processor_count = static_cast<int>(processor_limit(process).count);
  // A limit that somebody has set bounds what runs here may plan with, as a smaller machine would.
  facts.memory_bytes = std::min(process.machine_memory_bytes, set_memory_limit(process).count);
  utsname name = {};
  if (uname(&name) == 0) facts.kernel = plain(fmt::format("{} {}", name.sysname, name.release));
  const time_t now = time(nullptr);
  tm utc = {};
  gmtime_r(&now, &utc);
  std::array<char, 32> date{};
  strftime(date.data(), date.size(), "%Y-%m-%d %H:%M UTC", &utc);
  facts.date = date.data();
  return facts;
}

}  // namespace sluice::calibrate
