#include "profiler/sample/perf_records.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace sluice::sample {
namespace {

// What a record has left to read. A read beyond its end gives 0 and is remembered.
class Fields {
 public:
  explicit Fields(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  T take() {
    T value{};
    if (bytes_.size() < sizeof(T)) {
      is_cut_ = true;
      bytes_ = {};
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_ = bytes_.subspan(sizeof(T));
    return value;
  }
  // All but the last `tail_bytes`, up to its first zero.
  std::string take_text(std::size_t tail_bytes) {
    if (bytes_.size() < tail_bytes) {
      is_cut_ = true;
      return {};
    }
    const std::span<const std::byte> text = bytes_.first(bytes_.size() - tail_bytes);
    bytes_ = bytes_.subspan(text.size());
    const auto end = std::ranges::find(text, std::byte{0});
    return {reinterpret_cast<const char*>(text.data()),
            static_cast<std::size_t>(end - text.begin())};
  }
  bool is_cut() const { return is_cut_; }

 private:
  std::span<const std::byte> bytes_;
  bool is_cut_ = false;
};

// Behind every record but a sample: pid, tid; time; processor, reserved.
constexpr std::size_t kTrailerBytes = 24;

void take_trailer(Fields& fields, PerfRecord& record) {
  record.pid = fields.take<std::uint32_t>();
  record.tid = fields.take<std::uint32_t>();
  record.ts = static_cast<TimeNs>(fields.take<std::uint64_t>());
  record.cpu = fields.take<std::uint32_t>();
}

// Those of the process itself: addresses of the kernel stand behind a marker of their own.
void take_chain(Fields& fields, std::vector<std::uint64_t>& chain) {
  const auto count = fields.take<std::uint64_t>();
  bool is_user = false;
  for (std::uint64_t i = 0; i < count && !fields.is_cut(); ++i) {
    const auto address = fields.take<std::uint64_t>();
    if (address >= static_cast<std::uint64_t>(PERF_CONTEXT_MAX)) {
      is_user = address == static_cast<std::uint64_t>(PERF_CONTEXT_USER);
    } else if (is_user && chain.size() < kChainMax) {
      chain.push_back(address);
    }
  }
}

PerfRecord sample_from(Fields& fields) {
  PerfRecord record{.kind = PerfKind::sample};
  const auto address = fields.take<std::uint64_t>();
  record.pid = fields.take<std::uint32_t>();
  record.tid = fields.take<std::uint32_t>();
  record.ts = static_cast<TimeNs>(fields.take<std::uint64_t>());
  record.cpu = fields.take<std::uint32_t>();
  (void)fields.take<std::uint32_t>();
  take_chain(fields, record.chain);
  if (record.chain.empty()) record.chain.push_back(address);
  return record;
}

PerfRecord switch_from(Fields& fields, std::uint16_t misc) {
  PerfRecord record{.kind = PerfKind::switched_in};
  if ((misc & PERF_RECORD_MISC_SWITCH_OUT) != 0) record.kind = PerfKind::switched_out;
  if ((misc & PERF_RECORD_MISC_SWITCH_OUT) != 0 &&
      (misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0) {
    record.kind = PerfKind::preempted;
  }
  take_trailer(fields, record);
  return record;
}

// A fork or an exit: the fields name the thread that begins or ends, and who began it.
PerfRecord life_from(Fields& fields, PerfKind kind) {
  PerfRecord record{.kind = kind};
  record.pid = fields.take<std::uint32_t>();
  (void)fields.take<std::uint32_t>();
  record.tid = fields.take<std::uint32_t>();
  record.parent_tid = fields.take<std::uint32_t>();
  record.ts = static_cast<TimeNs>(fields.take<std::uint64_t>());
  return record;
}

PerfRecord name_from(Fields& fields) {
  PerfRecord record{.kind = PerfKind::name};
  const auto pid = fields.take<std::uint32_t>();
  const auto tid = fields.take<std::uint32_t>();
  record.name = fields.take_text(kTrailerBytes);
  take_trailer(fields, record);
  record.pid = pid;
  record.tid = tid;
  return record;
}

PerfRecord lost_from(Fields& fields, bool has_id) {
  PerfRecord record{.kind = PerfKind::lost};
  if (has_id) (void)fields.take<std::uint64_t>();
  record.lost_count = fields.take<std::uint64_t>();
  take_trailer(fields, record);
  return record;
}

// None: of a kind that nobody asked for.
std::optional<PerfRecord> record_from(const perf_event_header& header, Fields& fields) {
  switch (header.type) {
    case PERF_RECORD_SAMPLE:
      return sample_from(fields);
    case PERF_RECORD_SWITCH:
      return switch_from(fields, header.misc);
    case PERF_RECORD_FORK:
      return life_from(fields, PerfKind::thread_begins);
    case PERF_RECORD_EXIT:
      return life_from(fields, PerfKind::thread_ends);
    case PERF_RECORD_COMM:
      return name_from(fields);
    case PERF_RECORD_LOST:
      return lost_from(fields, true);
    case PERF_RECORD_LOST_SAMPLES:
      return lost_from(fields, false);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::size_t read_perf_records(std::span<const std::byte> bytes, std::vector<PerfRecord>& into) {
  while (bytes.size() >= sizeof(perf_event_header)) {
    perf_event_header header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    if (header.size < sizeof(header) || header.size > bytes.size()) break;
    Fields fields(bytes.subspan(sizeof(header), header.size - sizeof(header)));
    std::optional<PerfRecord> record = record_from(header, fields);
    if (fields.is_cut()) break;
    if (record) into.push_back(*std::move(record));
    bytes = bytes.subspan(header.size);
  }
  return bytes.size();
}

}  // namespace sluice::sample
