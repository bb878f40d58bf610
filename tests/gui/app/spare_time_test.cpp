#include "gui/app/spare_time.h"

#include <sched.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

namespace sluice::gui {
namespace {

int class_of_new_thread() {
  int policy = -1;
  std::thread([&] { policy = ::sched_getscheduler(0); }).join();
  return policy;
}

void do_and_wait(SpareTime& spare_time, const std::function<void()>& work) {
  std::promise<void> done;
  spare_time.do_ordinarily([&] {
    work();
    done.set_value();
  });
  done.get_future().wait();
}

}  // namespace

// In a process of its own, since nothing leads back: the test below begins it.
TEST_CASE("a process gives way", "[.gives_way]") {
  SpareTime spare_time;
  const int ordinary = ::sched_getscheduler(0);
  Mutex mutex;
  CondVar changed;
  int policy_of_waiting = -1;
  bool may_look = false;
  std::thread waiting([&] {
    const MutexLock lock(mutex);
    while (!may_look) changed.wait(mutex);
    policy_of_waiting = ::sched_getscheduler(0);
  });
  spare_time.give_way();
  spare_time.give_way();
  do_and_wait(spare_time, [] {});
  {
    const MutexLock lock(mutex);
    may_look = true;
  }
  changed.notify_all();
  waiting.join();
  CHECK(::sched_getscheduler(0) == SCHED_IDLE);
  CHECK(policy_of_waiting == SCHED_IDLE);
  CHECK(class_of_new_thread() == SCHED_IDLE);
  int policy_of_work = -1;
  int policy_of_its_thread = -1;
  do_and_wait(spare_time, [&] {
    policy_of_work = ::sched_getscheduler(0);
    policy_of_its_thread = class_of_new_thread();
  });
  CHECK(policy_of_work == ordinary);
  CHECK(policy_of_its_thread == ordinary);
}

TEST_CASE("what was handed over is done in order, and before the end") {
  std::vector<int> done;
  {
    SpareTime spare_time;
    for (const int number : {1, 2, 3})
      spare_time.do_ordinarily([&done, number] { done.push_back(number); });
  }
  CHECK(done == std::vector<int>{1, 2, 3});
}

TEST_CASE("all threads of a window give way, and what it begins does not") {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  CHECK(std::system(("'" + self + "' '[.gives_way]'").c_str()) == 0);
}

}  // namespace sluice::gui
