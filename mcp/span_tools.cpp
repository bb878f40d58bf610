#include <algorithm>
#include <array>

#include "mcp/tool_groups.h"
#include "profiler/analyze/critical_path.h"
#include "profiler/analyze/step_explanation.h"
#include "profiler/answers/explanation_json.h"
#include "storage/rundb/query.h"
#include "storage/rundb/reader.h"

namespace sluice::mcp {
namespace {

using analyze::Outcome;

constexpr std::int64_t kPiecesDefault = 20;
constexpr std::int64_t kPiecesMost = 5000;
constexpr std::int64_t kSpansDefault = 20;
constexpr std::int64_t kSpansMost = 2000;
constexpr std::int64_t kTimeMost = INT64_MAX;

struct OpenRun {
  std::unique_ptr<rundb::Reader> reader;
  analyze::RunInfo info;
};

Result<OpenRun> open_run(const Arguments& arguments, const Call& call) {
  ASSIGN_OR_RETURN(const std::string database, database_at(arguments, call));
  OpenRun run;
  ASSIGN_OR_RETURN(run.reader, rundb::Reader::open(database));
  rundb::Query(*run.reader).end_if(call.stops);
  ASSIGN_OR_RETURN(run.info, analyze::load_run_info(*run.reader));
  return run;
}

// The pieces that take longest, in order of time.
std::vector<analyze::PathPiece> longest_pieces(std::vector<analyze::PathPiece> path,
                                               std::size_t count) {
  if (path.size() <= count) return path;
  std::ranges::stable_sort(path, std::greater<>(), &analyze::PathPiece::dur);
  path.resize(count);
  std::ranges::sort(path, {}, &analyze::PathPiece::ts);
  return path;
}

Json piece_json(const analyze::PathPiece& piece, const analyze::StepData& step) {
  Json json = {{"ts", piece.ts - step.row.ts},
               {"dur", piece.dur},
               {"cause", analyze::cause_name(piece.cause)},
               {"span", nullptr}};
  const auto span = std::ranges::find(step.spans, piece.span_id, &analyze::Span::id);
  if (piece.span_id < 0 || span == step.spans.end()) return json;
  json["span"] = span->id;
  json["name"] = *span->name;
  json["track"] = span->track->name;
  return json;
}

Result<Answered> step_path(const Arguments& arguments, const Call& call) {
  ASSIGN_OR_RETURN(const OpenRun run, open_run(arguments, call));
  ASSIGN_OR_RETURN(const std::vector<rundb::StepRow> steps, run.reader->steps());
  ASSIGN_OR_RETURN(const std::vector<rundb::StepRow> known,
                   analyze::steps_with_operations(*run.reader, steps));
  if (known.empty()) return make_error(ErrorCode::config, "no step has ended");
  const std::int64_t number = arguments.integer("step").value_or(known.back().id + 1);
  const auto row = std::ranges::find(steps, number - 1, &rundb::StepRow::id);
  if (row == steps.end())
    return make_error(ErrorCode::config, "there is no step {}: the record has {} to {}", number,
                      steps.front().id + 1, steps.back().id + 1);
  ASSIGN_OR_RETURN(const analyze::StepData step, analyze::load_step(*run.reader, run.info, *row));
  Answered answered;
  answered.steps = {row->id};
  answered.data["step"] = number;
  answered.data["dur"] = row->dur;
  if (step.spans.empty()) {
    answered.outcome = Outcome::could_not_look;
    answered.why = fmt::format("no operation of step {} is in the record", number);
    return answered;
  }
  const analyze::StepVerdict verdict = analyze::verdict_of(step);
  const auto count = static_cast<std::size_t>(arguments.integer("limit").value_or(kPiecesDefault));
  const std::vector<analyze::PathPiece> pieces = longest_pieces(verdict.path, count);
  Json& path = answered.data["path"] = Json::array();
  for (const analyze::PathPiece& piece : pieces) {
    path.push_back(piece_json(piece, step));
    if (piece.span_id >= 0) answered.spans.push_back(piece.span_id);
  }
  Json& shares = answered.data["share"] = Json::object();
  for (std::size_t c = 0; c < analyze::kCauseCount; ++c) {
    if (verdict.share[c] > 0)
      shares[std::string(analyze::cause_name(static_cast<analyze::Cause>(c)))] = verdict.share[c];
  }
  answered.why = fmt::format("{} pieces, from the step's begin to its end", verdict.path.size());
  if (const std::size_t left = verdict.path.size() - pieces.size(); left > 0)
    answered.left_out.push_back(
        {"/path", static_cast<std::int64_t>(left), "shorter pieces: limit up to 5000"});
  return answered;
}

// Without what is null or said elsewhere in the answer, so that it fits.
Json short_explanation(const analyze::StepExplanation& explanation) {
  Json json = answers::to_json(explanation);
  for (Json& cause : json["causes"]) {
    cause.erase("label");
    if (cause["reason"].is_null()) {
      cause.erase("words");
      cause.erase("reason");
      continue;
    }
    for (const char* key : {"operation", "track", "device", "link", "rank"}) {
      if (cause["reason"][key].is_null()) cause["reason"].erase(key);
    }
  }
  for (const char* key : {"why_unknown", "why_no_usual"}) json.erase(key);
  return json;
}

Result<analyze::StepExplanation> explanation_at(const std::string& path, const Arguments& arguments,
                                                const Call& call) {
  const std::vector<std::string> databases = analyze::databases_of({path});
  std::vector<analyze::RankRecord> ranks;
  if (databases.size() > 1) {
    ASSIGN_OR_RETURN(ranks, analyze::open_rank_records(databases));
    for (const analyze::RankRecord& record : ranks) rundb::Query(*record.reader).end_if(call.stops);
  }
  OpenRun run;
  ASSIGN_OR_RETURN(run.reader, rundb::Reader::open(databases.front()));
  rundb::Query(*run.reader).end_if(call.stops);
  ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, run.reader->snapshot());
  ASSIGN_OR_RETURN(run.info, analyze::load_run_info(*run.reader));
  ASSIGN_OR_RETURN(const std::vector<rundb::StepRow> steps, run.reader->steps());
  const std::int64_t last_id = steps.empty() ? 0 : steps.back().id;
  const std::int64_t first = arguments.integer("step").value_or(last_id + 1) - 1;
  const std::int64_t last = arguments.integer("last").value_or(first + 1) - 1;
  return analyze::explain_steps(*run.reader, run.info, steps, {first, last}, ranks);
}

Result<Answered> explain_step(const Arguments& arguments, const Call& call) {
  ASSIGN_OR_RETURN(const std::string path, call.runs.resolve(arguments.text("run")));
  ASSIGN_OR_RETURN(const analyze::StepExplanation found, explanation_at(path, arguments, call));
  Answered answered;
  answered.steps = {found.steps.first};
  if (found.steps.last != found.steps.first) answered.steps.push_back(found.steps.last);
  answered.data = short_explanation(found);
  answered.heart = {"words", "causes"};
  for (const analyze::ExplainedCause& cause : found.causes) {
    if (!cause.reason) continue;
    answered.spans.insert(answered.spans.end(), cause.reason->spans.begin(),
                          cause.reason->spans.end());
  }
  answered.why = fmt::format("beside {} usual steps", found.usual_count);
  if (!found.has_usual()) answered.why = found.why_no_usual;
  if (!found.why_unknown.empty()) {
    answered.outcome = Outcome::could_not_look;
    answered.why = found.why_unknown;
  }
  return answered;
}

// " AND COLUMN IN (1, 2)"; of no ids one that no row has.
std::string is_one_of(const char* column, const std::vector<std::int64_t>& ids) {
  return fmt::format(" AND {} IN ({})", column,
                     ids.empty() ? "-9" : fmt::format("{}", fmt::join(ids, ", ")));
}

// The condition on table span. Texts are looked up here, so that SQL has numbers alone.
std::string condition(const Arguments& arguments, const analyze::RunInfo& info) {
  std::string where = "1";
  if (const auto name = arguments.text("name")) {
    std::vector<std::int64_t> ids;
    for (const auto& [id, text] : info.strings) {
      if (text == *name) ids.push_back(id);
    }
    where += is_one_of("name_id", ids);
  }
  if (const auto track = arguments.text("track")) {
    std::vector<std::int64_t> ids;
    for (const auto& [id, one] : info.tracks) {
      if (one.name == *track || one.label == *track) ids.push_back(id);
    }
    where += is_one_of("track_id", ids);
  }
  if (const auto device = arguments.text("device")) {
    std::vector<std::int64_t> ids;
    for (const rundb::DeviceRow& one : info.devices) {
      if (one.name == *device) ids.push_back(one.id);
    }
    where += is_one_of("device_id", ids);
  }
  if (const auto step = arguments.integer("step"))
    where += fmt::format(" AND step_id = {}", *step - 1);
  if (const auto from = arguments.integer("from"))
    where += fmt::format(" AND ts + dur >= {}", *from);
  if (const auto until = arguments.integer("until")) where += fmt::format(" AND ts <= {}", *until);
  return where;
}

std::int64_t integer_in(const rundb::Cell& cell) {
  const auto* value = std::get_if<std::int64_t>(&cell);
  return value == nullptr ? 0 : *value;
}

Json id_or_null(const rundb::Cell& cell) {
  const auto* value = std::get_if<std::int64_t>(&cell);
  return value == nullptr ? Json() : Json(*value);
}

// A step as people count it; one of another file may have any id.
Json number_or_null(const rundb::Cell& cell) {
  const auto* id = std::get_if<std::int64_t>(&cell);
  return id == nullptr || *id == INT64_MAX ? Json() : Json(*id + 1);
}

Json span_json(std::span<const rundb::Cell> row, const analyze::RunInfo& info) {
  const auto name = info.strings.find(integer_in(row[1]));
  const auto track = info.tracks.find(integer_in(row[2]));
  Json json = {{"id", integer_in(row[0])},
               {"name", name == info.strings.end() ? "?" : name->second},
               {"track", track == info.tracks.end() ? "?" : track->second.name},
               {"submit_ts", integer_in(row[3])},
               {"ts", integer_in(row[4])},
               {"dur", integer_in(row[5])},
               {"step", number_or_null(row[6])},
               {"device_id", id_or_null(row[7])},
               {"bytes", integer_in(row[8])}};
  return json;
}

Result<Answered> spans(const Arguments& arguments, const Call& call) {
  ASSIGN_OR_RETURN(const OpenRun run, open_run(arguments, call));
  const std::string where = condition(arguments, run.info);
  rundb::Query query(*run.reader);
  std::int64_t count = 0;
  Answered answered;
  RETURN_IF_ERROR(query.each_row(
      "SELECT count(*), total(dur), total(bytes) FROM span WHERE " + where,
      [&](std::span<const rundb::Cell> row) {
        count = integer_in(row[0]);
        answered.data["count"] = count;
        for (const auto& [i, key] : {std::pair(1, "dur_total"), std::pair(2, "bytes_total")}) {
          const auto* total = std::get_if<double>(&row[static_cast<std::size_t>(i)]);
          answered.data[key] = total == nullptr ? Json() : Json(*total);
        }
        return ok_status();
      }));
  const std::string order = arguments.text("sort").value_or("dur") == "ts" ? "ts" : "dur DESC";
  const std::int64_t limit = arguments.integer("limit").value_or(kSpansDefault);
  Json& rows = answered.data["spans"] = Json::array();
  RETURN_IF_ERROR(query.each_row(
      fmt::format("SELECT id, name_id, track_id, submit_ts, ts, dur, step_id, device_id, bytes "
                  "FROM span WHERE {} ORDER BY {}, id LIMIT {}",
                  where, order, limit),
      [&](std::span<const rundb::Cell> row) {
        rows.push_back(span_json(row, run.info));
        answered.spans.push_back(integer_in(row[0]));
        return ok_status();
      }));
  answered.outcome = count == 0 ? Outcome::nothing_found : Outcome::answer;
  answered.why = fmt::format("{} operations are like that", count);
  if (const std::int64_t left = count - static_cast<std::int64_t>(rows.size()); left > 0)
    answered.left_out.push_back({"/spans", left, "limit up to 2000, or a narrower question"});
  return answered;
}

}  // namespace

