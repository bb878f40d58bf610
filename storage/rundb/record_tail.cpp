#include "storage/rundb/record_tail.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/fnv.h"
#include "storage/rundb/detail/read_connection.h"
#include "storage/rundb/detail/row_bytes.h"
#include "storage/rundb/detail/sample_tables.h"

namespace sluice::rundb {
namespace {

using detail::ReadConnection;
using detail::Statement;

// Into so many of the last spans flows may still come: a flow is written with the batch in which
// both its ends are known.
constexpr std::int64_t kLateSpans = 1 << 15;

template <typename Row, std::size_t kAt = 0>
constexpr std::size_t table_of_rows() {
  if constexpr (std::is_same_v<std::variant_alternative_t<kAt, CopiedRows>, std::vector<Row>>) {
    return kAt;
  } else {
    return table_of_rows<Row, kAt + 1>();
  }
}

// The rows of one table, cut into pieces.
template <typename Row>
class Pieces {
 public:
  explicit Pieces(bool replaces) { open(replaces); }

  void add(const Row& row) {
    if (count_ == kPieceRowsMax || pieces_.back().bytes.size() >= kPieceBytes) open(false);
    encoder_.add(row, pieces_.back().bytes);
    ++count_;
  }
  std::int64_t fingerprint() const {
    std::uint64_t hash = kFnvOffset;
    for (const CopiedPiece& piece : pieces_) hash = fnv1a(piece.bytes, hash);
    return static_cast<std::int64_t>(hash);
  }
  void move_to(std::vector<CopiedPiece>& all) {
    std::ranges::move(pieces_, std::back_inserter(all));
  }

 private:
  void open(bool replaces) {
    pieces_.push_back({.table = table_of_rows<Row>(), .replaces = replaces});
    encoder_ = {};
    count_ = 0;
  }

  std::vector<CopiedPiece> pieces_;
  detail::RowEncoder<Row> encoder_;
  std::size_t count_ = 0;
};

Result<std::int64_t> number_of(ReadConnection& file, const char* query, auto... parameters) {
  ASSIGN_OR_RETURN(const std::vector<std::int64_t> numbers,
                   file.read_from<std::int64_t>(
                       query, [](const Statement& row) { return row.int64_at(0); }, parameters...));
  return numbers.empty() ? 0 : numbers.front();
}

class Turn {
 public:
  Turn(ReadConnection& file, const CopyCursor& since, std::int64_t rows_max)
      : file_(file), rows_max_(rows_max) {
    turn_.cursor = since;
  }

  // `is_unchanged`: the file is as it was at the turn before.
  Result<CopyTurn> taken(bool is_unchanged) {
    RETURN_IF_ERROR(begin());
    RETURN_IF_ERROR(take_names());
    if (!is_unchanged) RETURN_IF_ERROR(take_small());
    RETURN_IF_ERROR(take_spans());
    RETURN_IF_ERROR(take_after_rowid<CounterRow>("counters_after", turn_.cursor.counter_rowid));
    RETURN_IF_ERROR(take_samples());
    RETURN_IF_ERROR(take_steps());
    return std::move(turn_);
  }

 private:
  // Which recording it is, and whether it is still the one that the cursor is of.
  Status begin() {
    ASSIGN_OR_RETURN(const auto clocks, file_.read<ClockRow>("clock_snapshots"));
    ASSIGN_OR_RETURN(const auto meta, file_.read<MetaRow>("meta"));
    std::uint64_t run = kFnvOffset;
    for (const MetaRow& row : meta)
      if (row.key == "written_by") run = fnv1a(row.value, run);
    if (!clocks.empty()) {
      run = fnv1a(static_cast<std::uint64_t>(clocks.front().ts), run);
      run = fnv1a(static_cast<std::uint64_t>(clocks.front().realtime_ts), run);
    }
    ASSIGN_OR_RETURN(const std::int64_t stretches, number_of(file_, "stretch_count"));
    ASSIGN_OR_RETURN(const std::int64_t last_span, number_of(file_, "last_span_id"));
    const CopyCursor& since = turn_.cursor;
    turn_.begins_anew = since.run != static_cast<std::int64_t>(run) ||
                        since.stretches != stretches || since.span_id < 0 ||
                        since.span_id > last_span;
    if (turn_.begins_anew) turn_.cursor = {};
    turn_.cursor.run = static_cast<std::int64_t>(run);
    turn_.cursor.stretches = stretches;
    turn_.spans_left = last_span;  // less what the copy will have
    return ok_status();
  }

