#include "gui/data/span_cache.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "storage/rundb/span_reader.h"

namespace sluice::gui {
namespace {

// If more came since, reading the stretch itself is as well.
constexpr std::int64_t kNewMax = 100'000;

bool comes_before(const rundb::SpanRow& a, const rundb::SpanRow& b) {
  return std::tie(a.ts, a.id) < std::tie(b.ts, b.id);
}

}  // namespace

bool SpanCache::covers(const SpanIndex& index, TimeNs begin, TimeNs end) const {
  return has_rows_ && begin_ <= begin && end <= end_ && last_id_ <= index.last_id() &&
         index.last_id() - last_id_ <= kNewMax;
}

Result<const std::vector<rundb::SpanRow>*> SpanCache::between(rundb::Reader& reader,
                                                              const SpanIndex& index, TimeNs begin,
                                                              TimeNs end) {
  const std::int64_t last_id = index.last_id();
  if (covers(index, begin, end)) {
    has_rows_ = false;  // until all went well
    RETURN_IF_ERROR(add_new(reader, last_id));
    std::erase_if(rows_, [begin, end](const rundb::SpanRow& row) {
      return row.end_ts() < begin || row.ts > end;
    });
  } else {
    has_rows_ = false;
    ASSIGN_OR_RETURN(rows_, rundb::SpanReader(reader).spans_between(begin, end));
    read_count_ += std::ssize(rows_);
    // The file may have grown since the index was read.
    std::erase_if(rows_, [last_id](const rundb::SpanRow& row) { return row.id > last_id; });
  }
  has_rows_ = true;
  begin_ = begin;
  end_ = end >= index.end_ts() ? std::numeric_limits<TimeNs>::max() : end;
  last_id_ = last_id;
  return &rows_;
}

Status SpanCache::add_new(rundb::Reader& reader, std::int64_t last_id) {
  if (last_id == last_id_) return ok_status();
  const std::ptrdiff_t old_count = std::ssize(rows_);
  RETURN_IF_ERROR(rundb::SpanReader(reader).each_span_of_ids(
      last_id_ + 1, last_id, [this](const rundb::SpanRow& row) { rows_.push_back(row); }));
  read_count_ += std::ssize(rows_) - old_count;
  const auto first_new = rows_.begin() + old_count;
  std::ranges::sort(first_new, rows_.end(), comes_before);
  std::ranges::inplace_merge(rows_, first_new, comes_before);
  return ok_status();
}

}  // namespace sluice::gui
