#include "profiler/report/nsys_export.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <unordered_map>

#include "profiler/analyze/link_use.h"
#include "profiler/analyze/run_data.h"
#include "profiler/report/detail/span_stream.h"
#include "profiler/report/page_text.h"
#include "storage/rundb/query.h"
#include "storage/rundb/table_writer.h"

namespace sluice::report {
namespace {

using rundb::Cell;

// Whose tables and columns these are.
constexpr const char* kSchemaVersion = "3.25.0";

// ENUM_NSYS_EVENT_TYPE and ENUM_CUDA_MEMCPY_OPER.
constexpr std::int64_t kMark = 34;
constexpr std::int64_t kPushPopRange = 59;
constexpr std::int64_t kHostToDevice = 1;
constexpr std::int64_t kDeviceToHost = 2;
constexpr std::int64_t kDeviceToDevice = 8;
constexpr std::int64_t kPeerToPeer = 10;

constexpr std::int64_t kContextId = 1;
// One process; ids are serialized as Nsight Systems does it: process << 24 | thread.
constexpr std::int64_t kGlobalPid = std::int64_t{1} << 24;

// The tables that a run fills, by which TableWriter knows their rows.
struct NsysTables {
  std::size_t strings = 0;
  std::size_t export_meta = 0;
  std::size_t capture_meta = 0;
  std::size_t threads = 0;
  std::size_t gpus = 0;
  std::size_t cuda_devices = 0;
  std::size_t session = 0;
  std::size_t details = 0;
  std::size_t submissions = 0;
  std::size_t ranges = 0;
  std::size_t kernels = 0;
  std::size_t copies = 0;
};

Result<NsysTables> prepare_tables(rundb::TableWriter& writer) {
  NsysTables tables;
  ASSIGN_OR_RETURN(tables.strings, writer.prepare_rows("StringIds", "id, value"));
  ASSIGN_OR_RETURN(tables.export_meta, writer.prepare_rows("META_DATA_EXPORT", "name, value"));
  ASSIGN_OR_RETURN(tables.capture_meta, writer.prepare_rows("META_DATA_CAPTURE", "name, value"));
  ASSIGN_OR_RETURN(tables.threads,
                   writer.prepare_rows("ThreadNames", "nameId, priority, globalTid"));
  ASSIGN_OR_RETURN(tables.gpus,
                   writer.prepare_rows("TARGET_INFO_GPU", "vmId, id, name, totalMemory"));
  ASSIGN_OR_RETURN(tables.cuda_devices,
                   writer.prepare_rows("TARGET_INFO_CUDA_DEVICE", "gpuId, cudaId, pid"));
  ASSIGN_OR_RETURN(tables.session,
                   writer.prepare_rows("TARGET_INFO_SESSION_START_TIME", "utcEpochNs"));
  ASSIGN_OR_RETURN(tables.details, writer.prepare_rows("ANALYSIS_DETAILS",
                                                       "globalVid, duration, startTime, stopTime"));
  ASSIGN_OR_RETURN(tables.submissions,
                   writer.prepare_rows("CUPTI_ACTIVITY_KIND_RUNTIME",
                                       "start, \"end\", globalTid, correlationId, nameId"));
  ASSIGN_OR_RETURN(tables.ranges,
                   writer.prepare_rows("NVTX_EVENTS",
                                       "start, \"end\", eventType, text, globalTid, textId, "
                                       "domainId"));
  ASSIGN_OR_RETURN(tables.kernels,
                   writer.prepare_rows("CUPTI_ACTIVITY_KIND_KERNEL",
                                       "start, \"end\", deviceId, contextId, streamId, "
                                       "correlationId, globalPid, demangledName, shortName"));
  ASSIGN_OR_RETURN(tables.copies,
                   writer.prepare_rows("CUPTI_ACTIVITY_KIND_MEMCPY",
                                       "start, \"end\", deviceId, contextId, streamId, "
                                       "correlationId, globalPid, bytes, copyKind"));
  return tables;
}

class NsysExport {
 public:
  NsysExport(rundb::Reader& reader, rundb::TableWriter& writer, const RunPart& part,
             const OnProgress& on_progress)
      : reader_(reader), writer_(writer), part_(part), on_progress_(on_progress) {}

  Status write() {
    ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, reader_.snapshot());
    ASSIGN_OR_RETURN(info_, analyze::load_run_info(reader_));
    ASSIGN_OR_RETURN(tables_, prepare_tables(writer_));
    RETURN_IF_ERROR(write_names());
    RETURN_IF_ERROR(write_devices());
    RETURN_IF_ERROR(write_meta());
    RETURN_IF_ERROR(write_session());
    RETURN_IF_ERROR(write_steps());
    RETURN_IF_ERROR(write_knob_changes());
    return write_spans();
  }

