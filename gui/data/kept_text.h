#pragma once
// A small file that follows a text, written by a thread of its own.
//
// Thread contract: one thread. Destroying it waits until the last text is in the file.

#include <memory>
#include <string>

namespace sluice::gui {

class KeptText {
 public:
  // An empty path keeps nothing.
  explicit KeptText(const std::string& path);
  ~KeptText();
  KeptText(const KeptText&) = delete;
  KeptText& operator=(const KeptText&) = delete;

  // The last of several texts in a row is written. A file that cannot be written keeps nothing.
  void keep(std::string text);

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;  // null: nothing is kept
};

}  // namespace sluice::gui
