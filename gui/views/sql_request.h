#pragma once
// A question that another view puts into the SQL console.
//
// Thread contract: the frame thread.

#include <string>
#include <utility>

namespace sluice::gui {

class SqlRequest {
 public:
  void put(std::string question) { question_ = std::move(question); }
  // Once; empty: there is none.
  std::string take() { return std::exchange(question_, {}); }

 private:
  std::string question_;
};

}  // namespace sluice::gui
