#include "gui/data/export_run.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "base/free_path.h"
#include "gui/data/child_process.h"

namespace sluice::gui {
namespace {

struct Form {
  const char* ending;
  std::vector<std::string> arguments;  // between the program and the database
};

Form form_of(ExportForm form) {
  switch (form) {
    case ExportForm::report:
      return {".html", {"report"}};
    case ExportForm::trace:
      return {".trace.json.gz", {"export", "--format", "chrome"}};
    case ExportForm::tables:
      break;
  }
  return {"-tables", {"export", "--format", "csv"}};
}

}  // namespace

std::string export_path(const std::string& database, ExportForm form, const ExportSteps& steps) {
  const std::filesystem::path file(database);
  std::string name = file.stem().string();
  if (!steps.is_whole_run()) name += fmt::format("-steps-{}-{}", steps.first, steps.last);
  return free_path(file.parent_path(), name, form_of(form).ending).string();
}

Exported export_run(const std::string& program, const ExportSource& source, ExportForm form,
                    const ExportSteps& steps) {
  Exported exported{export_path(source.beside, form, steps), {}};
  std::vector<std::string> arguments = {program.empty() ? find_sluice() : program};
  if (arguments.front().empty()) {
    exported.problem =
        "The program `sluice` is neither beside sluice-gui nor in PATH; it does the exporting.";
    return exported;
  }
  for (const std::string& word : form_of(form).arguments) arguments.push_back(word);
  if (!steps.is_whole_run()) {
    arguments.emplace_back("--steps");
    arguments.push_back(fmt::format("{}..{}", steps.first, steps.last));
  }
  arguments.insert(arguments.end(), {source.database, "-o", exported.path});
  const auto output = run_child(arguments, kNeverStopped);
  if (!output.ok()) {
    exported.problem = output.error().message();
  } else if (output->exit_code != 0) {
    exported.problem = why_failed(arguments.front(), *output);
  }
  return exported;
}

}  // namespace sluice::gui
