#pragma once
// What somebody wrote down about times and operations of a run, in a file beside its database
// (run.db.notes, JSON). A file that is damaged, or that somebody else has changed meanwhile, is
// left as it is, and why is said.
//
// Thread contract: the frame thread; the file is read and written by threads of its own.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "gui/data/background.h"

namespace sluice::gui {

struct RunNote {
  TimeNs ts = 0;             // the run's clock
  std::int64_t span_id = 0;  // that it is about; 0: the time alone
  std::string text;
  bool operator==(const RunNote&) const = default;
};
inline constexpr std::size_t kNotesMax = 1000;
inline constexpr std::size_t kNoteBytesMax = 2000;

std::string notes_path(const std::string& database);
// `text`: of the whole file; "": none was written yet. ErrorCode::corrupt: it holds no notes.
Result<std::vector<RunNote>> parse_notes(const std::string& text);
std::string notes_text(const std::vector<RunNote>& notes);

class RunNotes {
 public:
  RunNotes() = default;
  // Begins to read; `wake` is called when something is there.
  void open(const std::string& database, std::function<void()> wake);
  // Once a frame.
  void pick_up();

  bool is_read() const { return is_read_; }
  const std::vector<RunNote>& all() const { return notes_; }  // by time
  // Refused (false) before they were read, and where there are kNotesMax. A text that is too long
  // is cut.
  bool add(RunNote note);
  // The index is one of all(); an empty text removes the note.
  void change(std::size_t index, const std::string& text);
  // Why they are not kept; "": they are.
  const std::string& problem() const { return problem_; }

 private:
  struct Found {
    std::string text;
    std::string problem;
  };
  void write();

  std::string path_;
  std::function<void()> wake_;
  std::vector<RunNote> notes_;
  std::string problem_;
  std::string file_text_;  // what the file holds, as far as is known
  std::string writing_;
  bool is_read_ = false;
  bool is_changed_ = false;  // since the last writing began
  Background<Found> reading_;
  Background<std::string> written_;  // the problem of it; "": none
};

}  // namespace sluice::gui
