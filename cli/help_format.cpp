#include "cli/help_format.h"

#include <algorithm>
#include <sstream>

#include "cli/terminal.h"

namespace sluice::cli {
namespace {

constexpr int kHelpNameColumns = 26;
constexpr int kColumnsMost = 100;  // longer lines are hard to read

int help_columns() { return std::min(kColumnsMost, terminal_columns()); }

std::string without_last_line_feed(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// In the column behind the names; whoever prints it indents.
std::string description_lines(const std::string& description) {
  return without_last_line_feed(wrapped(description, help_columns() - kHelpNameColumns, ""));
}

// Lines of an example or of a heading stay; others are a paragraph, wherever they were broken.
bool is_of_paragraph(const std::string& line) {
  return !line.empty() && line.front() != ' ' && !line.starts_with("Example");
}

std::string paragraphs(const std::string& text) {
  std::istringstream lines(text);
  std::string all;
  std::string paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) all += wrapped(paragraph, help_columns(), "");
    paragraph.clear();
  };
  for (std::string line; std::getline(lines, line);) {
    if (is_of_paragraph(line)) {
      paragraph += (paragraph.empty() ? "" : " ") + line;
      continue;
    }
    end_paragraph();
    all += line + "\n";
  }
  end_paragraph();
  return all;
}

}  // namespace

// Without the value that a flag sets ("--no-predict{false}"): it is the flag's own affair.
std::string HelpFormat::make_option_name(const CLI::Option* option, bool is_positional) const {
  const std::string name = Formatter::make_option_name(option, is_positional);
  return name.substr(0, name.find('{'));
}

// Options that it excludes or needs are named by the refusal; here they would fill the column.
std::string HelpFormat::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0) return "";
  // "INT:1 to 1024": what it is, and what it may be.
  const std::string type = option->get_type_name();
  const std::size_t colon = type.find(':');
  std::string text = option->get_positional() ? "" : " " + get_label(type.substr(0, colon));
  if (colon != type.npos && !option->get_positional()) text += " (" + type.substr(colon + 1) + ")";
  if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
  return text;
}

std::string HelpFormat::make_option_desc(const CLI::Option* option) const {
  const std::string& otherwise = option->get_default_str();
  return description_lines(option->get_description() +
                           (otherwise.empty() ? "" : " (default " + otherwise + ")"));
}

std::string HelpFormat::make_subcommand(const CLI::App* command) const {
  std::ostringstream out;
  CLI::detail::format_help(out, command->get_display_name(true),
                           description_lines(command->get_description()), kHelpNameColumns);
  return out.str();
}

std::string HelpFormat::make_description(const CLI::App* app) const {
  return paragraphs(app->get_description());
}

std::string HelpFormat::make_footer(const CLI::App* app) const {
  return paragraphs(app->get_footer());
}

}  // namespace sluice::cli
