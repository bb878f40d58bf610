#pragma once
// Tensors that a program's own forward keeps for its backward, on a drive meanwhile: nothing of
// them is known before they come, neither their sizes nor their number (activation_carrier.h is for
// models whose layers are known).
//
//   number = save(bytes, rank)   they are copied: the program may go on with its memory
//   load(number, into)           they are back; what is needed next is on its way
//   drop(number)                 nobody needs them any more
//
// Pieces of a tensor lie in buffers, and there are no others: buffers of what waits to be written,
// of what is written and not displaced yet, and of what was read ahead, take `in_flight_bytes` at
// the most. So a tensor may be larger than that. What is still in a buffer is not read, and what
// was dropped before its turn is not written.
//
// The file has no name once it is open. What comes back from it is compared with the checksum of
// what was saved. After a failed write nothing more is saved, and a tensor that was not written is
// refused.
//
// Thread contract: any thread; save and load wait, drop does not. A tensor is dropped by nobody
// while somebody loads it. In a forked process there is no worker: only release() the pointer.

#include <deque>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/units.h"
#include "storage/io/file.h"
#include "storage/io/page_aligned_buffer.h"

namespace sluice::activation {

class SavedTensors {
 public:
  static constexpr std::int64_t kLeastInFlightBytes = 16 * kPageBytes;
  struct Options {
    std::string folder;                // has to be there
    std::int64_t in_flight_bytes = 0;  // kLeastInFlightBytes or more
    int worker_count = 4;              // transfers at a time
  };
  static Result<std::unique_ptr<SavedTensors>> open(const Options& options);
  // Waits for transfers that have begun.
  ~SavedTensors();
  SavedTensors(const SavedTensors&) = delete;
  SavedTensors& operator=(const SavedTensors&) = delete;

  using Number = std::int64_t;
  // `rank`: a tensor of a lower one is expected to be loaded earlier.
  Result<Number> save(std::span<const std::byte> bytes, std::int64_t rank);
  // Whether the tensor was saved with these bytes, by their checksums.
  bool has_bytes(Number number, std::span<const std::byte> bytes) const;

  enum class After { unused, wanted };
  // `into` has the tensor's size. After::wanted: it will be loaded again soon.
  Status load(Number number, std::span<std::byte> into, After after);
  void drop(Number number);

  struct Counts {
    std::int64_t tensor_count = 0;   // that are not dropped
    std::int64_t written_bytes = 0;  // since it was opened, as all that follows
    std::int64_t read_bytes = 0;
    std::int64_t unwritten_bytes = 0;  // dropped before their write
    std::int64_t at_hand_bytes = 0;    // loaded from a buffer that was never read into
    std::int64_t peak_in_flight_bytes = 0;
    TimeNs save_wait_ns = 0;   // for a buffer
    TimeNs load_wait_ns = 0;   // for a read, or a buffer for it
    TimeNs write_busy_ns = 0;  // during which something was being written
    TimeNs read_busy_ns = 0;
  };
  Counts counts() const;
  const io::File& file() const { return file_; }

 private:
  static constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min();

  // waiting, leaving, kept, coming have a buffer; kept and away are on the drive.
  enum class Whereabouts : std::uint8_t { waiting, leaving, kept, away, coming, lost };
  struct Piece {
    Whereabouts whereabouts = Whereabouts::waiting;
    bool was_read = false;  // what is in the buffer came from the drive
    int buffer = -1;
    int copying_count = 0;   // loads that copy from the buffer
    std::int64_t place = 0;  // in the file, in pieces
    std::int64_t size_bytes = 0;
    std::uint64_t checksum = 0;
  };
  struct Tensor {
    std::int64_t rank = 0;
    bool is_dropped = false;
    int busy_count = 0;  // pieces that a worker or a load works on
    std::deque<Piece> pieces;
  };
  // A piece's, in the order in which pieces are expected to be loaded.
  struct Key {
    std::int64_t rank;
    Number number;
    std::size_t piece;
    auto operator<=>(const Key&) const = default;
  };
  struct Direction {
    int active_count = 0;
    TimeNs since_ns = 0;
    TimeNs busy_ns = 0;
    void begin();
    void end();
  };

  struct Queues {
    std::deque<std::pair<Number, std::size_t>> to_write;
    std::set<Key> kept;
    std::set<Key> away;  // that are to be read ahead
  };
  struct Buffers {
    io::PageAlignedBuffer memory;
    std::set<int> free;
  };
  struct Places {  // in the file
    std::set<std::int64_t> free;
    std::int64_t count = 0;
    std::int64_t reserved_count = 0;
  };
  struct Tally {
    Counts counts;
    Direction writing;
    Direction reading;
  };

  SavedTensors(io::File file, io::PageAlignedBuffer memory, std::int64_t piece_bytes);
  Status start_workers(int count);

  void work();
  bool write_next() REQUIRES(mutex_);
  bool read_next() REQUIRES(mutex_);
  void write(Number number, std::size_t piece) REQUIRES(mutex_);
  Status read(Number number, std::size_t piece) REQUIRES(mutex_);

  Status add_piece(Number number, std::span<const std::byte> bytes) REQUIRES(mutex_);
  Status copy_out(Number number, std::size_t piece, std::span<std::byte> into) REQUIRES(mutex_);
  Status bring(Number number, std::size_t piece) REQUIRES(mutex_);
  Status check(const Piece& piece, std::span<const std::byte> bytes) const;

  bool has_buffer(const Key& for_key) const REQUIRES(mutex_);
  int take_buffer() REQUIRES(mutex_);  // there is one
  void give_buffer(Piece& piece) REQUIRES(mutex_);
  void change_rank(Number number, std::int64_t rank) REQUIRES(mutex_);
  void move(Number number, std::size_t piece, Whereabouts to) REQUIRES(mutex_);
  void end_work(Number number) REQUIRES(mutex_);
  void let_go(Number number) REQUIRES(mutex_);
  void forget(Number number) REQUIRES(mutex_);
  Result<std::int64_t> take_place() REQUIRES(mutex_);
  std::span<std::byte> buffer(const Piece& piece) REQUIRES(mutex_);
  Key key_of(Number number, std::size_t piece) REQUIRES(mutex_);

  const io::File file_;
  const std::int64_t piece_bytes_;

  mutable Mutex mutex_;
  CondVar work_changed_;  // for workers
  CondVar changed_;       // for save and load
  bool is_stopping_ GUARDED_BY(mutex_) = false;
  bool is_reading_ GUARDED_BY(mutex_) = false;  // loads come, so what comes next is read ahead
  Status failure_ GUARDED_BY(mutex_);           // of a write
  Number next_number_ GUARDED_BY(mutex_) = 0;
  std::unordered_map<Number, Tensor> tensors_ GUARDED_BY(mutex_);
  Queues queues_ GUARDED_BY(mutex_);
  Buffers buffers_ GUARDED_BY(mutex_);
  Places places_ GUARDED_BY(mutex_);
  Tally tally_ GUARDED_BY(mutex_);

  std::vector<std::thread> workers_;
};

}  // namespace sluice::activation
