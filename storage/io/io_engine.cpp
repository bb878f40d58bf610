#include "storage/io/io_engine.h"

#include "storage/io/detail/engines.h"

namespace sluice::io {
namespace {

constexpr std::size_t kQueueDepthMax = 32768;  // io_uring's own limit
constexpr std::size_t kThreadCountMax = 1024;  // more is a mistake, not a wish

Status check_count(const char* name, std::size_t count, std::size_t count_max) {
  if (count >= 1 && count <= count_max) return ok_status();
  return make_error(ErrorCode::config, "{} = {} is out of range; choose 1 to {}", name, count,
                    count_max);
}

}  // namespace

Result<std::unique_ptr<IoEngine>> open_io_engine(const IoEngineOptions& options) {
  RETURN_IF_ERROR(check_count("queue_depth", options.queue_depth, kQueueDepthMax));
  if (options.kind == IoEngineKind::io_uring) return detail::open_uring_engine(options);
  RETURN_IF_ERROR(check_count("thread_count", options.thread_count, kThreadCountMax));
  return detail::open_posix_engine(options);
}

}  // namespace sluice::io
