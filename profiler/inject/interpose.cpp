// The functions that stand in front of the C library's, by LD_PRELOAD: each does what it is asked,
// and notes it where the file is one that is recorded.
//
// Thread contract: that of the functions.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>

#include "profiler/inject/file_table.h"
#include "profiler/inject/own_files.h"
#include "profiler/inject/process_recording.h"

#define SLUICE_IN_FRONT extern "C" __attribute__((visibility("default")))

namespace {

using namespace sluice::inject;

// The next function of that name: the C library's, or that of another who stands in front of it.
template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

template <typename Function, typename... Arguments>
ssize_t transfer(Function* function, const char* call, Direction direction, int fd,
                 Arguments... arguments) {
  if (!is_recording()) return function(fd, arguments...);
  const OpenFile file = file_of(fd);
  if (!is_recorded(file)) return function(fd, arguments...);
  const std::int64_t begin_ns = now_ns();
  const ssize_t result = function(fd, arguments...);
  note_transfer(call, file, direction, begin_ns, result);
  return result;
}

// Both ends are transfers, of the same time.
template <typename Function>
ssize_t copied(const char* call, int in, int out, Function function) {
  if (!is_recording()) return function();
  const OpenFile from = file_of(in);
  const OpenFile to = file_of(out);
  const std::int64_t begin_ns = now_ns();
  const ssize_t result = function();
  if (is_recorded(from)) note_transfer(call, from, Direction::read, begin_ns, result);
  if (is_recorded(to)) note_transfer(call, to, Direction::write, begin_ns, result);
  return result;
}

int flush(int (*function)(int), const char* call, int fd) {
  if (!is_recording()) return function(fd);
  const OpenFile file = file_of(fd);
  if (!is_recorded(file)) return function(fd);
  const std::int64_t begin_ns = now_ns();
  const int result = function(fd);
  note_flush(call, file, begin_ns, result);
  return result;
}

// What has just been opened: the recording's own, or the program's, which may have an old number.
int opened(int fd) {
  if (fd < 0) return fd;
  if (is_at_own_work()) return taken_out_of_the_way(fd);
  forget(fd);
  return fd;
}

bool has_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

}  // namespace

