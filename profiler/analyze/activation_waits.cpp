#include "profiler/analyze/activation_waits.h"

#include <algorithm>
#include <map>
#include <variant>

#include "profiler/analyze/intervals.h"
#include "storage/rundb/query.h"

namespace sluice::analyze {
namespace {

// By what span_run says of the track, so that no other span is looked at.
constexpr const char* kWaits =
    "SELECT string.value, span.layer_id, count(*), sum(span.dur) "
    "FROM track "
    "JOIN span_run ON span_run.track_id = track.id "
    "JOIN span ON span.id BETWEEN span_run.first_id AND span_run.last_id "
    "JOIN string ON string.id = span.name_id "
    "WHERE track.kind = 'waiting' GROUP BY string.value, span.layer_id";

std::int64_t integer_in(const rundb::Cell& cell) {
  const auto* value = std::get_if<std::int64_t>(&cell);
  return value == nullptr ? -1 : *value;
}

}  // namespace

Result<std::vector<LayerWaits>> activation_waits(rundb::Reader& reader) {
  std::map<std::int64_t, LayerWaits> by_layer;
  RETURN_IF_ERROR(rundb::Query(reader).each_row(kWaits, [&](std::span<const rundb::Cell> row) {
    const auto* name = std::get_if<std::string>(&row[0]);
    if (name == nullptr) return ok_status();
    const std::optional<Cause> cause = cause_named(*name);
    LayerWaits& waits = by_layer[integer_in(row[1])];
    waits.layer = integer_in(row[1]);
    if (cause == Cause::activations_out) {
      waits.out_count = integer_in(row[2]);
      waits.out_ns = integer_in(row[3]);
    } else if (cause == Cause::activations_back) {
      waits.back_count = integer_in(row[2]);
      waits.back_ns = integer_in(row[3]);
    }
    return ok_status();
  }));
  std::vector<LayerWaits> layers;
  for (const auto& [layer, waits] : by_layer) {
    if (waits.out_ns > 0 || waits.back_ns > 0) layers.push_back(waits);
  }
  return layers;
}

WaitUse::Kind WaitUse::kind_of(const Span& span) {
  if (span.stage == nullptr) return kKindCount;
  if (span.stage->drive_file == "activations") return drives;
  if (span.stage->place == "accelerator") return accelerator_links;
  if (span.stage->place == "host" && span.track->links.empty()) return host_kernels;
  return kKindCount;
}

void WaitUse::add(const StepData& step) {
  Intervals out, back;
  for (const Span& span : step.spans) {
    if (!span.track->is_waiting()) continue;
    (cause_named(*span.name) == Cause::activations_out ? out : back).add(span.ts, span.end_ts());
  }
  if (out.sum_ns() + back.sum_ns() == 0) return;
  std::array<Intervals, kKindCount> busy;
  for (const Span& span : step.spans) {
    const Kind kind = kind_of(span);
    if (kind != kKindCount) busy[kind].add(span.ts, span.end_ts());
  }
  for (std::size_t kind = 0; kind < kKindCount; ++kind) {
    out_[kind] += Intervals::both_ns(out, busy[kind]);
    back_[kind] += Intervals::both_ns(back, busy[kind]);
  }
}

std::string WaitUse::busiest(Cause cause) const {
  const bool goes_out = cause == Cause::activations_out;
  const BusyNs& busy = goes_out ? out_ : back_;
  const auto most = std::ranges::max_element(busy);
  if (*most == 0) return "";
  switch (static_cast<Kind>(most - busy.begin())) {
    case drives:
      return goes_out ? "drive writes" : "drive reads";
    case accelerator_links:
      return "the links to accelerators";
    default:
      return "the host's kernels";
  }
}

}  // namespace sluice::analyze
