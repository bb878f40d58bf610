#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/escaped_text.h"
#include "base/figure_text.h"
#include "base/kernel_text.h"
#include "base/words.h"
#include "cli/answers_text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/number_range.h"
#include "cli/output.h"
#include "cli/ranks_text.h"
#include "cli/run_argument.h"
#include "cli/stretches_text.h"
#include "cli/terminal.h"
#include "cli/verdict_text.h"
#include "core/tune/predicted_changes.h"
#include "profiler/analyze/activation_waits.h"
#include "profiler/analyze/advice.h"
#include "profiler/analyze/answers.h"
#include "profiler/analyze/step_verdicts.h"
#include "storage/rundb/reader.h"

namespace sluice::cli {
namespace {

struct ShowArguments {
  std::vector<std::string> databases;  // of one run: one, or one a rank
  std::int64_t last = 10;
  bool predict = true;
  bool json = false;
};

// All that is shown, read in one snapshot of a run that may be live.
struct Shown {
  std::vector<rundb::MetaRow> meta;
  std::vector<rundb::StepRow> steps;
  std::vector<rundb::ValidationRow> validations;
  std::vector<rundb::SpanTotals> spans;
  std::vector<rundb::LinkTotals> links;
  std::vector<analyze::LayerWaits> waits;  // for activations
  std::vector<rundb::StatRow> losses;
  analyze::RunInfo info;
  analyze::RunAnalysis analysis;
  std::vector<analyze::Stretch> stretches;
  std::map<std::int64_t, analyze::Shares> shares;      // of the steps listed, for JSON
  std::optional<analyze::PredictedChanges> predicted;  // not asked for: none

  std::vector<analyze::Answer> answers() const {
    std::vector<analyze::Answer> answers = analysis.answers;
    if (predicted) answers.push_back(analyze::turn_next_answer(*predicted));
    return answers;
  }

