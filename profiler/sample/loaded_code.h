#pragma once
// The code that is loaded into this process: which library an address is of, and where the function
// that it lies in begins, as the library's unwinding table (.eh_frame_hdr) has it.
//
// Thread contract: free functions, any thread.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::sample {

// Where one address lies.
struct CodePlace {
  std::string path = {};        // of the library's file; "": the address is of no loaded code
  std::uint64_t load_bias = 0;  // an address less this is what the file calls it
  std::uint64_t begin = 0;      // of the function; the address itself where that is not known
  std::uint64_t end = 0;        // behind the function
  // What the memory has of the file's first bytes: a file that was replaced since has others.
  std::vector<std::byte> head = {};

  std::string library() const;  // "libtorch_cpu.so"
};
std::vector<CodePlace> places_of_code(std::span<const std::uint64_t> addresses);

}  // namespace sluice::sample