// `static` inside each: asked of the linker once. dlsym itself moves no bytes.
#define SLUICE_TRANSFER(NAME, DIRECTION, PARAMETERS, ...)                \
  SLUICE_IN_FRONT ssize_t NAME PARAMETERS {                              \
    static const auto function = next<ssize_t PARAMETERS>(#NAME);        \
    return transfer(function, #NAME, Direction::DIRECTION, __VA_ARGS__); \
  }

SLUICE_TRANSFER(read, read, (int fd, void* to, size_t size), fd, to, size)
SLUICE_TRANSFER(write, write, (int fd, const void* from, size_t size), fd, from, size)
SLUICE_TRANSFER(pread, read, (int fd, void* to, size_t size, off_t at), fd, to, size, at)
SLUICE_TRANSFER(pwrite, write, (int fd, const void* from, size_t size, off_t at), fd, from, size,
                at)
SLUICE_TRANSFER(pread64, read, (int fd, void* to, size_t size, off64_t at), fd, to, size, at)
SLUICE_TRANSFER(pwrite64, write, (int fd, const void* from, size_t size, off64_t at), fd, from,
                size, at)
SLUICE_TRANSFER(readv, read, (int fd, const iovec* parts, int count), fd, parts, count)
SLUICE_TRANSFER(writev, write, (int fd, const iovec* parts, int count), fd, parts, count)
SLUICE_TRANSFER(preadv, read, (int fd, const iovec* parts, int count, off_t at), fd, parts, count,
                at)
SLUICE_TRANSFER(pwritev, write, (int fd, const iovec* parts, int count, off_t at), fd, parts, count,
                at)
SLUICE_TRANSFER(preadv64, read, (int fd, const iovec* parts, int count, off64_t at), fd, parts,
                count, at)
SLUICE_TRANSFER(pwritev64, write, (int fd, const iovec* parts, int count, off64_t at), fd, parts,
                count, at)
SLUICE_TRANSFER(preadv2, read, (int fd, const iovec* parts, int count, off_t at, int flags), fd,
                parts, count, at, flags)
SLUICE_TRANSFER(pwritev2, write, (int fd, const iovec* parts, int count, off_t at, int flags), fd,
                parts, count, at, flags)
SLUICE_TRANSFER(preadv64v2, read, (int fd, const iovec* parts, int count, off64_t at, int flags),
                fd, parts, count, at, flags)
SLUICE_TRANSFER(pwritev64v2, write, (int fd, const iovec* parts, int count, off64_t at, int flags),
                fd, parts, count, at, flags)
// What _FORTIFY_SOURCE makes of read and pread.
SLUICE_TRANSFER(__read_chk, read, (int fd, void* to, size_t size, size_t room), fd, to, size, room)
SLUICE_TRANSFER(__pread_chk, read, (int fd, void* to, size_t size, off_t at, size_t room), fd, to,
                size, at, room)
SLUICE_TRANSFER(__pread64_chk, read, (int fd, void* to, size_t size, off64_t at, size_t room), fd,
                to, size, at, room)

// From file to file within the system: `cp` and `install` copy so.
SLUICE_IN_FRONT ssize_t copy_file_range(int in, off64_t* in_at, int out, off64_t* out_at,
                                        size_t size, unsigned flags) {
  static const auto function =
      next<ssize_t(int, off64_t*, int, off64_t*, size_t, unsigned)>("copy_file_range");
  return copied("copy_file_range", in, out,
                [&] { return function(in, in_at, out, out_at, size, flags); });
}
SLUICE_IN_FRONT ssize_t sendfile(int out, int in, off_t* at, size_t size) {
  static const auto function = next<ssize_t(int, int, off_t*, size_t)>("sendfile");
  return copied("sendfile", in, out, [&] { return function(out, in, at, size); });
}
SLUICE_IN_FRONT ssize_t sendfile64(int out, int in, off64_t* at, size_t size) {
  static const auto function = next<ssize_t(int, int, off64_t*, size_t)>("sendfile64");
  return copied("sendfile64", in, out, [&] { return function(out, in, at, size); });
}

SLUICE_IN_FRONT int fsync(int fd) {
  static const auto function = next<int(int)>("fsync");
  return flush(function, "fsync", fd);
}
SLUICE_IN_FRONT int fdatasync(int fd) {
  static const auto function = next<int(int)>("fdatasync");
  return flush(function, "fdatasync", fd);
}

// The C library's own reads within are not to be seen. What fits its buffer may move nothing, and
// is not noted.
namespace {
constexpr std::size_t kStreamBuffer = BUFSIZ / 2;  // glibc's is a block of the file: 4096 bytes

template <typename Function>
size_t streamed(const char* call, Direction direction, size_t size, size_t count, FILE* stream,
                Function function) {
  if (!is_recording() || size * count < kStreamBuffer || stream == nullptr) return function();
  const OpenFile file = file_of(::fileno(stream));
  if (!is_recorded(file)) return function();
  const std::int64_t begin_ns = now_ns();
  const size_t moved = function();
  const bool has_failed = moved == 0 && std::ferror(stream) != 0;
  note_transfer(call, file, direction, begin_ns,
                has_failed ? -1 : static_cast<std::int64_t>(moved * size));
  return moved;
}
}  // namespace

#define SLUICE_STREAM(NAME, DIRECTION, BYTES)                                         \
  SLUICE_IN_FRONT size_t NAME(BYTES bytes, size_t size, size_t count, FILE* stream) { \
    static const auto function = next<size_t(BYTES, size_t, size_t, FILE*)>(#NAME);   \
    return streamed(#NAME, Direction::DIRECTION, size, count, stream,                 \
                    [&] { return function(bytes, size, count, stream); });            \
  }
SLUICE_STREAM(fread, read, void*)
SLUICE_STREAM(fread_unlocked, read, void*)
SLUICE_STREAM(fwrite, write, const void*)
SLUICE_STREAM(fwrite_unlocked, write, const void*)
// What _FORTIFY_SOURCE makes of them.
SLUICE_IN_FRONT size_t __fread_chk(void* to, size_t room, size_t size, size_t count, FILE* stream) {
  static const auto function = next<size_t(void*, size_t, size_t, size_t, FILE*)>("__fread_chk");
  return streamed("fread", Direction::read, size, count, stream,
                  [&] { return function(to, room, size, count, stream); });
}

// Opening and closing -----------------------------------------------------------------------------

#define SLUICE_OPEN(NAME)                                                 \
  SLUICE_IN_FRONT int NAME(const char* path, int flags, ...) {            \
    static const auto function = next<int(const char*, int, ...)>(#NAME); \
    va_list rest;                                                         \
    va_start(rest, flags);                                                \
    const mode_t mode = has_mode(flags) ? va_arg(rest, mode_t) : 0;       \
    va_end(rest);                                                         \
    return opened(function(path, flags, mode));                           \
  }
#define SLUICE_OPENAT(NAME)                                                    \
  SLUICE_IN_FRONT int NAME(int folder, const char* path, int flags, ...) {     \
    static const auto function = next<int(int, const char*, int, ...)>(#NAME); \
    va_list rest;                                                              \
    va_start(rest, flags);                                                     \
    const mode_t mode = has_mode(flags) ? va_arg(rest, mode_t) : 0;            \
    va_end(rest);                                                              \
    return opened(function(folder, path, flags, mode));                        \
  }
SLUICE_OPEN(open)
SLUICE_OPEN(open64)
SLUICE_OPENAT(openat)
SLUICE_OPENAT(openat64)

// The recording's files stay open, whatever a program closes: as if they had not been.
SLUICE_IN_FRONT int close(int fd) {
  static const auto function = next<int(int)>("close");
  if (is_own(fd)) {
    if (!is_at_own_work()) return errno = EBADF, -1;
    forget_own(fd);
  }
  forget(fd);
  return function(fd);
}
SLUICE_IN_FRONT int fclose(FILE* file) {
  static const auto function = next<int(FILE*)>("fclose");
  if (file != nullptr) forget(::fileno(file));
  return function(file);
}
SLUICE_IN_FRONT int close_range(unsigned first, unsigned last, int flags) {
  static const auto function = next<int(unsigned, unsigned, int)>("close_range");
  if (function == nullptr) return errno = ENOSYS, -1;
  constexpr unsigned kHighest = 1 << 16;
  forget_from(static_cast<int>(first < kHighest ? first : kHighest),
              static_cast<int>(last < kHighest ? last : kHighest));
  // In pieces around the recording's own.
  for (unsigned fd = first; fd <= last && fd < kHighest; ++fd) {
    if (!is_own(static_cast<int>(fd))) continue;
    if (fd > first && function(first, fd - 1, flags) != 0) return -1;
    first = fd + 1;
  }
  return first > last ? 0 : function(first, last, flags);
}
SLUICE_IN_FRONT void closefrom(int first) {
  static const auto function = next<void(int)>("closefrom");
  forget_from(first, 1 << 16);
  if (function != nullptr) close_range(static_cast<unsigned>(first < 0 ? 0 : first), ~0u, 0);
}
SLUICE_IN_FRONT int dup2(int from, int to) {
  static const auto function = next<int(int, int)>("dup2");
  if (is_own(to)) return errno = EBADF, -1;
  forget(to);
  return function(from, to);
}
SLUICE_IN_FRONT int dup3(int from, int to, int flags) {
  static const auto function = next<int(int, int, int)>("dup3");
  if (is_own(to)) return errno = EBADF, -1;
  forget(to);
  return function(from, to, flags);
}

// The end without destructors, and what takes the process's place ---------------------------------

SLUICE_IN_FRONT void _exit(int status) {
  static const auto function = next<void(int)>("_exit");
  end_recording_for_good();
  function(status);
  __builtin_unreachable();
}
SLUICE_IN_FRONT void _Exit(int status) { _exit(status); }

SLUICE_IN_FRONT int execve(const char* path, char* const arguments[], char* const environment[]) {
  static const auto function = next<int(const char*, char* const[], char* const[])>("execve");
  end_recording();
  return function(path, arguments, environment);
}
SLUICE_IN_FRONT int execv(const char* path, char* const arguments[]) {
  static const auto function = next<int(const char*, char* const[])>("execv");
  end_recording();
  return function(path, arguments);
}
SLUICE_IN_FRONT int execvp(const char* file, char* const arguments[]) {
  static const auto function = next<int(const char*, char* const[])>("execvp");
  end_recording();
  return function(file, arguments);
}
SLUICE_IN_FRONT int execvpe(const char* file, char* const arguments[], char* const environment[]) {
  static const auto function = next<int(const char*, char* const[], char* const[])>("execvpe");
  end_recording();
  return function(file, arguments, environment);
}
