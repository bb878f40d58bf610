#pragma once
// Names of GPU kernels as a table has room for them. A demangled name of a template has hundreds of
// characters, and says what it is in the first of them; the record has all of it.
//
// Thread contract: free functions.

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

// Without what it returns, its parameters, and the namespaces that most kernels are in; at most
// `size_max` characters, four or more, of which the last three are dots where some were left out.
// Other names are only cut.
std::string short_kernel_name(std::string_view name, std::size_t size_max);

// What a function runs, where it is one of libtorch's that only run another.
std::string_view what_runs(std::string_view name);

}  // namespace sluice
