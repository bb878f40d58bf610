#pragma once
// Opening files without waiting for anybody and without being led elsewhere. A pipe in a file's
// place would hold up open(2) for ever; a link that another user has put under a name that we are
// about to write to would have us empty a file of ours (docs/decisions.md, 137).
//
// Thread contract: free functions, any thread.

#include <functional>
#include <string>

#include "base/status.h"

namespace sluice {

// given: what the user names; links are followed, whoever has the file may have it.
// own: what we make, lock or write in place: the name itself, no link and no second name of a file,
//      of this user or of the owner of its folder (whom a file there can do nothing that the folder
//      could not).
enum class FileTrust { given, own };

// The descriptor that open(2) with `flags` gives, if it is of a regular file; closed on exec, and
// without O_NONBLOCK afterwards. Where something else lies there the error says what; `failed`
// words what the kernel says. O_CREAT is for FileTrust::own, and O_TRUNC for nobody.
Result<int> open_regular_file(const std::string& path, int flags, FileTrust trust,
                              const std::function<Error(int error_number)>& failed);

// Empty while the path leads to the open file. Else what has happened to the file, as in "it was
// removed": an open file can be written to long after its name is gone.
std::string why_name_is_lost(int descriptor, const std::string& path);

// "; the file size limit ..." for EFBIG, empty for everything else: what to do where the kernel
// says only "File too large".
std::string file_limit_advice(int error_number);

}  // namespace sluice
