#include "core/activation/saved_tensors.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "base/check.h"
#include "base/clock.h"
#include "base/free_path.h"
#include "storage/state/checksum.h"

namespace sluice::activation {
namespace {

// One transfer: large enough for a drive's rate, and eight of them are always to be had.
constexpr std::int64_t kPieceBytes = 1 << 20;
constexpr std::int64_t kReservedPieces = 16;

std::int64_t piece_bytes_of(std::int64_t in_flight_bytes) {
  return std::min(kPieceBytes, round_down(in_flight_bytes / 8, kPageBytes));
}

// Without a name nobody else can write to it, and its room comes back however the process ends.
Result<io::File> open_unnamed(const std::string& folder) {
  const std::string path = free_path(folder, fmt::format("activations-{}", getpid()), ".tmp");
  io::File::Options options{.access = io::FileAccess::create_new, .caching = io::Caching::direct};
  auto file = io::File::open(path, options);
  if (!file.ok() && file.error().code() == ErrorCode::unsupported) {
    options.caching = io::Caching::buffered;
    file = io::File::open(path, options);
  }
  if (!file.ok()) return file.error().with_context("saved tensors have no file");
  if (unlink(path.c_str()) != 0)
    return make_error(ErrorCode::io, "{}: cannot take its name away: {}", path, strerror(errno));
  return file;
}

Error with_advice(const Error& error) {
  return make_error(error.code(),
                    "{}; the folder of saved tensors is state=, and with a larger keep= or "
                    "min_bytes= less of them leaves memory",
                    error.message());
}

}  // namespace

void SavedTensors::Direction::begin() {
  if (active_count++ == 0) since_ns = monotonic_now_ns();
}

void SavedTensors::Direction::end() {
  if (--active_count == 0) busy_ns += monotonic_now_ns() - since_ns;
}

// Open and close ----------------------------------------------------------------------------------

Result<std::unique_ptr<SavedTensors>> SavedTensors::open(const Options& options) {
  if (options.in_flight_bytes < kLeastInFlightBytes) {
    return make_error(ErrorCode::config, "in_flight={}: it is {} or more", options.in_flight_bytes,
                      kLeastInFlightBytes);
  }
  const std::int64_t piece_bytes = piece_bytes_of(options.in_flight_bytes);
  // The kernel gives pages as they are touched, the lowest first.
  auto memory = io::PageAlignedBuffer::allocate(round_down(options.in_flight_bytes, piece_bytes));
  if (!memory.ok())
    return memory.error().with_context("in_flight= is more than there is; lower it");
  ASSIGN_OR_RETURN(io::File file, open_unnamed(options.folder));
  std::unique_ptr<SavedTensors> saved(
      new SavedTensors(std::move(file), std::move(*memory), piece_bytes));
  RETURN_IF_ERROR(saved->start_workers(options.worker_count));
  return saved;
}

SavedTensors::SavedTensors(io::File file, io::PageAlignedBuffer memory, std::int64_t piece_bytes)
    : file_(std::move(file)), piece_bytes_(piece_bytes) {
  buffers_.memory = std::move(memory);
  const int count = static_cast<int>(buffers_.memory.size_bytes() / piece_bytes_);
  for (int number = 0; number < count; ++number) buffers_.free.insert(number);
}

Status SavedTensors::start_workers(int count) {
  // std::thread reports a refusal by exception only; it ends here.
  try {
    for (int number = 0; number < count; ++number) workers_.emplace_back([this] { work(); });
  } catch (const std::system_error& refusal) {
    return make_error(ErrorCode::memory,
                      "started {} of {} threads for saved tensors, then: {}; raise `ulimit -u`",
                      workers_.size(), count, refusal.what());
  }
  return ok_status();
}

SavedTensors::~SavedTensors() {
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  work_changed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

SavedTensors::Counts SavedTensors::counts() const {
  const MutexLock lock(mutex_);
  Counts counts = tally_.counts;
  counts.write_busy_ns = tally_.writing.busy_ns;
  counts.read_busy_ns = tally_.reading.busy_ns;
  return counts;
}

// Save --------------------------------------------------------------------------------------------

Result<SavedTensors::Number> SavedTensors::save(std::span<const std::byte> bytes,
                                                std::int64_t rank) {
  const MutexLock lock(mutex_);
  is_reading_ = false;
  const Number number = next_number_++;
  tensors_[number].rank = rank;
  tally_.counts.tensor_count += 1;
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), static_cast<std::size_t>(piece_bytes_));
    const Status added = add_piece(number, bytes.first(size));
    if (!added.ok()) {
      let_go(number);
      return added.error();
    }
    bytes = bytes.subspan(size);
  }
  return number;
}