 private:
  template <typename... Cells>
  Status row(std::size_t rows, Cells&&... cells) {
    const std::array<Cell, sizeof...(Cells)> array = {Cell(std::forward<Cells>(cells))...};
    return writer_.append(rows, array);
  }

  // Strings keep their ids; tracks come after them, as names of streams and threads.
  Status write_names() {
    std::int64_t next_id = 1;
    for (const auto& [id, text] : info_.strings) {
      RETURN_IF_ERROR(row(tables_.strings, id, text));
      next_id = std::max(next_id, id + 1);
    }
    for (const auto& [id, track] : info_.tracks) {
      RETURN_IF_ERROR(row(tables_.strings, next_id, track.name));
      RETURN_IF_ERROR(row(tables_.threads, next_id, std::int64_t{0}, global_tid(id)));
      next_id += 1;
    }
    RETURN_IF_ERROR(row(tables_.strings, next_id, std::string("steps")));
    RETURN_IF_ERROR(row(tables_.threads, next_id, std::int64_t{0}, global_tid(0)));
    submit_name_ = next_id + 1;
    return row(tables_.strings, submit_name_, std::string("submit"));
  }

  Status write_devices() {
    for (const rundb::DeviceRow& device : info_.devices)
      RETURN_IF_ERROR(write_device(device.id, device.name, Cell(device.memory_bytes)));
    return write_device(host_device(), "host (compute and processor)", Cell());
  }

  Status write_device(std::int64_t id, const std::string& name, const Cell& memory_bytes) {
    RETURN_IF_ERROR(row(tables_.gpus, std::int64_t{0}, id, name, memory_bytes));
    return row(tables_.cuda_devices, id, id, std::int64_t{1});
  }

  Status write_meta() {
    RETURN_IF_ERROR(
        row(tables_.export_meta, std::string("EXPORT_PRODUCT_NAME"), std::string("Sluice")));
    RETURN_IF_ERROR(row(tables_.export_meta, std::string("EXPORT_PRODUCT_VERSION"),
                        info_.meta_value("sluice_version")));
    RETURN_IF_ERROR(row(tables_.export_meta, std::string("EXPORT_SCHEMA_VERSION"),
                        std::string(kSchemaVersion)));
    RETURN_IF_ERROR(row(tables_.export_meta, std::string("EXPORT_SCHEMA_NOTE"),
                        std::string("the tables of Nsight Systems that a Sluice run fills")));
    for (const rundb::MetaRow& meta : info_.meta)
      RETURN_IF_ERROR(row(tables_.capture_meta, meta.key, meta.value));
    return ok_status();
  }

  // By which others know one recording from another: when it was, and how long.
  Status write_session() {
    rundb::Query query(reader_);
    RETURN_IF_ERROR(query.each_row(
        "SELECT realtime_ts - ts FROM clock_snapshot ORDER BY rowid LIMIT 1",
        [this](std::span<const Cell> cells) { return row(tables_.session, cells[0]); }));
    if (!part_.is_whole()) {
      return row(tables_.details, std::int64_t{0}, part_.end - part_.begin, part_.begin, part_.end);
    }
    // SQLite subtracts: times of a file that nobody wrote may be further apart than a number says.
    return query.each_row("SELECT max(end_ts) - min(ts), min(ts), max(end_ts) FROM span_run",
                          [this](std::span<const Cell> cells) {
                            if (std::holds_alternative<std::monostate>(cells[0]))
                              return ok_status();  // no spans
                            return row(tables_.details, std::int64_t{0}, cells[0], cells[1],
                                       cells[2]);
                          });
  }

  Status write_steps() {
    ASSIGN_OR_RETURN(const std::vector<rundb::StepRow> steps, reader_.steps());
    for (const rundb::StepRow& step : steps) {
      if (!part_.has_step(step.id)) continue;
      RETURN_IF_ERROR(row(tables_.ranges, step.ts, step.ts + step.dur, kPushPopRange,
                          fmt::format("step {}", step.id + 1), global_tid(0), Cell(),
                          std::int64_t{0}));
    }
    return ok_status();
  }

  Status write_knob_changes() {
    const Cell none;
    for (const rundb::KnobChangeRow& change : info_.knob_changes) {
      if (!part_.has_change(change)) continue;
      RETURN_IF_ERROR(
          row(tables_.ranges, change.ts, none, kMark,
              fmt::format("{} {} -> {}", change.knob, change.old_value, change.new_value),
              global_tid(0), none, std::int64_t{0}));
    }
    return ok_status();
  }