  std::string meta_value(std::string_view key) const {
    for (const rundb::MetaRow& row : meta) {
      if (row.key == key) return row.value;
    }
    return "?";
  }
};

Result<Shown> read_run(const ShowArguments& arguments, const std::string& database) {
  ASSIGN_OR_RETURN(std::unique_ptr<rundb::Reader> reader, rundb::Reader::open(database));
  ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, reader->snapshot());
  Shown shown;
  ASSIGN_OR_RETURN(shown.meta, reader->meta());
  ASSIGN_OR_RETURN(shown.steps, reader->steps());
  ASSIGN_OR_RETURN(shown.validations, reader->validations());
  ASSIGN_OR_RETURN(shown.spans, reader->span_totals());
  ASSIGN_OR_RETURN(shown.links, reader->link_totals());
  ASSIGN_OR_RETURN(shown.losses, reader->losses());
  ASSIGN_OR_RETURN(shown.waits, analyze::activation_waits(*reader));
  ASSIGN_OR_RETURN(shown.info, analyze::load_run_info(*reader));
  ASSIGN_OR_RETURN(shown.analysis, analyze::analyze_run(*reader, shown.info));
  // Another rank's steps are spans and no operations.
  if (shown.info.has_all_ranks())
    std::erase_if(shown.spans, [](const rundb::SpanTotals& span) { return span.name == "step"; });
  ASSIGN_OR_RETURN(shown.stretches, analyze::stretches_of(*reader, shown.info, shown.steps));
  if (!arguments.json) return shown;
  const auto count = static_cast<std::int64_t>(shown.steps.size());
  const std::int64_t first = std::max<std::int64_t>(0, count - arguments.last);
  if (first == count) return shown;
  ASSIGN_OR_RETURN(shown.shares, analyze::stored_verdicts(
                                     *reader, shown.steps[static_cast<std::size_t>(first)].id));
  for (std::int64_t i = first; i < count; ++i) {
    const rundb::StepRow& row = shown.steps[static_cast<std::size_t>(i)];
    if (shown.shares.contains(row.id) || !shown.analysis.has_spans()) continue;
    ASSIGN_OR_RETURN(const analyze::StepData step, analyze::load_step(*reader, shown.info, row));
    shown.shares[row.id] = analyze::verdict_of(step).share;
  }
  return shown;
}

// What another rank's record lacks, told as the run's.
Status add_losses(const analyze::RankRecord& record, Shown& shown) {
  ASSIGN_OR_RETURN(const std::vector<rundb::StatRow> stats, record.reader->stats());
  ASSIGN_OR_RETURN(const rundb::Completeness rows, rundb::completeness_of(*record.reader));
  const analyze::Answer answer = analyze::losses_answer(stats, rows);
  analyze::Answer& told = shown.analysis.answers.front();
  if (answer.outcome != analyze::Outcome::nothing_found &&
      told.outcome == analyze::Outcome::nothing_found) {
    told = answer;
    told.why = fmt::format("rank {}: {}", record.rank, answer.why);
  }
  ASSIGN_OR_RETURN(const std::vector<rundb::StatRow> losses, record.reader->losses());
  for (rundb::StatRow loss : losses) {
    loss.name = analyze::rank_prefix(record.rank) + loss.name;
    shown.losses.push_back(std::move(loss));
  }
  return ok_status();
}

// Rank 0's record, and beside it what all of them say together.
Result<Shown> read_ranks(const ShowArguments& arguments,
                         const std::vector<analyze::RankRecord>& records) {
  ASSIGN_OR_RETURN(Shown shown, read_run(arguments, records.front().path));
  ASSIGN_OR_RETURN(shown.analysis.ranks, analyze::analyze_ranks(records, shown.analysis.steps));
  shown.analysis.answers.push_back(analyze::ranks_answer(*shown.analysis.ranks));
  for (const analyze::RankRecord& record : records) {
    if (record.rank != 0) RETURN_IF_ERROR(add_losses(record, shown));
  }
  return shown;
}

Result<Shown> read(ShowArguments& arguments) {
  arguments.databases = analyze::databases_of(arguments.databases);
  if (arguments.databases.size() == 1) return read_run(arguments, arguments.databases.front());
  ASSIGN_OR_RETURN(const std::vector<analyze::RankRecord> records,
                   analyze::open_rank_records(arguments.databases));
  arguments.databases = {records.front().path};  // of which settings are asked
  return read_ranks(arguments, records);
}

// The median, as wherever the time of a step is said.
TimeNs median_step(const Shown& shown) {
  std::vector<double> durs;
  for (const rundb::StepRow& step : shown.steps) durs.push_back(static_cast<double>(step.dur));
  return static_cast<TimeNs>(analyze::median_of(std::move(durs)));
}

const char* direction_name(rundb::Direction direction) {
  return direction == rundb::Direction::read ? "read" : "write";
}

void print_losses(const Shown& shown, int columns) {
  const analyze::Answer& answer = shown.analysis.answers.front();
  const std::string words = wrapped(analyze::losses_sentence(answer), columns, "  ");
  print_lines(answer.outcome == analyze::Outcome::nothing_found ? words : amber(words));
  if (shown.losses.empty()) return;
  print_lines(
      amber(wrapped("LOST while recording (what follows is not the whole run):", columns, "")));
  for (const rundb::StatRow& stat : shown.losses) {
    print_lines("  " + wrapped(fmt::format("{}: {}, {}", stat.name, format_whole(stat.value),
                                           stat.description),
                               columns - 2, "    "));
  }
}

// A simulated step has no loss.
std::string figure(double value) { return std::isnan(value) ? "-" : fmt::format("{:.4f}", value); }

// A simulated step has no learning rate.
std::string rate(double lr) { return std::isnan(lr) ? "-" : fmt::format("{:.3g}", lr); }

// As many as steps are listed, the last ones.
void print_validations(const Shown& shown, std::int64_t last, int columns) {
  const auto count = std::ssize(shown.validations);
  std::string losses;
  for (std::int64_t i = std::max<std::int64_t>(0, count - last); i < count; ++i) {
    const rundb::ValidationRow& row = shown.validations[static_cast<std::size_t>(i)];
    losses += fmt::format("{}{} (step {})", losses.empty() ? "" : ", ", figure(row.loss),
                          row.step_id + 1);
  }
  if (losses.empty()) return;
  print_lines("  " + wrapped("Validation loss: " + losses, columns - 2, "    "));
}

void print_steps(const Shown& shown, std::int64_t last, int columns) {
  if (shown.steps.empty()) {
    print("\nNo step has ended.\n");
    return;
  }
  const bool is_wide = columns >= 50;
  const bool has_rates = columns >= 64;
  print("\n  step      loss{}{}      time   tokens/s\n", is_wide ? "   grad norm" : "",
        has_rates ? "        lr" : "");
  const auto count = static_cast<std::int64_t>(shown.steps.size());
  for (std::int64_t i = std::max<std::int64_t>(0, count - last); i < count; ++i) {
    const rundb::StepRow& step = shown.steps[static_cast<std::size_t>(i)];
    print("  {:>4}  {:>8}{}{}  {:>8}  {:>9}{}\n", step.id + 1, figure(step.loss),
          is_wide ? fmt::format("  {:>10}", figure(step.grad_norm)) : "",
          has_rates ? fmt::format("  {:>8}", rate(step.lr)) : "", format_duration(step.dur),
          format_count(static_cast<double>(step.tokens) * 1e9 /
                       static_cast<double>(std::max<TimeNs>(1, step.dur))),
          step.skipped ? (is_wide ? "  skipped: overflow" : " x") : "");
  }
}

constexpr int kNameColumns = 16;  // the longest of our stages has as many or fewer
// Lines for names that are no stage of ours: a GPU has a hundred kernels, and most take nothing.
constexpr int kOtherNamesMax = 15;

// The colour that the database has for a stage; what others recorded has none.
std::optional<std::uint32_t> colour_of_stage(const Shown& shown, const std::string& name) {
  for (const auto& [id, stage] : shown.info.stages) {
    const auto said = shown.info.strings.find(id);
    if (said != shown.info.strings.end() && said->second == name) return parse_colour(stage.colour);
  }
  return std::nullopt;
}

// A name that is too long for its column has a line of its own.
std::string name_column(const Shown& shown, const std::string& name, int columns) {
  const std::size_t size_max = static_cast<std::size_t>(columns) - 2;
  const std::string text = escaped_for_terminal(short_kernel_name(name, size_max));
  if (columns_of(text) > kNameColumns) return fmt::format("{}\n  {:{}}", text, "", kNameColumns);
  const std::optional<std::uint32_t> colour = colour_of_stage(shown, name);
  return padded(colour ? painted(text, *colour) : text, kNameColumns);
}

// What `kOtherNamesMax` leaves out, so that nothing is missing unsaid.
void print_left_out(const rundb::SpanTotals& sum, std::int64_t name_count, int columns) {
  if (name_count == 0) return;
  print_lines(
      "  " +
      wrapped(fmt::format("and {} more names, {} in {} operations (--json lists them)", name_count,
                          format_duration(sum.dur_total), format_whole(sum.count)),
              columns - 2, "  "));
}

void print_spans(const Shown& shown, int columns) {
  if (shown.spans.empty()) {
    print_lines("\n" +
                wrapped("No operation is in the record, or none has a name.", columns, "  "));
    return;
  }
  print_lines("\n" + wrapped(fmt::format("{} (operations overlap, so the sum exceeds the run):",
                                         words::kStatistics),
                             columns, "  "));
  const bool is_wide = columns >= 72;
  print("  {:<16}{} {:>10}{} {:>10}{}\n", "stage", is_wide ? "    count" : "", "total",
        is_wide ? "       mean" : "", "longest", is_wide ? "       bytes" : "");
  int other_count = 0;
  std::int64_t left_out_count = 0;
  rundb::SpanTotals left_out;
  for (const rundb::SpanTotals& span : shown.spans) {
    if (!colour_of_stage(shown, span.name) && ++other_count > kOtherNamesMax) {
      ++left_out_count;
      left_out.count += span.count;
      left_out.dur_total += span.dur_total;
      continue;
    }
    print_lines(fmt::format(
        "  {}{} {:>10}{} {:>10}{}\n", name_column(shown, span.name, columns),
        is_wide ? fmt::format(" {:>8}", format_whole(span.count)) : "",
        format_duration(span.dur_total),
        is_wide ? fmt::format(" {:>10}", format_duration(span.dur_mean)) : "",
        format_duration(span.dur_max),
        is_wide ? fmt::format(" {:>11}", span.bytes > 0 ? format_bytes(span.bytes) : "-") : ""));
  }
  print_left_out(left_out, left_out_count, columns);
}

// As much of the links of one kind ("csd3.drive" of "drive", "rank 2: host" of "host") as one line
// can say.
struct LinkLine {
  std::string name;
  std::array<double, 2> least{};  // by direction, bytes a step
  std::array<double, 2> most{};
};

std::string kind_of_link(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot != std::string::npos) return name.substr(dot + 1);
  const std::size_t colon = name.starts_with("rank ") ? name.find(": ") : std::string::npos;
  return colon == std::string::npos ? name : name.substr(colon + 2);
}

