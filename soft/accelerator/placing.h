#pragma once
// Lets a kernel of the CPU make its outputs in memory that is there already: the memory of the
// device. While a Placing lives, its thread's requests of the CPU's allocator that are as large as
// a waiting place get that place. What a kernel does then is its own affair: whoever wants the
// output there compares addresses, and copies what came to lie elsewhere.
//
// Thread contract: a Placing belongs to its thread; the allocator is for any.

#include <cstddef>
#include <vector>

namespace sluice::soft_accelerator {

struct Place {
  void* memory = nullptr;
  std::size_t size_bytes = 0;
  bool is_taken = false;
};

class Placing {
 public:
  explicit Placing(std::vector<Place> places);
  Placing(const Placing&) = delete;
  Placing& operator=(const Placing&) = delete;
  ~Placing();

  void* take(std::size_t size_bytes);  // null where no place is that large
  void give(void* memory);

 private:
  std::vector<Place> places_;
};

}  // namespace sluice::soft_accelerator
