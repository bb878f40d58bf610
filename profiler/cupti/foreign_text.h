#pragma once
// Names of kernels: text in memory that is CUPTI's, behind a pointer that lies in a record. A
// damaged record has any pointer, so the text is copied by the kernel, which refuses where reading
// would be a fault.
//
// Thread contract: any thread.

#include <optional>
#include <string>

namespace sluice::cupti {

// Nothing where the text cannot be read. At most 4096 bytes of it.
std::optional<std::string> copy_foreign_text(const char* text);

// As people write it, if it is a mangled C++ name; else as it is.
std::string readable_kernel_name(const std::string& name);

}  // namespace sluice::cupti