std::vector<LinkLine> link_lines(const Shown& shown) {
  std::map<std::string, std::map<std::string, std::array<double, 2>>> by_kind;
  for (const rundb::LinkTotals& link : shown.links) {
    by_kind[kind_of_link(link.link)][link.link][link.direction == rundb::Direction::read ? 0 : 1] =
        link.bytes_per_step_mean;
  }
  std::vector<LinkLine> lines;
  for (const auto& [kind, links] : by_kind) {
    LinkLine line;
    line.name =
        links.size() == 1 ? links.begin()->first : fmt::format("{} ({})", kind, links.size());
    line.least = links.begin()->second;
    for (const auto& [name, bytes] : links) {
      for (std::size_t d = 0; d < 2; ++d) {
        line.least[d] = std::min(line.least[d], bytes[d]);
        line.most[d] = std::max(line.most[d], bytes[d]);
      }
    }
    lines.push_back(line);
  }
  return lines;
}

std::string byte_range(double least, double most) {
  if (most <= 0) return "-";
  const std::string most_text = format_bytes(static_cast<std::int64_t>(most));
  const std::string least_text = format_bytes(static_cast<std::int64_t>(least));
  return least_text == most_text ? most_text : least_text + " to " + most_text;
}

void print_links(const Shown& shown, int columns) {
  if (shown.links.empty()) {
    print_lines("\n" + wrapped("No link is known to have moved bytes.", columns, "  "));
    return;
  }
  const bool is_wide = columns >= 68;
  print("\nBytes a step, payload:\n");
  if (is_wide) print("  {:<20} {:>22} {:>22}\n", "link", "read", "write");
  for (const LinkLine& line : link_lines(shown)) {
    const std::string read = byte_range(line.least[0], line.most[0]);
    const std::string write = byte_range(line.least[1], line.most[1]);
    if (is_wide) {
      print("  {:<20} {:>22} {:>22}\n", line.name, read, write);
    } else {
      print("  {}\n    read  {:>22}\n    write {:>22}\n", line.name, read, write);
    }
  }
  std::int64_t padding_bytes = 0;
  for (const rundb::LinkTotals& link : shown.links) padding_bytes += link.padding_bytes;
  print_lines(
      "  " + wrapped(fmt::format("(and padding to whole pages: {} over all links in the whole run)",
                                 format_bytes(padding_bytes)),
                     columns - 2, "  "));
}