  Status write_spans() {
    ASSIGN_OR_RETURN(detail::SpanStream stream, detail::SpanStream::open(reader_, part_));
    std::vector<rundb::SpanRow> spans;
    while (true) {
      ASSIGN_OR_RETURN(const bool has_more, stream.next(spans));
      if (!has_more) return ok_status();
      for (const rundb::SpanRow& span : spans) RETURN_IF_ERROR(write_span(span));
      if (on_progress_) on_progress_(stream.share_done());
    }
  }

  // As the views `transfer` and `kernel` divide spans; what is neither is a range.
  Status write_span(const rundb::SpanRow& span) {
    const auto track = info_.tracks.find(span.track_id);
    if (track == info_.tracks.end())
      return make_error(ErrorCode::corrupt, "span {} names a track that has no row", span.id);
    const TimeNs end_ts = span.end_ts();
    const std::int64_t device = span.device_id >= 0 ? span.device_id : host_device();
    if (!track->second.links.empty()) {
      RETURN_IF_ERROR(write_submission(span));
      return row(tables_.copies, span.ts, end_ts, device, kContextId, span.track_id, span.id,
                 kGlobalPid, span.bytes, copy_kind(span, track->second));
    }
    const std::string& kind = track->second.kind;
    if (kind == "compute" || kind == "host" || kind == "device") {
      RETURN_IF_ERROR(write_submission(span));
      return row(tables_.kernels, span.ts, end_ts, device, kContextId, span.track_id, span.id,
                 kGlobalPid, span.name_id, span.name_id);
    }
    return row(tables_.ranges, span.ts, end_ts, kPushPopRange, Cell(), global_tid(span.track_id),
               span.name_id, std::int64_t{0});
  }

  // An instant, on the thread that counts the steps: the owner thread submits all operations.
  Status write_submission(const rundb::SpanRow& span) {
    const TimeNs ts = std::min(span.submit_ts, span.ts);
    return row(tables_.submissions, ts, ts, global_tid(0), span.id, submit_name_);
  }

  // A transfer that crosses a link that devices share goes between host and device; another one
  // stays with the device, between its drive and its update engine.
  std::int64_t copy_kind(const rundb::SpanRow& span, const analyze::TrackInfo& track) const {
    const auto stage = info_.stages.find(span.name_id);
    if (stage != info_.stages.end() && stage->second.place == "peer") return kPeerToPeer;
    if (track.kind == "link") {
      return track.direction == rundb::Direction::write ? kHostToDevice : kDeviceToHost;
    }
    const bool is_shared = std::ranges::any_of(track.links, [this](std::int64_t id) {
      const auto link = std::ranges::find(info_.links, id, &rundb::LinkRow::id);
      return link != info_.links.end() && analyze::is_shared_link(link->name);
    });
    if (!is_shared) return kDeviceToDevice;
    return track.direction == rundb::Direction::write ? kHostToDevice : kDeviceToHost;
  }

  // Beside the devices of the run.
  std::int64_t host_device() const {
    return info_.devices.empty() ? 0 : info_.devices.back().id + 1;
  }
  static std::int64_t global_tid(std::int64_t track_id) { return kGlobalPid | track_id; }

  rundb::Reader& reader_;
  rundb::TableWriter& writer_;
  const RunPart& part_;
  const OnProgress& on_progress_;
  analyze::RunInfo info_;
  NsysTables tables_;
  std::int64_t submit_name_ = 0;  // in StringIds
};

Status write_unfinished(rundb::Reader& reader, const std::string& path, const RunPart& part,
                        const OnProgress& on_progress) {
  ASSIGN_OR_RETURN(const std::unique_ptr<rundb::TableWriter> writer,
                   rundb::TableWriter::create(path, std::string(kNsysSql)));
  RETURN_IF_ERROR(NsysExport(reader, *writer, part, on_progress).write());
  return writer->close();
}

}  // namespace

Status export_nsys(rundb::Reader& reader, const std::string& path, IfExists if_exists,
                   const RunPart& part, const OnProgress& on_progress) {
  RETURN_IF_ERROR(check_output_file(path, if_exists));
  const std::string unfinished = unfinished_path(path);
  std::error_code error;
  std::filesystem::remove(unfinished, error);  // of an export that was killed
  const Status status = write_unfinished(reader, unfinished, part, on_progress);
  if (!status.ok()) {
    std::filesystem::remove(unfinished, error);
    return status;
  }
  return finish_file(path);
}

}  // namespace sluice::report
