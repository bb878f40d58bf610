#pragma once
// How programs are called in commands that are printed to be pasted, and where this one's libraries
// lie.
//
// Thread contract: free functions, any thread.

#include <string>
#include <vector>

namespace sluice {

// A program that was called as `called_as` (argv[0]), as a shell reads it: by its bare name where
// `search_path` (PATH) leads to the same program, else as it was called.
std::string pasted_program(const std::string& called_as, const std::string& search_path);

// In front of a program that `rank_count` ranks run: mpirun, as docs/collective.md says that they
// are to be started; nothing for one.
std::vector<std::string> launcher_of_ranks(int rank_count);

// Path of a shared library of ours that is loaded when it is needed: bin/ has the programs, lib/
// beside it the libraries.
std::string path_of_library(const std::string& name);

}  // namespace sluice
