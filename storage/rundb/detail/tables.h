#pragma once
// The tables of the run database: for each row (storage/rundb/rows.h, storage/rundb/lod.h) the
// declaration of its columns, a column a member (storage/rundb/detail/columns.h). A header of its
// own, since instantiating the declarations costs seconds, and only what makes SQL needs them.
//
// Thread contract: constants.

#include "storage/rundb/detail/columns.h"
#include "storage/rundb/lod.h"
#include "storage/rundb/rows.h"

namespace sluice::rundb {

// A row without a table has none.
template <typename Row>
inline constexpr auto kTable = nullptr;

template <>
inline constexpr auto kTable<MetaRow> =
    table_of<MetaRow>("meta").text("key", &MetaRow::key).text("value", &MetaRow::value);

template <>
inline constexpr auto kTable<StringRow> =
    table_of<StringRow>("string").integer("id", &StringRow::id).text("value", &StringRow::value);

template <>
inline constexpr auto kTable<DeviceRow> = table_of<DeviceRow>("device")
                                              .number("id", &DeviceRow::id)
                                              .text("name", &DeviceRow::name)
                                              .text("kind", &DeviceRow::kind)
                                              .amount("memory_bytes", &DeviceRow::memory_bytes)
                                              .amount("capacity_bytes", &DeviceRow::capacity_bytes);

template <>
inline constexpr auto kTable<LinkRow> = table_of<LinkRow>("link")
                                            .number("id", &LinkRow::id)
                                            .text("name", &LinkRow::name)
                                            .real("read_bytes_per_s", &LinkRow::read_bytes_per_s)
                                            .real("write_bytes_per_s", &LinkRow::write_bytes_per_s)
                                            .amount("latency", &LinkRow::latency_ns)
                                            .word("duplex", &LinkRow::full_duplex, kDuplexWords);

template <>
inline constexpr auto kTable<TrackLinkRow> =
    table_of<TrackLinkRow>("track_link")
        .integer("track_id", &TrackLinkRow::track_id)
        .integer("link_id", &TrackLinkRow::link_id)
        .word("direction", &TrackLinkRow::direction, kDirectionWords);

template <>
inline constexpr auto kTable<StageRow> = table_of<StageRow>("stage")
                                             .integer("name_id", &StageRow::name_id)
                                             .text("kind", &StageRow::kind)
                                             .text("place", &StageRow::place)
                                             .text_or_null("drive_file", &StageRow::drive_file)
                                             .text_or_null("phase", &StageRow::phase)
                                             .text_or_null("cause", &StageRow::cause)
                                             .text_or_null("set_off_by", &StageRow::set_off_by)
                                             .integer("every_step", &StageRow::every_step)
                                             .text("colour", &StageRow::colour);

template <>
inline constexpr auto kTable<ModeRow> = table_of<ModeRow>("mode")
                                            .time("ts", &ModeRow::ts)
                                            .number("step_id", &ModeRow::step_id)
                                            .text("line", &ModeRow::line);

template <>
inline constexpr auto kTable<TrackRow> = table_of<TrackRow>("track")
                                             .integer("id", &TrackRow::id)
                                             .integer_or_null("parent_id", &TrackRow::parent_id)
                                             .text("kind", &TrackRow::kind)
                                             .text("name", &TrackRow::name);

template <>
inline constexpr auto kTable<SubgroupRow> =
    table_of<SubgroupRow>("subgroup")
        .integer("id", &SubgroupRow::id)
        .integer("first", &SubgroupRow::first)
        .integer("count", &SubgroupRow::count)
        .integer_or_null("device_id", &SubgroupRow::device_id);

template <>
inline constexpr auto kTable<KnobRow> = table_of<KnobRow>("knob")
                                            .text("name", &KnobRow::name)
                                            .text("type", &KnobRow::type)
                                            .text("unit", &KnobRow::unit)
                                            .real_or_null("minimum", &KnobRow::minimum)
                                            .real_or_null("maximum", &KnobRow::maximum)
                                            .text("default_value", &KnobRow::default_value)
                                            .text("safe_point", &KnobRow::safe_point);

template <>
inline constexpr auto kTable<KnobChangeRow> =
    table_of<KnobChangeRow>("knob_change")
        .time("ts", &KnobChangeRow::ts)
        .number_or_null("step_id", &KnobChangeRow::step_id)
        .text("knob.name", &KnobChangeRow::knob)
        .text("old", &KnobChangeRow::old_value)
        .text("new", &KnobChangeRow::new_value)
        .text("who", &KnobChangeRow::who);

template <>
inline constexpr auto kTable<LatenessRow> = table_of<LatenessRow>("lateness")
                                                .number("step_id", &LatenessRow::step_id)
                                                .text("string.value", &LatenessRow::stage)
                                                .amount("operations", &LatenessRow::operations)
                                                .amount("late", &LatenessRow::late)
                                                .amount("modelled_dur", &LatenessRow::modelled_ns)
                                                .amount("late_dur", &LatenessRow::late_ns);

template <>
inline constexpr auto kTable<VerdictRow> = table_of<VerdictRow>("verdict")
                                               .integer("step_id", &VerdictRow::step_id)
                                               .text("cause", &VerdictRow::cause)
                                               .real("share", &VerdictRow::share);

template <>
inline constexpr auto kTable<StepRow> = table_of<StepRow>("step")
                                            .number("id", &StepRow::id)
                                            .time("ts", &StepRow::ts)
                                            .amount("dur", &StepRow::dur)
                                            .real_or_null("loss", &StepRow::loss)
                                            .real_or_null("grad_norm", &StepRow::grad_norm)
                                            .real_or_null("loss_scale", &StepRow::loss_scale)
                                            .real_or_null("lr", &StepRow::lr)
                                            .amount("tokens", &StepRow::tokens)
                                            .integer("skipped", &StepRow::skipped);

template <>
inline constexpr auto kTable<ValidationRow> =
    table_of<ValidationRow>("validation")
        .time("ts", &ValidationRow::ts)
        .number("step_id", &ValidationRow::step_id)
        .real_or_null("loss", &ValidationRow::loss)
        .amount("tokens", &ValidationRow::tokens)
        .real_or_null("accuracy", &ValidationRow::accuracy);

template <>
inline constexpr auto kTable<SpanRow> = table_of<SpanRow>("span")
                                            .integer("id", &SpanRow::id)
                                            .integer("track_id", &SpanRow::track_id)
                                            .integer("name_id", &SpanRow::name_id)
                                            .time("submit_ts", &SpanRow::submit_ts)
                                            .time("ts", &SpanRow::ts)
                                            .amount("dur", &SpanRow::dur)
                                            .number_or_null("step_id", &SpanRow::step_id)
                                            .number_or_null("subgroup_id", &SpanRow::subgroup_id)
                                            .number_or_null("device_id", &SpanRow::device_id)
                                            .number_or_null("layer_id", &SpanRow::layer_id)
                                            .amount("bytes", &SpanRow::bytes)
                                            .amount("padding_bytes", &SpanRow::padding_bytes)
                                            .integer("status", &SpanRow::status);

template <>
inline constexpr auto kTable<SpanRunRow> = table_of<SpanRunRow>("span_run")
                                               .integer("first_id", &SpanRunRow::first_id)
                                               .integer("last_id", &SpanRunRow::last_id)
                                               .integer("track_id", &SpanRunRow::track_id)
                                               .time("ts", &SpanRunRow::ts)
                                               .time("end_ts", &SpanRunRow::end_ts)
                                               .integer("lod_level", &SpanRunRow::lod_level);

template <>
inline constexpr auto kTable<SpanBatchRow> = table_of<SpanBatchRow>("span_batch")
                                                 .integer("first_id", &SpanBatchRow::first_id)
                                                 .integer("last_id", &SpanBatchRow::last_id)
                                                 .time("ts", &SpanBatchRow::ts)
                                                 .time("end_ts", &SpanBatchRow::end_ts);

template <>
inline constexpr auto kTable<FlowRow> = table_of<FlowRow>("flow")
                                            .integer("from_span", &FlowRow::from_span)
                                            .integer("to_span", &FlowRow::to_span);

template <>
inline constexpr auto kTable<CounterRow> = table_of<CounterRow>("counter")
                                               .integer("track_id", &CounterRow::track_id)
                                               .time("ts", &CounterRow::ts)
                                               .real_or_null("value", &CounterRow::value);

template <>
inline constexpr auto kTable<ClockRow> = table_of<ClockRow>("clock_snapshot")
                                             .text("clock", &ClockRow::clock)
                                             .integer("ts", &ClockRow::ts)
                                             .integer("realtime_ts", &ClockRow::realtime_ts);

template <>
inline constexpr auto kTable<ClockOffsetRow> = table_of<ClockOffsetRow>("clock_offset")
                                                   .word("at", &ClockOffsetRow::at, kOffsetAtWords)
                                                   .time("ts", &ClockOffsetRow::ts)
                                                   .time("offset", &ClockOffsetRow::offset)
                                                   .amount("bound", &ClockOffsetRow::bound);

template <>
inline constexpr auto kTable<StatRow> = table_of<StatRow>("stat")
                                            .text("name", &StatRow::name)
                                            .word("severity", &StatRow::severity, kSeverityWords)
                                            .integer("value", &StatRow::value)
                                            .text("description", &StatRow::description);

template <>
inline constexpr auto kTable<LodRow> = table_of<LodRow>("lod")
                                           .integer("track_id", &LodRow::track_id)
                                           .integer("level", &LodRow::level)
                                           .integer("bin", &LodRow::bin)
                                           .amount("count", &LodRow::count)
                                           .amount("busy", &LodRow::busy_ns)
                                           .amount("longest", &LodRow::longest_ns)
                                           .integer("longest_name_id", &LodRow::longest_name_id);

template <>
inline constexpr auto kTable<LongSpanRow> = table_of<LongSpanRow>("long_span")
                                                .integer("track_id", &LongSpanRow::track_id)
                                                .integer("level", &LongSpanRow::level)
                                                .time("ts", &LongSpanRow::ts)
                                                .time("end_ts", &LongSpanRow::end_ts)
                                                .integer("span_id", &LongSpanRow::span_id);

template <>
inline constexpr auto kTable<SampledThreadRow> = table_of<SampledThreadRow>("sampled_thread")
                                                     .integer("id", &SampledThreadRow::id)
                                                     .number("tid", &SampledThreadRow::tid)
                                                     .text("name", &SampledThreadRow::name);

template <>
inline constexpr auto kTable<SampledFunctionRow> =
    table_of<SampledFunctionRow>("sampled_function")
        .integer("id", &SampledFunctionRow::id)
        .text("name", &SampledFunctionRow::name)
        .text("library", &SampledFunctionRow::library);

template <>
inline constexpr auto kTable<CallRow> = table_of<CallRow>("call")
                                            .integer("id", &CallRow::id)
                                            .integer_or_null("caller_id", &CallRow::caller_id)
                                            .integer("function_id", &CallRow::function_id);

template <>
inline constexpr auto kTable<CallSampleRow> = table_of<CallSampleRow>("call_sample")
                                                  .integer("thread_id", &CallSampleRow::thread_id)
                                                  .time("ts", &CallSampleRow::ts)
                                                  .number("cpu", &CallSampleRow::cpu)
                                                  .integer("call_id", &CallSampleRow::call_id);

template <>
inline constexpr auto kTable<ProcessorTimeRow> =
    table_of<ProcessorTimeRow>("processor_time")
        .integer("thread_id", &ProcessorTimeRow::thread_id)
        .time("ts", &ProcessorTimeRow::ts)
        .amount("dur", &ProcessorTimeRow::dur)
        .amount("running", &ProcessorTimeRow::running)
        .amount("preempted", &ProcessorTimeRow::preempted)
        .amount("waiting", &ProcessorTimeRow::waiting);

}  // namespace sluice::rundb
