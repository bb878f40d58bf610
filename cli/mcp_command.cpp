// `sluice mcp`: the runs, for programs that ask (docs/mcp.md).

#include <unistd.h>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "mcp/protocol.h"

namespace sluice::cli {
namespace {

struct McpArguments {
  std::vector<std::string> databases;
  std::string folder;
  bool allow_write = false;
};

Status serve_mcp(const McpArguments& arguments) {
  if (arguments.databases.empty() && arguments.folder.empty())
    return make_error(ErrorCode::config, "which runs? Name run databases, or --runs DIR");
  ASSIGN_OR_RETURN(mcp::RunFolders runs,
                   mcp::RunFolders::open(arguments.databases, arguments.folder));
  mcp::Server server(std::move(runs),
                     arguments.allow_write ? mcp::Writing::allow : mcp::Writing::refuse,
                     SLUICE_VERSION);
  return mcp::serve(server, STDIN_FILENO, STDOUT_FILENO);
}

}  // namespace

void add_mcp_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<McpArguments>();
  CLI::App* command = app.add_subcommand(
      "mcp", "Answer programs that ask about runs: the Model Context Protocol on stdin and stdout");
  command->add_option("databases", arguments->databases,
                      "run databases, or their folders, that may be asked about");
  command->add_option("--runs", arguments->folder,
                      "a folder: every run database in it may be asked about, too");
  command->add_flag("--allow-write", arguments->allow_write,
                    "the program may change knobs of live runs, keep snapshots and stop runs");
  command->footer(
      "A program starts this and talks to it, one JSON message a line; it ends when stdin does. It "
      "reads no file but these runs, and without --allow-write changes nothing.\n"
      "Examples:\n"
      "  sluice mcp out/tiny/run.db\n"
      "  sluice mcp --runs out --allow-write\n"
      "  {\"mcpServers\": {\"sluice\": {\"command\": \"sluice\", \"args\": [\"mcp\", \"--runs\", "
      "\"out\"]}}}");
  command->callback([arguments, &exit_code] {
    const Status status = serve_mcp(*arguments);
    if (!status.ok()) exit_code = report_error(status.error());
  });
}

}  // namespace sluice::cli
