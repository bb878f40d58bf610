#include "gui/data/run_notes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/safe_file.h"
#include "profiler/report/output.h"

namespace sluice::gui {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;
constexpr std::size_t kFileBytesMax = kNotesMax * (kNoteBytesMax + 200);

Error damaged(const std::string& why) {
  return make_error(ErrorCode::corrupt, "the notes beside the run cannot be read: {}", why);
}

// The whole file; "" where there is none.
Result<std::string> text_of_file(const std::string& path) {
  bool is_missing = false;
  const Result<int> file =
      open_regular_file(path, O_RDONLY, FileTrust::given, [&](int error_number) {
        is_missing = error_number == ENOENT;
        return damaged(fmt::format("{}: {}", path, std::strerror(error_number)));
      });
  if (!file.ok()) return is_missing ? Result<std::string>(std::string()) : file.error();
  std::string text(kFileBytesMax + 1, '\0');
  std::size_t size = 0;
  ssize_t count = 1;
  while (count > 0 && size < text.size()) {
    count = ::read(*file, text.data() + size, text.size() - size);
    if (count > 0) size += static_cast<std::size_t>(count);
  }
  ::close(*file);
  if (count < 0) return damaged(path + ": it cannot be read");
  if (size > kFileBytesMax)
    return damaged(fmt::format("{} has more than {} bytes", path, kFileBytesMax));
  text.resize(size);
  return text;
}

// Whole or not at all; and not over what somebody else has written.
std::string replace_file(const std::string& path, const std::string& before,
                         const std::string& text) {
  const Result<std::string> now = text_of_file(path);
  if (!now.ok()) return now.error().message();
  if (*now != before)
    return "the notes are not kept: another window has changed them; open the run again";
  Result<report::OutputFile> file = report::OutputFile::create(path, report::IfExists::replace);
  Status written = file.ok() ? file->write(text) : Status(file.error());
  if (written.ok()) written = file->close();
  return written.ok() ? "" : "the notes are not kept: " + written.error().message();
}

}  // namespace

std::string notes_path(const std::string& database) { return database + ".notes"; }

Result<std::vector<RunNote>> parse_notes(const std::string& text) {
  std::vector<RunNote> notes;
  if (text.empty()) return notes;
  const json file = json::parse(text, nullptr, false);
  if (!file.is_object() || file.value("sluice_notes", 0) != kVersion || !file.contains("notes") ||
      !file["notes"].is_array())
    return damaged(fmt::format("it is no list of notes of version {}", kVersion));
  for (const json& entry : file["notes"]) {
    if (notes.size() == kNotesMax) return damaged(fmt::format("more than {} notes", kNotesMax));
    const bool is_note = entry.is_object() && entry.contains("ts") &&
                         entry["ts"].is_number_integer() && entry.contains("text") &&
                         entry["text"].is_string();
    if (!is_note) return damaged(fmt::format("note {} has no ts and text", notes.size() + 1));
    const auto span = entry.find("span_id");
    const bool has_span = span != entry.end() && span->is_number_integer();
    notes.push_back({entry["ts"].get<TimeNs>(), has_span ? span->get<std::int64_t>() : 0,
                     entry["text"].get<std::string>().substr(0, kNoteBytesMax)});
  }
  std::ranges::stable_sort(notes, {}, &RunNote::ts);
  return notes;
}

std::string notes_text(const std::vector<RunNote>& notes) {
  json list = json::array();
  for (const RunNote& note : notes) {
    json entry = {{"ts", note.ts}, {"text", note.text}};
    if (note.span_id != 0) entry["span_id"] = note.span_id;
    list.push_back(std::move(entry));
  }
  const json file = {{"sluice_notes", kVersion}, {"notes", std::move(list)}};
  return file.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

void RunNotes::open(const std::string& database, std::function<void()> wake) {
  path_ = notes_path(database);
  wake_ = std::move(wake);
  reading_.begin(
      [path = path_]() -> Found {
        Result<std::string> text = text_of_file(path);
        if (!text.ok()) return {"", text.error().message()};
        return {*std::move(text), ""};
      },
      wake_);
}

void RunNotes::pick_up() {
  if (const auto found = reading_.result(); found != nullptr && !is_read_ && problem_.empty()) {
    const Result<std::vector<RunNote>> notes = parse_notes(found->text);
    problem_ = !found->problem.empty() ? found->problem : notes.ok() ? "" : notes.error().message();
    is_read_ = problem_.empty();
    if (is_read_) {
      notes_ = *notes;
      file_text_ = found->text;
    }
  }
  if (written_.is_working()) return;
  if (const auto problem = written_.result(); problem != nullptr) {
    problem_ = *problem;
    if (problem_.empty()) file_text_ = writing_;
    written_.forget();
  }
  if (is_changed_ && problem_.empty()) write();
}

void RunNotes::write() {
  is_changed_ = false;
  writing_ = notes_text(notes_);
  written_.begin([path = path_, before = file_text_,
                  text = writing_] { return replace_file(path, before, text); },
                 wake_);
}

bool RunNotes::add(RunNote note) {
  if (!is_read_ || notes_.size() >= kNotesMax || note.text.empty()) return false;
  note.text = note.text.substr(0, kNoteBytesMax);
  notes_.insert(std::ranges::upper_bound(notes_, note.ts, {}, &RunNote::ts), std::move(note));
  is_changed_ = true;
  return true;
}

void RunNotes::change(std::size_t index, const std::string& text) {
  if (index >= notes_.size() || notes_[index].text == text) return;
  if (text.empty()) {
    notes_.erase(notes_.begin() + static_cast<std::ptrdiff_t>(index));
  } else {
    notes_[index].text = text.substr(0, kNoteBytesMax);
  }
  is_changed_ = true;
}

}  // namespace sluice::gui
