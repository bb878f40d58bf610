#include "profiler/relay/far_run.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace sluice::relay {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("a run on a server is named as ssh names a host, with a path") {
  struct Named {
    std::string text, user, host;
    int port;
    std::string path;
  };
  const std::vector<Named> all = {
      {"ssh://trainer/out/tiny/run.db", "", "trainer", 0, "/out/tiny/run.db"},
      {"ssh://ann@trainer.example:2222/out/run.db", "ann", "trainer.example", 2222, "/out/run.db"},
      {"ssh://ann@dom@trainer/r.db", "ann@dom", "trainer", 0, "/r.db"},
      {"ssh://[fe80::1%eth0]:22/r.db", "", "fe80::1%eth0", 22, "/r.db"},
      {"ssh://trainer/a b/it's;$(x)/run.db", "", "trainer", 0, "/a b/it's;$(x)/run.db"},
  };
  for (const Named& named : all) {
    CAPTURE(named.text);
    const Result<FarRun> run = parse_far_run(named.text);
    REQUIRE(run.ok());
    CHECK(run->user == named.user);
    CHECK(run->host == named.host);
    CHECK(run->port == named.port);
    CHECK(run->path == named.path);
    CHECK(run->text() == named.text);
  }
}

TEST_CASE("what ssh or a shell would take for something else is refused") {
  const std::vector<std::pair<std::string, std::string>> all = {
      {"http://trainer/run.db", "does not begin with ssh://"},
      {"ssh://trainer", "there is no path"},
      {"ssh://trainer/", "there is no path"},
      {"ssh:///out/run.db", "there is no host"},
      {"ssh://-oProxyCommand=x/run.db", "begins with '-'"},
      {"ssh://ann@-oProxyCommand=x/run.db", "begins with '-'"},
      {"ssh://-ann@trainer/run.db", "begins with '-'"},
      {"ssh://@trainer/run.db", "has no name"},
      {"ssh://a$(x)/run.db", "no host has"},
      {"ssh://a b/run.db", "no host has"},
      {"ssh://a;b@trainer/run.db", "no user has"},
      {"ssh://trainer:0/run.db", "the port"},
      {"ssh://trainer:22x/run.db", "the port"},
      {"ssh://trainer:99999/run.db", "the port"},
      {"ssh://trainer:/run.db", "the port"},
      {"ssh://[::1/run.db", "a bracket is open"},
      {"ssh://[::1]x/run.db", "the port"},
      {"ssh://trainer/a\nb.db", "control character"},
  };
  for (const auto& [text, words] : all) {
    CAPTURE(text);
    const Result<FarRun> run = parse_far_run(text);
    REQUIRE_FALSE(run.ok());
    CHECK(run.error().code() == ErrorCode::config);
    CHECK_THAT(run.error().message(), Contains(words));
  }
}

TEST_CASE("ssh gets the host behind --, and the far shell a quoted path") {
  const FarRun run = *parse_far_run("ssh://ann@trainer:2222/o u't/run.db");
  const std::vector<std::string> words = ssh_command(run, {.program = "/opt/my sluice"});
  REQUIRE(words.size() > 3);
  CHECK(words.front() == "ssh");
  CHECK(*(words.end() - 3) == "--");
  CHECK(*(words.end() - 2) == "ann@trainer");
  CHECK(words.back() == "'/opt/my sluice' relay '/o u'\\''t/run.db'");
  const auto port = std::ranges::find(words, "-p");
  REQUIRE(port != words.end());
  CHECK(*(port + 1) == "2222");
  CHECK(std::ranges::find(words, "-L") == words.end());
}

TEST_CASE("the control socket is forwarded where it is asked for and ssh can") {
  const FarRun run = *parse_far_run("ssh://trainer/out/run.db");
  const std::vector<std::string> words = ssh_command(run, {.control_socket = "/tmp/c.socket"});
  const auto forward = std::ranges::find(words, "-L");
  REQUIRE(forward != words.end());
  CHECK(*(forward + 1) == "/tmp/c.socket:/out/run.db.socket");
  CHECK(why_no_control(run, "/tmp/c.socket").empty());
  CHECK_FALSE(why_no_control(run, "/tmp/c:1.socket").empty());
  const FarRun colon = *parse_far_run("ssh://trainer/out:1/run.db");
  CHECK_FALSE(why_no_control(colon, "/tmp/c.socket").empty());
  const std::vector<std::string> without = ssh_command(colon, {.control_socket = "/tmp/c.socket"});
  CHECK(std::ranges::find(without, "-L") == without.end());
}

}  // namespace
}  // namespace sluice::relay