Status SavedTensors::add_piece(Number number, std::span<const std::byte> bytes) {
  const TimeNs since_ns = monotonic_now_ns();
  while (failure_.ok() && buffers_.free.empty() && queues_.kept.empty()) changed_.wait(mutex_);
  tally_.counts.save_wait_ns += monotonic_now_ns() - since_ns;
  RETURN_IF_ERROR(failure_);
  ASSIGN_OR_RETURN(const std::int64_t place, take_place());
  Piece piece{.buffer = take_buffer(),
              .place = place,
              .size_bytes = static_cast<std::int64_t>(bytes.size())};
  const std::span<std::byte> room = buffer(piece);
  mutex_.unlock();
  std::ranges::copy(bytes, room.begin());
  piece.checksum = state::checksum(room.first(bytes.size()));
  mutex_.lock();
  Tensor& tensor = tensors_.at(number);
  tensor.pieces.push_back(piece);
  queues_.to_write.emplace_back(number, tensor.pieces.size() - 1);
  work_changed_.notify_one();
  return ok_status();
}

bool SavedTensors::has_bytes(Number number, std::span<const std::byte> bytes) const {
  std::vector<std::uint64_t> checksums;
  {
    const MutexLock lock(mutex_);
    for (const Piece& piece : tensors_.at(number).pieces) checksums.push_back(piece.checksum);
  }
  for (const std::uint64_t wanted : checksums) {
    const std::size_t size = std::min(bytes.size(), static_cast<std::size_t>(piece_bytes_));
    if (state::checksum(bytes.first(size)) != wanted) return false;
    bytes = bytes.subspan(size);
  }
  return bytes.empty();
}

// Load --------------------------------------------------------------------------------------------

Status SavedTensors::load(Number number, std::span<std::byte> into, After after) {
  const MutexLock lock(mutex_);
  is_reading_ = true;
  Tensor& tensor = tensors_.at(number);
  const std::int64_t rank = tensor.rank;
  tensor.busy_count += 1;
  change_rank(number, kFirst);  // workers read its further pieces
  work_changed_.notify_all();
  Status status = ok_status();
  for (std::size_t piece = 0; piece < tensor.pieces.size() && status.ok(); ++piece) {
    const auto size = static_cast<std::size_t>(tensor.pieces[piece].size_bytes);
    CHECK_LE(size, into.size());
    status = copy_out(number, piece, into.first(size));
    into = into.subspan(size);
  }
  change_rank(number, after == After::wanted ? rank : kLast);
  end_work(number);
  return status;
}

Status SavedTensors::copy_out(Number number, std::size_t piece, std::span<std::byte> into) {
  RETURN_IF_ERROR(bring(number, piece));
  Piece& found = tensors_.at(number).pieces[piece];
  const std::span<const std::byte> from = buffer(found).first(into.size());
  const bool was_read = found.was_read;
  found.copying_count += 1;
  queues_.kept.erase(key_of(number, piece));
  mutex_.unlock();
  const Status checked = was_read ? check(found, from) : ok_status();
  if (checked.ok()) std::ranges::copy(from, into.begin());
  mutex_.lock();
  found.copying_count -= 1;
  if (!was_read) tally_.counts.at_hand_bytes += found.size_bytes;
  if (found.whereabouts == Whereabouts::kept) move(number, piece, Whereabouts::kept);
  return checked;
}

// The piece is in a buffer then. This thread reads it itself if no worker does, and may displace
// whatever is not needed this moment, so it comes through whatever the order was expected to be.
Status SavedTensors::bring(Number number, std::size_t piece) {
  const TimeNs since_ns = monotonic_now_ns();
  const Piece& found = tensors_.at(number).pieces[piece];
  Status status = ok_status();
  const auto is_here = [&] {
    return found.buffer >= 0 && found.whereabouts != Whereabouts::coming;
  };
  while (status.ok() && !is_here()) {
    const bool is_away = found.whereabouts == Whereabouts::away;
    if (found.whereabouts == Whereabouts::lost) {
      status = failure_;
    } else if (is_away && (!buffers_.free.empty() || !queues_.kept.empty())) {
      status = read(number, piece);
    } else {
      changed_.wait(mutex_);
    }
  }
  tally_.counts.load_wait_ns += monotonic_now_ns() - since_ns;
  return status;
}