std::vector<Tool> span_tools() {
  return {
      {"step_path",
       Effect::reads,
       "The critical path of a step: its pieces from begin to end, each with its cause and the id "
       "of its span; the longest pieces, in order of time. ts is from the step's begin.",
       {run_parameter(),
        {"step", Parameter::Type::integer, "counted from 1; default: the last one recorded", false,
         1, INT32_MAX},
        {"limit", Parameter::Type::integer, "pieces at most; default 20", false, 1, kPiecesMost}},
       step_path},
      {"explain_step",
       Effect::reads,
       "Why a step, or the steps from `step` to `last`, took as long as they did: what each cause "
       "took beside a usual step, the largest difference first, and for what took more one reason "
       "with the operations behind it.",
       {run_parameter(),
        {"step", Parameter::Type::integer, "counted from 1; default: the last one recorded", false,
         1, INT32_MAX},
        {"last", Parameter::Type::integer, "the last of several; default: that step alone", false,
         1, INT32_MAX}},
       explain_step},
      {"spans",
       Effect::reads,
       "Operations by name, track, step, device and time, with their count and sums.",
       {run_parameter(),
        {"name", Parameter::Type::text, "an operation's exact name, such as state_read"},
        {"track", Parameter::Type::text, "a track's exact name"},
        {"device", Parameter::Type::text, "a device's exact name"},
        {"step", Parameter::Type::integer, "counted from 1", false, 1, INT32_MAX},
        {"from", Parameter::Type::integer, "ns of the run's clock: ended then or later", false, 0,
         kTimeMost},
        {"until", Parameter::Type::integer, "ns of the run's clock: began then or before", false, 0,
         kTimeMost},
        {"sort",
         Parameter::Type::text,
         "dur: the longest first (default); ts: by begin",
         false,
         0,
         0,
         {"dur", "ts"}},
        {"limit", Parameter::Type::integer, "operations at most; default 20", false, 1,
         kSpansMost}},
       spans},
  };
}

}  // namespace sluice::mcp
