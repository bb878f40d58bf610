#include "profiler/answers/run_answer.h"

#include "profiler/analyze/rank_records.h"
#include "storage/rundb/query.h"
#include "storage/rundb/sample_reader.h"

namespace sluice::answers {
namespace {

// The last steps, as they were judged when the run ended, else judged now.
Status read_shares(rundb::Reader& reader, std::int64_t step_count, RunAnswer& answer) {
  const auto count = static_cast<std::int64_t>(answer.steps.size());
  const std::int64_t first = std::max<std::int64_t>(0, count - step_count);
  if (first == count) return ok_status();
  ASSIGN_OR_RETURN(answer.shares, analyze::stored_verdicts(
                                      reader, answer.steps[static_cast<std::size_t>(first)].id));
  for (std::int64_t i = first; i < count; ++i) {
    const rundb::StepRow& row = answer.steps[static_cast<std::size_t>(i)];
    if (answer.shares.contains(row.id) || !answer.analysis.has_spans()) continue;
    ASSIGN_OR_RETURN(const analyze::StepData step, analyze::load_step(reader, answer.info, row));
    answer.shares[row.id] = analyze::verdict_of(step).share;
  }
  return ok_status();
}

// `ranks`: of all ranks, where the run has several.
Result<RunAnswer> ask_record(const std::string& database, const RunQuestion& question,
                             const std::vector<analyze::RankRecord>& ranks = {}) {
  ASSIGN_OR_RETURN(std::unique_ptr<rundb::Reader> reader, rundb::Reader::open(database));
  if (question.stops) rundb::Query(*reader).end_if(question.stops);
  ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, reader->snapshot());
  RunAnswer answer;
  answer.database = database;
  ASSIGN_OR_RETURN(answer.meta, reader->meta());
  ASSIGN_OR_RETURN(answer.steps, reader->steps());
  ASSIGN_OR_RETURN(answer.validations, reader->validations());
  ASSIGN_OR_RETURN(answer.spans, reader->span_totals());
  ASSIGN_OR_RETURN(answer.links, reader->link_totals());
  ASSIGN_OR_RETURN(answer.losses, reader->losses());
  ASSIGN_OR_RETURN(answer.waits, analyze::activation_waits(*reader));
  ASSIGN_OR_RETURN(answer.info, analyze::load_run_info(*reader));
  ASSIGN_OR_RETURN(answer.analysis, analyze::analyze_run(*reader, answer.info));
  // Another rank's steps are spans and no operations.
  if (answer.info.has_all_ranks())
    std::erase_if(answer.spans, [](const rundb::SpanTotals& span) { return span.name == "step"; });
  ASSIGN_OR_RETURN(answer.stretches, analyze::stretches_of(*reader, answer.info, answer.steps));
  RETURN_IF_ERROR(read_shares(*reader, question.steps_with_shares, answer));
  if (question.explained) {
    ASSIGN_OR_RETURN(answer.explanation, analyze::explain_steps(*reader, answer.info, answer.steps,
                                                                *question.explained, ranks));
  }
  ASSIGN_OR_RETURN(answer.samples.are_there, rundb::SampleReader(*reader).has_samples());
  if (question.wants_samples) {
    ASSIGN_OR_RETURN(answer.samples.said,
                     analyze::sampled_time(*reader, answer.info, answer.steps, question.explained));
  }
  return answer;
}

// The losses of another rank's record count as the run's.
Status add_losses(const analyze::RankRecord& record, RunAnswer& answer) {
  ASSIGN_OR_RETURN(const std::vector<rundb::StatRow> stats, record.reader->stats());
  ASSIGN_OR_RETURN(const rundb::Completeness rows, rundb::completeness_of(*record.reader));
  const analyze::Answer found = analyze::losses_answer(stats, rows);
  analyze::Answer& told = answer.analysis.answers.front();
  if (found.outcome != analyze::Outcome::nothing_found &&
      told.outcome == analyze::Outcome::nothing_found) {
    told = found;
    told.why = fmt::format("rank {}: {}", record.rank, found.why);
  }
  ASSIGN_OR_RETURN(const std::vector<rundb::StatRow> losses, record.reader->losses());
  for (rundb::StatRow loss : losses) {
    loss.name = analyze::rank_prefix(record.rank) + loss.name;
    answer.losses.push_back(std::move(loss));
  }
  return ok_status();
}

}  // namespace

std::vector<analyze::Answer> RunAnswer::answers() const {
  std::vector<analyze::Answer> answers = analysis.answers;
  if (predicted) answers.push_back(analyze::turn_next_answer(*predicted));
  return answers;
}

std::string RunAnswer::meta_value(std::string_view key) const {
  for (const rundb::MetaRow& row : meta) {
    if (row.key == key) return row.value;
  }
  return "?";
}

TimeNs RunAnswer::median_step_ns() const {
  std::vector<double> durs;
  for (const rundb::StepRow& step : steps) durs.push_back(static_cast<double>(step.dur));
  return static_cast<TimeNs>(analyze::median_of(std::move(durs)));
}

Result<RunAnswer> ask_run(const RunQuestion& question) {
  const std::vector<std::string> databases = analyze::databases_of(question.databases);
  if (databases.size() == 1) return ask_record(databases.front(), question);
  ASSIGN_OR_RETURN(const std::vector<analyze::RankRecord> records,
                   analyze::open_rank_records(databases));
  for (const analyze::RankRecord& record : records) {
    if (question.stops) rundb::Query(*record.reader).end_if(question.stops);
  }
  ASSIGN_OR_RETURN(RunAnswer answer, ask_record(records.front().path, question, records));
  ASSIGN_OR_RETURN(answer.analysis.ranks, analyze::analyze_ranks(records, answer.analysis.steps));
  answer.analysis.answers.push_back(analyze::ranks_answer(*answer.analysis.ranks));
  analyze::find_again(answer.analysis, answer.info, answer.steps);
  for (const analyze::RankRecord& record : records) {
    if (record.rank != 0) RETURN_IF_ERROR(add_losses(record, answer));
  }
  return answer;
}

}  // namespace sluice::answers
