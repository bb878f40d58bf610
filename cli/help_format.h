#pragma once
// --help in the columns that there are: descriptions and paragraphs are wrapped, examples stay as
// they are written.
//
// Thread contract: main thread.

#include <CLI/CLI.hpp>
#include <string>

namespace sluice::cli {

class HelpFormat final : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
};

}  // namespace sluice::cli
