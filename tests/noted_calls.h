#pragma once
// In which order files are made durable and named, where there is no Disk to give to the function
// that does it: fdatasync, fsync and rename of the program this is linked into take notes.
//
// Thread contract: one NotedCalls at a time, on the thread that makes the calls.

#include <string>
#include <vector>

namespace sluice {

// While it lives: "sync NAME" and "rename NAME", of the file that is named.
class NotedCalls {
 public:
  NotedCalls();
  ~NotedCalls();
  NotedCalls(const NotedCalls&) = delete;
  NotedCalls& operator=(const NotedCalls&) = delete;

  const std::vector<std::string>& calls() const { return calls_; }
  void add(const char* call, const std::string& path);

 private:
  std::vector<std::string> calls_;
};

}  // namespace sluice
