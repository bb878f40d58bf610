#pragma once
// The name of this program in commands that it prints to be pasted (base/program_name.h).
//
// Thread contract: main thread.

#include <string>

namespace sluice::cli {

void keep_program_name(const char* called_as);  // argv[0]
const std::string& program();                   // quoted for a shell

// "mpirun -n 4 ... sluice", as it is called here.
std::string program_of_ranks(int rank_count);

}  // namespace sluice::cli