  template <typename Row, typename... Parameters>
  Status take_whole(const char* query, const Parameters&... parameters) {
    Pieces<Row> pieces(true);
    RETURN_IF_ERROR(
        file_.each<Row>(query, [&pieces](Row&& row) { pieces.add(row); }, parameters...));
    std::int64_t& known = turn_.cursor.whole[table_of_rows<Row>()];
    const std::int64_t found = pieces.fingerprint();
    if (std::exchange(known, found) != found) pieces.move_to(turn_.pieces);
    return ok_status();
  }

  // Rows behind `last`, by their ids.
  template <typename Row>
  Status take_after(const char* query, std::int64_t& last, bool replaces = false) {
    Pieces<Row> pieces(replaces);
    std::int64_t count = 0;
    const auto add = [&](Row&& row) {
      pieces.add(row);
      last = row.id;
      ++count;
    };
    RETURN_IF_ERROR(file_.each<Row>(query, add, std::int64_t{last}, rows_max_));
    if (count > 0 || replaces) pieces.move_to(turn_.pieces);
    turn_.has_more = turn_.has_more || count == rows_max_;
    return ok_status();
  }

  Status take_names() {
    RETURN_IF_ERROR(take_after<StringRow>("strings_after", turn_.cursor.string_id));
    return take_after<TrackRow>("tracks_after", turn_.cursor.track_id);
  }

  // In an order in which rows that name others come behind them.
  Status take_small() {
    RETURN_IF_ERROR(take_whole<MetaRow>("meta"));
    RETURN_IF_ERROR(take_whole<ClockRow>("clock_snapshots"));
    RETURN_IF_ERROR(take_whole<ClockOffsetRow>("clock_offsets"));
    RETURN_IF_ERROR(take_whole<StatRow>("stats"));
    RETURN_IF_ERROR(take_whole<DeviceRow>("devices"));
    RETURN_IF_ERROR(take_whole<LinkRow>("links"));
    RETURN_IF_ERROR(take_whole<TrackLinkRow>("track_links"));
    RETURN_IF_ERROR(take_whole<SubgroupRow>("subgroups"));
    RETURN_IF_ERROR(take_whole<KnobRow>("knobs"));
    RETURN_IF_ERROR(take_whole<ModeRow>("modes"));
    RETURN_IF_ERROR(take_whole<ValidationRow>("validations"));
    RETURN_IF_ERROR(take_whole<VerdictRow>("verdicts", std::numeric_limits<std::int64_t>::min()));
    RETURN_IF_ERROR(take_whole<StageRow>("stages"));
    RETURN_IF_ERROR(take_whole<KnobChangeRow>("knob_changes"));
    return take_whole<LatenessRow>("lateness");
  }

  Status take_spans() {
    CopyCursor& cursor = turn_.cursor;
    const std::int64_t before = cursor.span_id;
    RETURN_IF_ERROR(take_after<SpanRow>("spans_after", cursor.span_id));
    turn_.spans_left -= cursor.span_id;
    ASSIGN_OR_RETURN(const std::int64_t known, late_flows(before));
    const std::int64_t from = known == cursor.late_flows ? before : before - kLateSpans;
    Pieces<FlowRow> pieces(false);
    std::int64_t count = 0;
    const auto add = [&](FlowRow&& row) {
      pieces.add(row);
      ++count;
    };
    RETURN_IF_ERROR(file_.each<FlowRow>("flows_into", add, from, std::int64_t{cursor.span_id}));
    if (count > 0) pieces.move_to(turn_.pieces);
    ASSIGN_OR_RETURN(cursor.late_flows, late_flows(cursor.span_id));
    return ok_status();
  }
  Result<std::int64_t> late_flows(std::int64_t span_id) {
    return number_of(file_, "flow_count_into", span_id - kLateSpans, span_id);
  }