// "48 ms a step for activations to leave (layer 3: 20 ms, layer 2: 15 ms and 2 more)".
std::string waits_of_layers(std::vector<analyze::LayerWaits> layers,
                            TimeNs analyze::LayerWaits::* ns, std::size_t steps) {
  constexpr std::size_t kNamed = 3;
  std::erase_if(layers, [ns](const analyze::LayerWaits& layer) { return layer.*ns == 0; });
  std::ranges::stable_sort(layers, std::greater<>(), ns);
  const auto a_step = [steps](TimeNs sum_ns) {
    return format_duration(sum_ns / static_cast<TimeNs>(std::max<std::size_t>(1, steps)));
  };
  TimeNs sum_ns = 0;
  std::string named;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    sum_ns += layers[i].*ns;
    if (i < kNamed) {
      named +=
          fmt::format("{}layer {}: {}", i == 0 ? "" : ", ", layers[i].layer, a_step(layers[i].*ns));
    }
  }
  if (layers.size() > kNamed) named += fmt::format(" and {} more", layers.size() - kNamed);
  return sum_ns == 0 ? "0 s a step" : fmt::format("{} a step ({})", a_step(sum_ns), named);
}

void print_placement(const Shown& shown, int columns) {
  const std::string placement = shown.meta_value("placement");
  if (placement != "?") print_lines("\n" + wrapped("Placement: " + placement, columns, "  "));
}

