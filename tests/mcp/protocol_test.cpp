#include "mcp/protocol.h"

#include "tests/mcp/served_runs.h"

namespace sluice::mcp {
namespace {

TEST_CASE("a client is offered a version of the protocol that both know") {
  const TestFolder folder;
  Server server = server_over(folder.path());
  CHECK(asked(server, hello("2025-06-18"))["result"]["protocolVersion"] == "2025-06-18");
  CHECK(asked(server, hello("2999-01-01"))["result"]["protocolVersion"] == "2025-11-25");
  CHECK(asked(server, request(2, "initialize", Json::object()))["error"]["code"] == -32602);
}

TEST_CASE("what is no request of ours is refused with the code that says why") {
  const TestFolder folder;
  Server server = server_over(folder.path());
  CHECK(asked(server, "{\"jsonrpc\":")["error"]["code"] == -32700);
  CHECK(asked(server, "[]")["error"]["code"] == -32600);
  CHECK(asked(server, "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}")["error"]["code"] ==
        -32600);
  CHECK(asked(server, request(3, "tools/list", {}))["error"]["code"] == -32600);  // no initialize
  CHECK(asked(server, request(3, "ping", {}))["result"] == Json::object());
  REQUIRE(server.reply_to(hello()));
  CHECK(asked(server, request(3, "resources/list", {}))["error"]["code"] == -32601);
  CHECK(asked(server, call_of("overvew", {}))["error"]["message"].get<std::string>().find(
            "did you mean 'overview'") != std::string::npos);
  CHECK_FALSE(server.reply_to("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"));
  CHECK_FALSE(server.reply_to("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"));
}

TEST_CASE("tools that change a run are not listed and refused without permission") {
  const TestFolder folder;
  make_run(folder);
  Server reads = server_over(folder.path());
  Server writes = server_over(folder.path(), Writing::allow);
  REQUIRE(reads.reply_to(hello()));
  REQUIRE(writes.reply_to(hello()));
  const auto listed = [](Server& server) {
    return asked(server, request(2, "tools/list", Json::object()))["result"]["tools"];
  };
  CHECK(listed(writes).size() == listed(reads).size() + 3);
  for (const char* tool : {"set_knob", "snapshot", "stop"}) {
    const Json refused = asked(reads, call_of(tool, {{"run", "run.db"}}))["result"];
    CHECK(refused["isError"] == true);
    CHECK(refused["structuredContent"]["why"].get<std::string>().find("without --allow-write") !=
          std::string::npos);
  }
  // Allowed, and no run listens.
  const Json asked_for = asked(writes, call_of("stop", {{"run", "run.db"}}))["result"];
  CHECK(asked_for["structuredContent"]["why"].get<std::string>().find("no run listens") !=
        std::string::npos);
}

TEST_CASE("no path leads out of the runs that a server was given") {
  const TestFolder folder;
  const TestFolder outside;
  const std::string secret = make_run(outside);
  make_run(folder);
  std::filesystem::create_symlink(secret, folder.file("link.db"));
  Server server = server_over(folder.path());
  REQUIRE(server.reply_to(hello()));
  for (const std::string& path :
       {secret, std::string("link.db"), std::string("/etc/passwd"),
        "../" + std::filesystem::path(outside.path()).filename().string() + "/run.db"}) {
    const Json refused = asked(server, call_of("overview", {{"run", path}}))["result"];
    CHECK(refused["structuredContent"]["why"].get<std::string>().find("lies outside") !=
          std::string::npos);
  }
  CHECK(asked(server, call_of("list_runs", Json::object()))["result"]["structuredContent"]["runs"]
            .size() == 1);
  CHECK(asked(server,
              call_of("overview", {{"run", "run.db"}}))["result"]["structuredContent"]["outcome"] ==
        "found");
}

}  // namespace
}  // namespace sluice::mcp
