#include "storage/rundb/detail/shared_index.h"

#include <sqlite3.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>

#include "base/check.h"

namespace sluice::rundb::detail {
namespace {

#ifdef MADV_POPULATE_WRITE
constexpr int kPopulateWrite = MADV_POPULATE_WRITE;
#else
constexpr int kPopulateWrite = 23;  // linux/mman.h, since Linux 5.14
#endif

// EFAULT: an access would have ended in SIGBUS. After another error the index is as SQLite made it:
// an older kernel, or one that may only be read.
bool has_no_space(volatile void* address, int size_bytes) {
  return ::madvise(const_cast<void*>(address), static_cast<std::size_t>(size_bytes),
                   kPopulateWrite) != 0 &&
         errno == EFAULT;
}

// The system's own: written once, before a file is opened.
sqlite3_vfs* system_vfs = nullptr;
const sqlite3_io_methods* system_methods = nullptr;

int map_whole(sqlite3_file* file, int region, int region_bytes, int may_extend,
              volatile void** address) {
  const int code = system_methods->xShmMap(file, region, region_bytes, may_extend, address);
  if (code != SQLITE_OK || *address == nullptr || !has_no_space(*address, region_bytes))
    return code;
  *address = nullptr;
  return SQLITE_FULL;
}

int open_file(sqlite3_vfs* /*ours*/, const char* name, sqlite3_file* file, int flags,
              int* out_flags) {
  const int code = system_vfs->xOpen(system_vfs, name, file, flags, out_flags);
  if (code != SQLITE_OK || (flags & SQLITE_OPEN_MAIN_DB) == 0) return code;
  static const sqlite3_io_methods with_whole_index = [file] {
    system_methods = file->pMethods;
    sqlite3_io_methods methods = *system_methods;
    methods.xShmMap = map_whole;
    return methods;
  }();
  // Each way to lock has methods of its own; the system's VFS takes one way for all databases.
  if (file->pMethods == system_methods) file->pMethods = &with_whole_index;
  return code;
}

}  // namespace

const char* whole_index_vfs() {
  static sqlite3_vfs ours = [] {
    system_vfs = sqlite3_vfs_find(nullptr);
    CHECK(system_vfs != nullptr);
    sqlite3_vfs vfs = *system_vfs;
    vfs.zName = "sluice";
    vfs.pNext = nullptr;
    vfs.xOpen = open_file;
    return vfs;
  }();
  static const int code = sqlite3_vfs_register(&ours, 0);
  CHECK_EQ(code, SQLITE_OK);
  return ours.zName;
}

}  // namespace sluice::rundb::detail