void print_activations(const Shown& shown, int columns) {
  const std::string layers = shown.meta_value("activation_layers");
  if (layers != "?") print_lines("\n" + wrapped("Activations of layers: " + layers, columns, "  "));
  if (shown.waits.empty()) return;
  print_lines("  " + wrapped("Waited for them to leave: " +
                                 waits_of_layers(shown.waits, &analyze::LayerWaits::out_ns,
                                                 shown.steps.size()),
                             columns - 2, "    "));
  print_lines("  " + wrapped("Waited for them to come back: " +
                                 waits_of_layers(shown.waits, &analyze::LayerWaits::back_ns,
                                                 shown.steps.size()),
                             columns - 2, "    "));
}

// Where a run changed its mode; a run in one has said it in its first line.
void print_modes(const Shown& shown, int columns) {
  if (shown.info.mode.stretches.size() < 2) return;
  print("In which mode its steps ran:\n");
  for (const analyze::ModeStretch& stretch : shown.info.mode.stretches) {
    const std::string steps =
        stretch.last_step < 0
            ? fmt::format("from step {} on", stretch.first_step + 1)
            : fmt::format("steps {} to {}", stretch.first_step + 1, stretch.last_step + 1);
    print_lines("  " + wrapped(fmt::format("{:<18} {}", steps, stretch.line), columns - 2,
                               std::string(21, ' ')));
  }
}

void print_head(const Shown& shown, int columns) {
  const std::string mode = shown.info.mode.line();
  print_lines(wrapped(fmt::format("{}: {}", shown.meta_value("name"),
                                  mode.empty() ? "in which mode it ran is not known" : mode),
                      columns, "  "));
  print_lines(wrapped(fmt::format("{} parameters on {}; started {}",
                                  format_count(shown.info.meta_number("parameters", 0)),
                                  shown.meta_value("machine"), shown.meta_value("started_utc")),
                      columns, "  "));
  print_modes(shown, columns);
  if (shown.steps.empty()) return;
  print_lines(
      wrapped(fmt::format("{} step{}, {} a step{}{}", format_whole(std::ssize(shown.steps)),
                          shown.steps.size() == 1 ? "" : "s", format_duration(median_step(shown)),
                          shown.steps.size() == 1 ? "" : " (median of all)",
                          std::isnan(shown.steps.back().loss)
                              ? ""
                              : fmt::format(", loss {:.4f} -> {:.4f}", shown.steps.front().loss,
                                            shown.steps.back().loss)),
              columns, "  "));
}

void print_text(const Shown& shown, std::int64_t last) {
  const int columns = terminal_columns();
  print_head(shown, columns);
  print_losses(shown, columns);
  if (shown.analysis.ranks) {
    const std::string ranks = ranks_text(*shown.analysis.ranks, columns);
    if (!ranks.empty()) print_lines("\n" + ranks);
    print_lines("  " +
                wrapped("The causes, links and settings below are rank 0's.", columns - 2, "  "));
  }
  const std::string late = late_text(shown.analysis.lateness, columns);
  if (!late.empty()) print_lines("\n" + late);
  const std::string verdict = verdict_text(shown.analysis, shown.predicted, shown.info, columns);
  if (!verdict.empty()) print_lines("\n" + verdict);
  const std::string stretches =
      stretches_text(shown.stretches, shown.info, shown.analysis.lateness, columns);
  if (!stretches.empty()) print_lines("\n" + stretches);
  print_lines("\n" + answers_text(shown.answers(), columns));
  print_steps(shown, last, columns);
  print_validations(shown, last, columns);
  print_spans(shown, columns);
  print_links(shown, columns);
  print_placement(shown, columns);
  print_activations(shown, columns);
}

