#pragma once
// An engine that counts a run's requests and notes which are for one kind of file.

#include <string>
#include <vector>

#include "tests/core/train/failing_run.h"

namespace sluice {

class FileRequests final : public ForwardingEngine {
 public:
  struct Counts {
    std::uint64_t requests = 0;
    std::vector<std::uint64_t> writes;  // of the file, by their number among all requests
    std::vector<std::uint64_t> reads;
  };
  // `name`: "activations.slc".
  FileRequests(std::unique_ptr<io::IoEngine> inner, std::string name, Counts& counts)
      : ForwardingEngine(std::move(inner)), name_(std::move(name)), counts_(counts) {}

  std::size_t submit(std::span<const io::IoRequest> requests) override {
    const std::size_t count = ForwardingEngine::submit(requests);
    for (const io::IoRequest& request : requests.first(count)) {
      if (request.file->path().ends_with(name_)) {
        (request.direction == io::IoDirection::write ? counts_.writes : counts_.reads)
            .push_back(counts_.requests);
      }
      counts_.requests += 1;
    }
    return count;
  }

 private:
  std::string name_;
  Counts& counts_;
};

}  // namespace sluice