Status SavedTensors::check(const Piece& piece, std::span<const std::byte> bytes) const {
  if (state::checksum(bytes) == piece.checksum) return ok_status();
  return make_error(ErrorCode::corrupt,
                    "{}: {} bytes at offset {} are not what was saved there; the drive or its "
                    "file system has changed them: take this step again, on another drive",
                    file_.path(), bytes.size(), piece.place * piece_bytes_);
}

// Workers -----------------------------------------------------------------------------------------

void SavedTensors::work() {
  const MutexLock lock(mutex_);
  while (!is_stopping_) {
    if (!read_next() && !write_next()) work_changed_.wait(mutex_);
  }
}

bool SavedTensors::read_next() {
  if (!is_reading_ || queues_.away.empty() || !has_buffer(*queues_.away.begin())) return false;
  const Key next = *queues_.away.begin();
  // Whoever needs the piece reads it again, and hears why it fails.
  static_cast<void>(read(next.number, next.piece));
  return true;
}

bool SavedTensors::write_next() {
  if (queues_.to_write.empty()) return false;
  const auto [number, piece] = queues_.to_write.front();
  queues_.to_write.pop_front();
  const auto tensor = tensors_.find(number);
  if (tensor != tensors_.end() && !tensor->second.is_dropped) write(number, piece);
  return true;
}

void SavedTensors::write(Number number, std::size_t piece) {
  Tensor& tensor = tensors_.at(number);
  Piece& leaving = tensor.pieces[piece];
  leaving.whereabouts = Whereabouts::leaving;
  tensor.busy_count += 1;
  tally_.writing.begin();
  const auto size = static_cast<std::size_t>(round_up(leaving.size_bytes, kPageBytes));
  const std::span<const std::byte> from = buffer(leaving).first(size);
  const std::int64_t offset = leaving.place * piece_bytes_;
  mutex_.unlock();
  const Status written = file_.write_exactly(offset, from);
  mutex_.lock();
  tally_.writing.end();
  if (written.ok()) {
    tally_.counts.written_bytes += static_cast<std::int64_t>(size);
    move(number, piece, Whereabouts::kept);
  } else {
    if (failure_.ok()) failure_ = with_advice(written.error());
    // A load may be copying from the buffer; it has what was saved.
    if (leaving.copying_count == 0) give_buffer(leaving);
    leaving.whereabouts = Whereabouts::lost;
  }
  end_work(number);
}

Status SavedTensors::read(Number number, std::size_t piece) {
  Tensor& tensor = tensors_.at(number);
  Piece& coming = tensor.pieces[piece];
  queues_.away.erase(key_of(number, piece));
  coming.buffer = take_buffer();
  coming.whereabouts = Whereabouts::coming;
  tensor.busy_count += 1;
  tally_.reading.begin();
  const auto size = static_cast<std::size_t>(round_up(coming.size_bytes, kPageBytes));
  const std::span<std::byte> into = buffer(coming).first(size);
  const std::int64_t offset = coming.place * piece_bytes_;
  mutex_.unlock();
  const Status status = file_.read_exactly(offset, into);
  mutex_.lock();
  tally_.reading.end();
  if (status.ok()) {
    tally_.counts.read_bytes += static_cast<std::int64_t>(size);
    coming.was_read = true;
    move(number, piece, Whereabouts::kept);
  } else {
    give_buffer(coming);
    coming.whereabouts = Whereabouts::away;  // and not among those that are read ahead
  }
  end_work(number);
  return status;
}

// Buffers and places ------------------------------------------------------------------------------

bool SavedTensors::has_buffer(const Key& for_key) const {
  return !buffers_.free.empty() || (!queues_.kept.empty() && for_key < *queues_.kept.rbegin());
}