nlohmann::ordered_json shares_json(const std::array<double, analyze::kCauseCount>& shares) {
  nlohmann::ordered_json json;
  for (std::size_t c = 0; c < analyze::kCauseCount; ++c) {
    json[std::string(analyze::cause_name(static_cast<analyze::Cause>(c)))] = shares[c];
  }
  return json;
}

nlohmann::ordered_json verdict_json(const analyze::RunAnalysis& analysis,
                                    const std::optional<analyze::PredictedChanges>& predicted) {
  nlohmann::ordered_json json;
  json["steps"] = analysis.steps.size();
  json["dur"] = analysis.dur;
  json["share"] = nullptr;  // of nothing that is known
  if (analysis.has_spans()) json["share"] = shares_json(analysis.share);
  json["findings"] = nlohmann::ordered_json::array();
  for (const analyze::Finding& finding : analyze::findings(analysis)) {
    json["findings"].push_back(finding.text);
  }
  json["predicted"] = nlohmann::ordered_json::array();
  if (!predicted) return json;
  const analyze::TurnNext next = analyze::turn_next(*predicted);
  for (const auto* list : {&next.now, &next.another_run}) {
    for (const analyze::PredictedChange& one : *list) {
      json["predicted"].push_back({{"setting", one.settings.front()},
                                   {"seconds", one.seconds},
                                   {"change", one.change},
                                   {"why", one.why},
                                   {"needs_new_run", one.needs_new_run}});
    }
  }
  return json;
}

nlohmann::ordered_json lateness_json(const analyze::Lateness& lateness) {
  if (!lateness.is_emulated) return nullptr;
  return {{"operations", lateness.all.operations},
          {"late", lateness.all.late},
          {"late_share", lateness.all.late_share()},
          {"time_share", lateness.all.time_share()},
          {"is_late", lateness.is_late()},
          {"words", lateness.words()},
          {"stages", lateness.stages},
          {"needed_time_scale", lateness.needed_time_scale}};
}

