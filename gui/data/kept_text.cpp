#include "gui/data/kept_text.h"

#include <fstream>
#include <optional>
#include <thread>

#include "base/mutex.h"

namespace sluice::gui {

struct KeptText::Shared {
  std::string path;
  Mutex mutex;
  CondVar changed;
  std::optional<std::string> text GUARDED_BY(mutex);  // none: the file has the last one
  bool is_over GUARDED_BY(mutex) = false;
  std::thread thread;

  // False: there is none, and none will come.
  bool take(std::string& taken) {
    const MutexLock lock(mutex);
    while (!text && !is_over) changed.wait(mutex);
    if (!text) return false;
    taken = *std::move(text);
    text.reset();
    return true;
  }
  void write_all() {
    for (std::string taken; take(taken);) {
      std::ofstream file(path, std::ios::binary | std::ios::trunc);
      file << taken;
    }
  }
};

KeptText::KeptText(const std::string& path) {
  if (path.empty()) return;
  shared_ = std::make_unique<Shared>();
  shared_->path = path;
  shared_->thread = std::thread([shared = shared_.get()] { shared->write_all(); });
}

KeptText::~KeptText() {
  if (shared_ == nullptr) return;
  {
    const MutexLock lock(shared_->mutex);
    shared_->is_over = true;
  }
  shared_->changed.notify_all();
  shared_->thread.join();
}

void KeptText::keep(std::string text) {
  if (shared_ == nullptr) return;
  {
    const MutexLock lock(shared_->mutex);
    shared_->text = std::move(text);
  }
  shared_->changed.notify_all();
}

}  // namespace sluice::gui