int SavedTensors::take_buffer() {
  if (buffers_.free.empty()) {
    const Key last = *queues_.kept.rbegin();
    move(last.number, last.piece, Whereabouts::away);
  }
  const int number = *buffers_.free.begin();
  buffers_.free.erase(buffers_.free.begin());
  const auto all = buffers_.memory.size_bytes() / piece_bytes_;
  const auto used = all - static_cast<std::int64_t>(buffers_.free.size());
  tally_.counts.peak_in_flight_bytes =
      std::max(tally_.counts.peak_in_flight_bytes, used * piece_bytes_);
  return number;
}

void SavedTensors::give_buffer(Piece& piece) {
  buffers_.free.insert(piece.buffer);
  piece.buffer = -1;
  piece.was_read = false;
}

std::span<std::byte> SavedTensors::buffer(const Piece& piece) {
  const auto size = static_cast<std::size_t>(piece_bytes_);
  return buffers_.memory.bytes().subspan(static_cast<std::size_t>(piece.buffer) * size, size);
}

// Room is reserved ahead, so that a full drive is known before the copy is made, and writes that
// would make a file longer do not wait for each other. A file system that reserves none says so
// when a write fails.
Result<std::int64_t> SavedTensors::take_place() {
  if (!places_.free.empty()) return places_.free.extract(places_.free.begin()).value();
  if (places_.count == places_.reserved_count) {
    const Status reserved =
        file_.allocate((places_.reserved_count + kReservedPieces) * piece_bytes_);
    if (!reserved.ok() && reserved.error().code() != ErrorCode::unsupported)
      return with_advice(reserved.error());
    places_.reserved_count += kReservedPieces;
  }
  return places_.count++;
}

// Where pieces are --------------------------------------------------------------------------------

SavedTensors::Key SavedTensors::key_of(Number number, std::size_t piece) {
  return {.rank = tensors_.at(number).rank, .number = number, .piece = piece};
}

// To kept or away, and into the set of those: unless somebody copies from its buffer, or, of those
// away, nobody is expected to load it.
void SavedTensors::move(Number number, std::size_t piece, Whereabouts to) {
  Tensor& tensor = tensors_.at(number);
  Piece& moved = tensor.pieces[piece];
  const Key key = key_of(number, piece);
  moved.whereabouts = to;
  queues_.kept.erase(key);
  if (to == Whereabouts::kept && moved.copying_count == 0) queues_.kept.insert(key);
  if (to == Whereabouts::away) {
    give_buffer(moved);
    if (tensor.rank != kLast) queues_.away.insert(key);
  }
  changed_.notify_all();
  work_changed_.notify_one();
}

void SavedTensors::change_rank(Number number, std::int64_t rank) {
  Tensor& tensor = tensors_.at(number);
  for (std::size_t piece = 0; piece < tensor.pieces.size(); ++piece) {
    const Key old = key_of(number, piece);
    const Key changed{.rank = rank, .number = number, .piece = piece};
    if (queues_.kept.erase(old) > 0) queues_.kept.insert(changed);
    queues_.away.erase(old);
    if (tensor.pieces[piece].whereabouts == Whereabouts::away && rank != kLast)
      queues_.away.insert(changed);
  }
  tensor.rank = rank;
}

void SavedTensors::drop(Number number) {
  const MutexLock lock(mutex_);
  let_go(number);
}

void SavedTensors::let_go(Number number) {
  Tensor& tensor = tensors_.at(number);
  tensor.is_dropped = true;
  tally_.counts.tensor_count -= 1;
  if (tensor.busy_count == 0) forget(number);
}

void SavedTensors::end_work(Number number) {
  Tensor& tensor = tensors_.at(number);
  tensor.busy_count -= 1;
  if (tensor.is_dropped && tensor.busy_count == 0) forget(number);
  changed_.notify_all();
}

void SavedTensors::forget(Number number) {
  Tensor& tensor = tensors_.at(number);
  for (std::size_t piece = 0; piece < tensor.pieces.size(); ++piece) {
    Piece& gone = tensor.pieces[piece];
    if (gone.whereabouts == Whereabouts::waiting) tally_.counts.unwritten_bytes += gone.size_bytes;
    queues_.kept.erase(key_of(number, piece));
    queues_.away.erase(key_of(number, piece));
    if (gone.buffer >= 0) give_buffer(gone);
    places_.free.insert(gone.place);
  }
  tensors_.erase(number);
  changed_.notify_all();
  work_changed_.notify_one();
}

}  // namespace sluice::activation
