#pragma once
// The seam to the kernel's asynchronous I/O: submit a batch, reap what has finished. Three
// implementations: io_uring, posix (a named alternative where io_uring is forbidden) and a
// fault-injecting wrapper for tests.
//
// Thread contract: one owner thread an engine calls submit and reap. completion_fd() may be polled
// by that thread. Errors: each request has its own outcome; a bad one never fails the batch. A
// short transfer is continued by the engine until done or until the kernel says why not (end of
// file: ErrorCode::corrupt "is cut short"); EINTR and EAGAIN are retried inside. Every error names
// the file, the offset, the length asked for and what came. submit and reap allocate nothing but
// the text of errors. The destructor waits for what the kernel is still doing with the callers'
// memory.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "storage/io/file.h"

namespace sluice::io {

enum class IoDirection : std::uint8_t { read, write };

struct IoRequest {
  const File* file = nullptr;
  std::int64_t offset_bytes = 0;  // page-aligned for a direct file
  std::span<std::byte> data;  // the caller's; must live until reaped; only read from when writing
  IoDirection direction = IoDirection::read;
  std::uint64_t user_data = 0;  // comes back in the completion
};

struct IoCompletion {
  std::uint64_t user_data = 0;
  Status status;
};

class IoEngine {
 public:
  virtual ~IoEngine() = default;

  // Takes as many requests from the front as there is room for (queue_depth - inflight_count) and
  // says how many. A request that is bad in itself (misaligned, empty, no file) is taken and
  // completes with an error.
  virtual std::size_t submit(std::span<const IoRequest> requests) = 0;

  // Fills `completions` with what has finished, waiting until there are at least `at_least` (0 = do
  // not wait; never waits for more than are in flight). Returns how many.
  virtual std::size_t reap(std::span<IoCompletion> completions, std::size_t at_least) = 0;

  // Readable (an eventfd) while reap() has something to hand out; reap() itself clears it, so that
  // whoever polls need not read it. It may rarely be readable without reason, where a transfer had
  // to be continued: reap(completions, 0) then gives 0. Lets one thread wait for I/O and other
  // things at once.
  virtual int completion_fd() const = 0;

  // Tells the kernel about buffers that will be used often (io_uring: registered buffers; requests
  // whose data lies inside one then use the fixed form). They must not overlap and must live until
  // they are replaced, or as long as the engine. A call replaces what was registered before (with
  // no buffers: by nothing); nothing may be in flight.
  virtual Status register_buffers(std::span<const std::span<std::byte>> buffers) = 0;

  virtual std::size_t inflight_count() const = 0;
  virtual std::size_t queue_depth() const = 0;
  virtual std::string_view name() const = 0;  // "io_uring", "posix", "faulty(io_uring)"
};

enum class IoEngineKind { io_uring, posix };

struct IoEngineOptions {
  IoEngineKind kind = IoEngineKind::io_uring;
  std::size_t queue_depth = 64;  // most requests in flight
  std::size_t thread_count = 4;  // posix only
};

// A kernel that forbids io_uring is an error that says to choose `io_engine=posix`.
Result<std::unique_ptr<IoEngine>> open_io_engine(const IoEngineOptions& options);

}  // namespace sluice::io
