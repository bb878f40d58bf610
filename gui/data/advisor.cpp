#include "gui/data/advisor.h"

#include <sys/resource.h>

#include <array>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "gui/data/child_process.h"
#include "gui/data/published.h"

namespace sluice::gui {

struct Advisor::Shared {
  Shared(std::string path, std::function<void()> when_answered, Answers who_answers)
      : database(std::move(path)), wake(std::move(when_answered)), answer(std::move(who_answers)) {}

  struct Asked {
    std::uint64_t number = 0;
    std::vector<std::string> settings;
    bool waits = false;
  };

  void work();
  // The one that a person waits for most; none: it is over.
  std::optional<Question> next(Asked& asked);

  const std::string database;
  const std::function<void()> wake;
  const Answers answer;
  std::atomic<bool> is_over = false;
  std::array<Published<Advice>, kQuestions> answers;
  Mutex mutex;
  CondVar changed;
  std::array<Asked, kQuestions> asked GUARDED_BY(mutex);
  std::uint64_t last_number GUARDED_BY(mutex) = 0;
  std::thread thread;
};

std::optional<Question> Advisor::Shared::next(Asked& taken) {
  const MutexLock lock(mutex);
  while (!is_over) {
    for (const Question question :
         {Question::knobs, Question::what_if, Question::tune, Question::suggest}) {
      Asked& one = asked[static_cast<std::size_t>(question)];
      if (!one.waits) continue;
      one.waits = false;
      taken = one;
      return question;
    }
    changed.wait(mutex);
  }
  return std::nullopt;
}

void Advisor::Shared::work() {
  ::setpriority(PRIO_PROCESS, 0, kNiceness);  // of this thread alone, as Linux has it
  Asked taken;
  for (auto question = next(taken); question; question = next(taken)) {
    Advice advice = answer(database, *question, taken.settings, [this] { return is_over.load(); });
    if (is_over) return;
    advice.number = taken.number;
    advice.settings = taken.settings;
    answers[static_cast<std::size_t>(*question)].publish(
        std::make_shared<const Advice>(std::move(advice)));
    wake();
  }
}

Advisor::Advisor(const std::string& database, std::function<void()> wake, Answers answers)
    : shared_(std::make_unique<Shared>(database, std::move(wake), std::move(answers))) {
  shared_->thread = std::thread([shared = shared_.get()] { shared->work(); });
}

Advisor::~Advisor() {
  {
    const MutexLock lock(shared_->mutex);
    shared_->is_over = true;
    shared_->changed.notify_all();
  }
  shared_->thread.join();
}

std::uint64_t Advisor::ask(Question question, std::vector<std::string> settings) {
  const MutexLock lock(shared_->mutex);
  Shared::Asked& asked = shared_->asked[static_cast<std::size_t>(question)];
  asked = {++shared_->last_number, std::move(settings), true};
  shared_->changed.notify_all();
  return asked.number;
}

std::shared_ptr<const Advice> Advisor::advice(Question question) const {
  return shared_->answers[static_cast<std::size_t>(question)].latest();
}

bool Advisor::is_working(Question question) const {
  const std::shared_ptr<const Advice> last = advice(question);
  const MutexLock lock(shared_->mutex);
  const std::uint64_t number = shared_->asked[static_cast<std::size_t>(question)].number;
  return number != 0 && (last == nullptr || last->number != number);
}

}  // namespace sluice::gui