  // Rows without an id, in the order in which they were written.
  template <typename Row>
  Status take_after_rowid(const char* query, std::int64_t& last) {
    Pieces<Row> pieces(false);
    std::int64_t count = 0;
    const auto with_rowid = [](const Statement& from) {
      return std::pair(detail::row_at<Row>(from), from.int64_at(kTable<Row>.kColumnCount));
    };
    const auto add = [&](std::pair<Row, std::int64_t>&& found) -> Status {
      RETURN_IF_ERROR(file_.check_bounds(found.first));
      pieces.add(found.first);
      last = found.second;
      ++count;
      return ok_status();
    };
    RETURN_IF_ERROR(file_.each_from(query, with_rowid, add, std::int64_t{last}, rows_max_));
    if (count > 0) pieces.move_to(turn_.pieces);
    turn_.has_more = turn_.has_more || count == rows_max_;
    return ok_status();
  }

  // What samples name comes first, and all of it: a copy is read between two turns.
  Status take_samples() {
    ASSIGN_OR_RETURN(const bool has_samples, detail::has_sample_tables(file_.connection()));
    if (!has_samples) return ok_status();
    CopyCursor& cursor = turn_.cursor;
    RETURN_IF_ERROR(take_whole<SampledThreadRow>("sampled_threads"));
    const bool had_more = std::exchange(turn_.has_more, false);
    RETURN_IF_ERROR(
        take_after<SampledFunctionRow>("sampled_functions_after", cursor.sampled_function_id));
    if (!turn_.has_more) RETURN_IF_ERROR(take_after<CallRow>("calls_after", cursor.call_id));
    if (!turn_.has_more) {
      RETURN_IF_ERROR(
          take_after_rowid<CallSampleRow>("call_samples_after", cursor.call_sample_rowid));
      RETURN_IF_ERROR(
          take_after_rowid<ProcessorTimeRow>("processor_times_after", cursor.processor_time_rowid));
    }
    turn_.has_more = turn_.has_more || had_more;
    return ok_status();
  }

  Status take_steps() {
    CopyCursor& cursor = turn_.cursor;
    RETURN_IF_ERROR(note_steps([&cursor](std::int64_t count, std::int64_t sum) {
      if (count == cursor.step_count && sum == cursor.step_sum) return false;
      cursor.step_id = CopyCursor().step_id;
      return true;
    }));
    RETURN_IF_ERROR(take_after<StepRow>("steps_after_at_most", cursor.step_id, steps_are_others_));
    return note_steps([&cursor](std::int64_t count, std::int64_t sum) {
      cursor.step_count = count;
      cursor.step_sum = sum;
      return false;
    });
  }
  Status note_steps(auto&& look) {
    const auto use_row = [&](std::pair<std::int64_t, std::int64_t>&& of) {
      steps_are_others_ = look(of.first, of.second);
      return ok_status();
    };
    return file_.each_from(
        "steps_until",
        [](const Statement& row) { return std::pair(row.int64_at(0), row.int64_at(1)); }, use_row,
        std::int64_t{turn_.cursor.step_id});
  }

  ReadConnection& file_;
  const std::int64_t rows_max_;
  CopyTurn turn_;
  bool steps_are_others_ = false;  // than those that the copy has
};

}  // namespace

Result<CopyTurn> RecordTail::next(const CopyCursor& since) {
  detail::ReadConnection& file = *reader_.file_;
  // Before the snapshot: what is committed between the two is looked at again.
  ASSIGN_OR_RETURN(const std::int64_t version,
                   file.connection().query_int64("PRAGMA data_version"));
  const bool is_unchanged = version == version_ && since == cursor_;
  if (is_unchanged && !had_more_) return CopyTurn{.cursor = since};
  ASSIGN_OR_RETURN(const Reader::Snapshot snapshot, reader_.snapshot());
  ASSIGN_OR_RETURN(CopyTurn turn, Turn(file, since, rows_max_).taken(is_unchanged));
  version_ = version;
  cursor_ = turn.cursor;
  had_more_ = turn.has_more;
  return turn;
}

}  // namespace sluice::rundb
