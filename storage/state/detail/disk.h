#pragma once
// Every call of this folder that changes what lies on the drives. Creation and commit go through
// one Disk, so that a test can fail, cut or stop at any of them by overriding before().
//
// Thread contract: stateless but for what before() keeps; sync() is called from several threads at
// a time, the rest from one.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "storage/io/file.h"
#include "storage/state/state_store.h"

namespace sluice::state::detail {

struct DiskCall {
  enum class Kind : std::uint8_t {
    make_directory,
    allocate,
    write,
    sync,
    sync_directory,
    rename,
    remove
  };
  Kind kind;
  const std::string& path;
  const io::File* file = nullptr;     // allocate, write, sync
  std::int64_t offset_bytes = 0;      // write
  std::span<const std::byte> data{};  // write
};

class Disk {
 public:
  explicit Disk(Durability durability) : durability_(durability) {}
  virtual ~Disk() = default;

  // With its parents, each durable; fine if it is there.
  Status make_directory(const std::string& path);
  Status allocate(const io::File& file, std::int64_t size_bytes);
  Status write(const io::File& file, std::int64_t offset_bytes, std::span<const std::byte> data);
  Status sync(const io::File& file);
  Status sync_directory(const std::string& path);
  Status rename(const std::string& from, const std::string& to);
  Status remove(const std::string& path);

 protected:
  // An error is returned in place of making the call.
  virtual Status before(const DiskCall&) { return ok_status(); }

 private:
  Durability durability_;  // never: the syncs do nothing
};

// "PATH: cannot ACTION: No such file or directory".
Error system_error(const std::string& path, std::string_view action, int error_number);

}  // namespace sluice::state::detail
