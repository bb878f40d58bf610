#pragma once
// A server in this process, over a folder of its own with a simulated run.
//
// Thread contract: made by one thread.

#include <catch2/catch.hpp>
#include <string>

#include "mcp/protocol.h"
#include "tests/cli/command_line_fixture.h"
#include "tests/test_folder.h"

namespace sluice::mcp {

inline Server server_over(const std::string& folder, Writing writing = Writing::refuse) {
  auto runs = RunFolders::open({}, folder);
  REQUIRE(runs.ok());
  return Server(*std::move(runs), writing, "0");
}

inline std::string make_run(const TestFolder& folder) {
  const std::string run = folder.file("run.db");
  REQUIRE(cli::run({"simulate", "sample_models/models/gpt2-124m.toml", "--platform",
                    "sample_models/platforms/smartssd-a5000.toml", "--set", "devices=2", "--db",
                    run}) == 0);
  return run;
}

inline std::string request(int id, const std::string& method, const Json& params) {
  return text_of({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}});
}

inline std::string call_of(const std::string& tool, const Json& arguments, int id = 7) {
  return request(id, "tools/call", {{"name", tool}, {"arguments", arguments}});
}

inline std::string hello(const std::string& version = "2025-11-25") {
  return request(1, "initialize",
                 {{"protocolVersion", version},
                  {"capabilities", Json::object()},
                  {"clientInfo", {{"name", "test"}, {"version", "1"}}}});
}

// The reply, which there is.
inline Json asked(Server& server, const std::string& line) {
  const auto reply = server.reply_to(line);
  REQUIRE(reply);
  return Json::parse(*reply);
}

}  // namespace sluice::mcp
