#pragma once
// The files that the recording itself has open in the recorded program: at numbers that programs do
// not get, and not to be closed by it.
//
// Thread contract: every function from any thread.

namespace sluice::inject {

// The recording has just opened it; the number that it has from now on.
int taken_out_of_the_way(int fd);
bool is_own(int fd);
void forget_own(int fd);  // the recording closes it

// Whether this thread is at the recording's own work: what it does meanwhile is not recorded.
bool is_at_own_work();
class OwnWork {
 public:
  OwnWork();
  ~OwnWork();
  OwnWork(const OwnWork&) = delete;
  OwnWork& operator=(const OwnWork&) = delete;
};
void begin_own_thread();  // this thread does nothing else

}  // namespace sluice::inject
