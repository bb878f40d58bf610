#include "profiler/sample/own_threads.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

namespace sluice::sample {

std::vector<OwnThread> own_threads() {
  std::vector<OwnThread> threads;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const std::string number = entry.path().filename();
    OwnThread thread;
    std::from_chars(number.data(), number.data() + number.size(), thread.tid);
    std::ifstream file(entry.path() / "comm");
    std::getline(file, thread.name);
    threads.push_back(std::move(thread));
  }
  std::ranges::sort(threads, {}, &OwnThread::tid);
  return threads;
}

}  // namespace sluice::sample
