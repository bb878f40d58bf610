#include "profiler/analyze/step_profile.h"

#include <algorithm>
#include <functional>

#include "profiler/analyze/trend.h"

namespace sluice::analyze {
namespace {

const Span* profiled_span(const StepData& step, std::int64_t id) {
  if (id < 0) return nullptr;
  const auto span = std::ranges::lower_bound(step.spans, id, {}, &Span::id);
  return span != step.spans.end() && span->id == id ? &*span : nullptr;
}

bool is_under_way(const Span& span, const rundb::StepRow& step) {
  return span.dur > 0 && span.end_ts() > step.ts && span.ts < step.ts + step.dur;
}

// Each figure of an operation, so that means and medians go over all of them alike.
template <typename Use>
void each_figure(OperationSum& sum, const Use& use) {
  use(sum.count);
  use(sum.bytes);
  use(sum.dur_ns);
  for (double& ns : sum.path_ns) use(ns);
}

std::vector<double> figures_of(OperationSum sum) {
  std::vector<double> figures;
  each_figure(sum, [&](double& figure) { figures.push_back(figure); });
  return figures;
}

// `of`: a figure of all steps into one.
template <typename Of>
StepProfile combined(const std::vector<StepProfile>& steps, const Of& of) {
  StepProfile profile;
  if (steps.empty()) return profile;
  std::vector<double> values(steps.size());
  const auto combine = [&](const auto& value_of) {
    for (std::size_t i = 0; i < steps.size(); ++i) values[i] = value_of(steps[i]);
    return of(values);
  };
  profile.dur = static_cast<TimeNs>(
      combine([](const StepProfile& step) { return static_cast<double>(step.dur); }));
  for (std::size_t c = 0; c < kCauseCount; ++c) {
    profile.cause_ns[c] = combine([c](const StepProfile& step) { return step.cause_ns[c]; });
  }
  std::map<OperationKey, std::vector<std::vector<double>>> figures;  // by step
  for (std::size_t i = 0; i < steps.size(); ++i) {
    profile.operation_count += steps[i].operation_count;
    for (const auto& [key, sum] : steps[i].operations) {
      auto& of_key = figures[key];
      of_key.resize(steps.size(), figures_of({}));
      of_key[i] = figures_of(sum);
    }
  }
  for (auto& [key, of_steps] : figures) {
    std::size_t at = 0;
    each_figure(profile.operations[key], [&](double& figure) {
      for (std::size_t i = 0; i < steps.size(); ++i) values[i] = of_steps[i][at];
      figure = of(values);
      ++at;
    });
  }
  return profile;
}

}  // namespace

double OperationSum::ns_a_unit() const {
  if (bytes > 0) return dur_ns / bytes;
  return count > 0 ? dur_ns / count : 0;
}

OperationKey operation_key(const Span& span) {
  return {span.track_id, span.name_id, span.device_id};
}

StepProfile profile_of(const StepData& step, const StepVerdict& verdict, NamesOfOperations& names) {
  StepProfile profile;
  profile.dur = step.row.dur;
  const auto add_name = [&names](const Span& span) {
    names.try_emplace(operation_key(span),
                      OperationNames{span.track, span.name, span.stage, span.device_id});
  };
  for (const Span& span : step.spans) {
    if (!is_under_way(span, step.row)) continue;
    if (span.track->is_beside_schedule() && span.track->kind != "recorder") continue;
    add_name(span);
    OperationSum& sum = profile.operations[operation_key(span)];
    sum.count += 1;
    sum.bytes += static_cast<double>(span.bytes + span.padding_bytes);
    sum.dur_ns += static_cast<double>(span.dur);
    if (!span.track->is_waiting() && !span.track->is_beside_schedule())
      profile.operation_count += 1;
  }
  for (const PathPiece& piece : verdict.path) {
    const auto ns = static_cast<double>(piece.dur);
    const std::size_t cause = index_of(piece.cause);
    profile.cause_ns[cause] += ns;
    const Span* span = profiled_span(step, piece.span_id);
    if (span != nullptr) add_name(*span);
    profile.operations[span == nullptr ? kNoOperation : operation_key(*span)].path_ns[cause] += ns;
  }
  return profile;
}

std::vector<ProfiledPiece> pieces_of(const StepData& step, const StepVerdict& verdict) {
  std::vector<ProfiledPiece> pieces;
  for (std::size_t i = 0; i < verdict.path.size(); ++i) {
    const PathPiece& piece = verdict.path[i];
    const Span* span = profiled_span(step, piece.span_id);
    ProfiledPiece one{static_cast<double>(piece.dur), piece.cause, kNoOperation, piece.span_id};
    if (span != nullptr) {
      one.key = operation_key(*span);
    } else if (i + 1 < verdict.path.size()) {
      one.span = verdict.path[i + 1].span_id;
    }
    pieces.push_back(one);
  }
  return pieces;
}

std::vector<AwaitedSpan> awaited_in(const StepData& step, const StepVerdict& verdict) {
  std::vector<AwaitedSpan> awaited;
  for (const PathPiece& piece : verdict.path) {
    const Span* wait = profiled_span(step, piece.span_id);
    if (wait == nullptr || !wait->track->is_waiting()) continue;
    for (const Span& span : step.spans) {
      if (span.track->is_waiting() || span.track->is_beside_schedule() || span.dur <= 0) continue;
      if (span.end_ts() <= wait->ts || span.end_ts() > wait->end_ts()) continue;
      if (wait->layer_id >= 0 && span.layer_id >= 0 && span.layer_id != wait->layer_id) continue;
      awaited.push_back({operation_key(*wait), operation_key(span), span.id,
                         static_cast<double>(span.dur),
                         static_cast<double>(span.bytes + span.padding_bytes)});
    }
  }
  return awaited;
}

void add_longest(const StepData& step, std::size_t count, LongestSpans& longest) {
  for (const Span& span : step.spans) {
    if (is_under_way(span, step.row)) longest[operation_key(span)].emplace_back(span.dur, span.id);
  }
  for (auto& [key, spans] : longest) {
    std::ranges::stable_sort(spans, std::greater<>(), &std::pair<TimeNs, std::int64_t>::first);
    spans.resize(std::min(spans.size(), count));
  }
}

StepProfile mean_of(const std::vector<StepProfile>& steps) {
  return combined(steps, [](const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  });
}

StepProfile median_profile_of(const std::vector<StepProfile>& steps) {
  return combined(steps, [](const std::vector<double>& values) { return median_of(values); });
}

}  // namespace sluice::analyze