void print_json(const Shown& shown) {
  nlohmann::ordered_json json;
  for (const rundb::MetaRow& row : shown.meta) json["meta"][row.key] = row.value;
  json["mode"] = shown.info.mode.line();
  json["modes"] = nlohmann::ordered_json::array();
  for (const analyze::ModeStretch& stretch : shown.info.mode.stretches) {
    nlohmann::ordered_json last_step;  // null: the run's last
    if (stretch.last_step >= 0) last_step = stretch.last_step + 1;
    json["modes"].push_back(
        {{"first_step", stretch.first_step + 1}, {"last_step", last_step}, {"mode", stretch.line}});
  }
  json["steps"] = nlohmann::ordered_json::array();
  for (const rundb::StepRow& step : shown.steps) {
    json["steps"].push_back({{"step", step.id + 1},
                             {"ts", step.ts},
                             {"dur", step.dur},
                             {"loss", step.loss},
                             {"grad_norm", step.grad_norm},
                             {"loss_scale", step.loss_scale},
                             {"lr", step.lr},
                             {"tokens", step.tokens},
                             {"skipped", step.skipped}});
    const auto shares = shown.shares.find(step.id);
    if (shares == shown.shares.end()) continue;
    json["steps"].back()["share"] = shares_json(shares->second);
  }
  json["skipped_steps"] = shown.analysis.skipped_count;
  json["validations"] = nlohmann::ordered_json::array();
  for (const rundb::ValidationRow& row : shown.validations) {
    json["validations"].push_back(
        {{"step", row.step_id + 1}, {"loss", row.loss}, {"tokens", row.tokens}});
  }
  json["stages"] = nlohmann::ordered_json::array();
  for (const rundb::SpanTotals& span : shown.spans) {
    json["stages"].push_back({{"name", span.name},
                              {"count", span.count},
                              {"dur_total", span.dur_total},
                              {"dur_max", span.dur_max},
                              {"bytes", span.bytes},
                              {"padding_bytes", span.padding_bytes}});
  }
  json["links"] = nlohmann::ordered_json::array();
  for (const rundb::LinkTotals& link : shown.links) {
    json["links"].push_back({{"link", link.link},
                             {"direction", direction_name(link.direction)},
                             {"bytes", link.bytes},
                             {"padding_bytes", link.padding_bytes},
                             {"bytes_per_step", link.bytes_per_step_mean}});
  }
  json["activation_waits"] = nlohmann::ordered_json::array();
  for (const analyze::LayerWaits& layer : shown.waits) {
    json["activation_waits"].push_back({{"layer", layer.layer},
                                        {"out_count", layer.out_count},
                                        {"out_ns", layer.out_ns},
                                        {"back_count", layer.back_count},
                                        {"back_ns", layer.back_ns}});
  }
  json["verdict"] = verdict_json(shown.analysis, shown.predicted);
  if (shown.analysis.ranks) json["ranks"] = ranks_json(*shown.analysis.ranks);
  json["answers"] = answers_json(shown.answers());
  json["knob_changes"] = nlohmann::ordered_json::array();
  for (const rundb::KnobChangeRow& change : shown.info.knob_changes) {
    json["knob_changes"].push_back({{"step", change.step_id + 1},
                                    {"knob", change.knob},
                                    {"old", change.old_value},
                                    {"new", change.new_value},
                                    {"who", change.who}});
  }
  json["stretches"] = nlohmann::ordered_json::array();
  for (const analyze::Stretch& stretch : shown.stretches) {
    json["stretches"].push_back(
        {{"first_step", stretch.first_step + 1},
         {"last_step", stretch.last_step + 1},
         {"settings", stretch.settings},
         {"steps", stretch.steps},
         {"dur", stretch.dur},
         {"noise", stretch.noise},
         {"host_link", {{"read", stretch.read_bytes}, {"write", stretch.write_bytes}}},
         {"speed_up", stretch.speed_up},
         {"late_share", stretch.lateness.late_share()},
         {"is_speed_up_late", stretch.is_speed_up_late}});
  }
  json["lateness"] = lateness_json(shown.analysis.lateness);
  json["losses"] = nlohmann::ordered_json::array();
  for (const rundb::StatRow& stat : shown.losses) {
    json["losses"].push_back(
        {{"name", stat.name}, {"value", stat.value}, {"description", stat.description}});
  }
  print_lines(json_text(json, 2) + "\n");
}

}  // namespace

void add_show_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ShowArguments>();
  CLI::App* command = app.add_subcommand(
      "show", "Steps of a run, where its time went, its bytes, what was not recorded");
  command
      ->add_option(
          "database", arguments->databases,
          "the run database, or its folder; of a run of several ranks those of all, or the "
          "run's output folder; the run may be live")
      ->required();
  command
      ->add_option("--last", arguments->last,
                   "how many steps to list (default 10); with --json also what "
                   "each of them spent its time on")
      ->check(at_least(0));
  command->add_flag("!--no-predict", arguments->predict,
                    "do not simulate what settings would gain (which takes a second or so)");
  command->add_flag("--json", arguments->json, "print one JSON object and nothing else");
  command->footer(
      "Examples:\n"
      "  sluice show out/tiny/run.db --last 20\n"
      "  sluice show out/tiny                     (OUTPUT of mpirun -n 4 sluice train)");
  command->callback([arguments, &exit_code] {
    Result<Shown> shown = read(*arguments);
    if (!shown.ok()) {
      exit_code = report_error(wrong_database(shown.error()));
      return;
    }
    if (arguments->predict) shown->predicted = tune::predict(arguments->databases.front());
    if (arguments->json) {
      print_json(*shown);
    } else {
      print_text(*shown, arguments->last);
    }
  });
}

}  // namespace sluice::cli
