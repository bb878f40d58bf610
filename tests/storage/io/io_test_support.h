#pragma once
// What the tests of storage/io share: a folder on a drive, files with known contents, and loops
// around submit and reap.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "storage/io/file.h"
#include "storage/io/io_engine.h"
#include "storage/io/page_aligned_buffer.h"

namespace sluice::io::testing {

// A fresh folder under $TMPDIR or /var/tmp (which is on a drive where /tmp may not be), removed
// with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// A file system in memory on a folder of its own; needs root. `options` as for mount(8).
class MountedFileSystem {
 public:
  MountedFileSystem(const std::string& type, const std::string& options);
  MountedFileSystem(const MountedFileSystem&) = delete;
  MountedFileSystem& operator=(const MountedFileSystem&) = delete;
  ~MountedFileSystem();
  bool is_mounted() const { return refusal_.empty(); }
  const std::string& refusal() const { return refusal_; }
  std::string file(const std::string& name) const { return folder_.file(name); }
  void make_read_only();

 private:
  TemporaryFolder folder_;
  std::string refusal_;
};

PageAlignedBuffer allocate(std::int64_t size_bytes);
void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed);
bool equal(std::span<const std::byte> a, std::span<const std::byte> b);

File open_file(const std::string& path, FileAccess access, Caching caching = Caching::direct);
// A new file of `size_bytes` (any number) with the pattern of `seed`, open for both directions.
File make_file(const std::string& path, std::int64_t size_bytes, std::uint64_t seed,
               Caching caching = Caching::direct);

std::unique_ptr<IoEngine> open_engine(IoEngineKind kind, std::size_t queue_depth,
                                      std::size_t thread_count = 4);

// Submits all, however many fit at once, and returns the completions in the order they came.
std::vector<IoCompletion> run_all(IoEngine& engine, std::span<const IoRequest> requests);
Status run_one(IoEngine& engine, const IoRequest& request);

// Whether the fd is readable; waits up to `timeout_ms`.
bool is_readable(int fd, int timeout_ms = 0);
// Longer than anything takes that is going to happen at all.
inline constexpr int kLongMs = 60'000;

}  // namespace sluice::io::testing
