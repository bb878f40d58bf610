// Messages of a peer that means harm or knows no better, and databases of which bytes are wrong:
// the server answers each request once, within its bounds, and changes nothing.

#include <fstream>
#include <sstream>

#include "base/split_mix.h"
#include "tests/mcp/served_runs.h"
#include "tests/sanitizer.h"

namespace sluice::mcp {
namespace {

constexpr std::uint64_t kMessages = kIsSanitized ? 1'000 : 10'000;
constexpr std::uint64_t kDamagedFiles = kIsSanitized ? 3 : 15;

class Source {
 public:
  explicit Source(std::uint64_t seed) : seed_(seed) {}
  std::size_t below(std::size_t limit) { return split_mix(seed_, count_++) % limit; }
  template <typename T>
  const T& one_of(const std::vector<T>& values) {
    return values[below(values.size())];
  }

 private:
  std::uint64_t seed_;
  std::uint64_t count_ = 0;
};

const std::vector<std::string>& reading_tools() {
  static const std::vector<std::string> tools = {"list_runs", "overview",  "links",   "causes",
                                                 "stretches", "step_path", "spans",   "compare",
                                                 "query_sql", "what_if",   "propose", "knobs"};
  return tools;
}

// One that is right, or nearly.
Json made_request(Source& source) {
  Json id = source.below(2) == 0 ? Json(source.below(1000)) : Json("id");
  if (source.below(12) == 0)
    id = source.one_of<Json>({nullptr, 1e300, -1, Json::array(), true, std::string(300, 'i')});
  Json message = {{"jsonrpc", "2.0"}, {"id", id}};
  if (source.below(8) == 0) message.erase("id");
  const std::size_t kind = source.below(10);
  if (kind < 3) {
    message["method"] = source.one_of<std::string>(
        {"ping", "tools/list", "initialize", "notifications/initialized", "nothing", ""});
    return message;
  }
  message["method"] = "tools/call";
  const std::string tool = kind < 5 ? source.one_of<std::string>({"set_knob", "snapshot", "stop"})
                                    : source.one_of(reading_tools());
  Json arguments = {{"timeout_ms", 1 + source.below(3)}};
  const auto give = [&](const char* key, const Json& value) {
    if (source.below(3) == 0) arguments[key] = value;
  };
  if (tool != "compare") arguments["run"] = "run.db";
  give("max_bytes", source.one_of<Json>({1024, 4096, 262144, 0, -1, 1e18, "x"}));
  give("step", source.one_of<Json>({1, 4, 0, 9, INT64_MAX, UINT64_MAX, -1e308, "1"}));
  give("sql", source.one_of<Json>({"SELECT * FROM span", "DELETE FROM span", "\x01", 7,
                                   "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) "
                                   "SELECT i FROM n"}));
  give("settings", source.one_of<Json>({{"buffers=4"},
                                        {"a", "="},
                                        "buffers=4",
                                        {1},
                                        Json::array(),
                                        {"buffers=9999999999999999999"}}));
  give("run", source.one_of<Json>({"/etc/passwd", "..", "", "nowhere.db", 1, Json::object()}));
  message["params"] = {{"name", tool}, {"arguments", std::move(arguments)}};
  return message;
}

std::string mutated(std::string line, Source& source) {
  for (std::size_t i = 0, changes = 1 + source.below(4); i < changes; ++i) {
    const std::size_t at = source.below(line.size() + 1);
    switch (source.below(6)) {
      case 0:
        line.resize(at);
        break;
      case 1:
        line.insert(at, 1, static_cast<char>(source.below(256)));
        break;
      case 2:
        line.insert(at, std::string(source.below(2000), source.below(2) == 0 ? '[' : '{'));
        break;
      case 3:
        line.insert(at, source.one_of<std::string>({"1e999", "-0", "99999999999999999999999",
                                                    "null", "\"\\ud800\"", ",", "\"a\":", "[]"}));
        break;
      case 4:
        line.insert(at, line.substr(at, source.below(50)));
        break;
      default:
        if (at < line.size()) line[at] = static_cast<char>(line[at] ^ (1 << source.below(8)));
    }
    if (line.size() > 100'000) line.resize(100'000);
  }
  return line;
}

std::string made_line(Source& source) {
  const std::size_t kind = source.below(10);
  if (kind == 0) {
    std::string noise(source.below(200), ' ');
    for (char& c : noise) c = static_cast<char>(source.below(256));
    return noise;
  }
  if (kind == 1) {
    const std::size_t depth = 1 + source.below(20'000);
    return "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":" +
           std::string(depth, '[') + std::string(depth, ']') + "}";
  }
  std::string line = text_of(made_request(source));
  return kind < 6 ? line : mutated(std::move(line), source);
}

// Whether a message wants a reply with its own id, as JSON-RPC has it.
bool is_request(const Json& message) {
  if (!message.is_object() || !message.contains("id") || !message.contains("method")) return false;
  const Json& id = message["id"];
  const bool has_id = id.is_number() || (id.is_string() && id.get<std::string>().size() <= 256);
  return has_id && message["method"].is_string();
}

bool asks_for_bytes(const Json& message) {
  const Json params = message.is_object() ? message.value("params", Json()) : Json();
  const Json arguments = params.is_object() ? params.value("arguments", Json()) : Json();
  return arguments.is_object() && arguments.contains("max_bytes");
}

std::string bytes_of(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

void check_reply(const Json& reply, const Json& message) {
  REQUIRE(reply.is_object());
  REQUIRE(reply["jsonrpc"] == "2.0");
  REQUIRE(reply.contains("result") != reply.contains("error"));
  if (is_request(message)) REQUIRE(reply["id"] == message["id"]);
  const Json result = reply.value("result", Json::object());
  if (!result.contains("structuredContent")) return;
  const Json& content = result["structuredContent"];
  const std::size_t bytes = text_of(content).size();
  REQUIRE(bytes <= (asks_for_bytes(message) ? kAnswerBytesMost : kAnswerBytesDefault));
  REQUIRE(result["content"][0]["text"] == text_of(content));
  for (const char* key : {"outcome", "why", "evidence"}) REQUIRE(content.contains(key));
}

}  // namespace

TEST_CASE("any message is answered once or wants no answer, and changes nothing") {
  const TestFolder folder;
  const std::string run = make_run(folder);
  const std::string before = bytes_of(run);
  Server server = server_over(folder.path());
  REQUIRE(server.reply_to(hello()));
  std::uint64_t replies = 0;
  std::uint64_t answers = 0;
  std::uint64_t refused_writes = 0;
  for (std::uint64_t seed = 0; seed < kMessages; ++seed) {
    Source source(seed);
    const std::string line = made_line(source);
    INFO("message " << seed << ": " << line.substr(0, 500));
    const Json message = Json::parse(line, nullptr, false);
    const auto reply = server.reply_to(line);
    if (is_request(message)) REQUIRE(reply);
    if (!reply) continue;
    replies += 1;
    REQUIRE(reply->find('\n') == std::string::npos);
    const Json told = Json::parse(*reply, nullptr, false);
    check_reply(told, message);
    if (!told.contains("result") || !told["result"].contains("structuredContent")) continue;
    answers += 1;
    if (told["result"]["structuredContent"]["why"].get<std::string>().find("--allow-write") !=
        std::string::npos)
      refused_writes += 1;
  }
  // Each kind came up, or nothing of it was looked at.
  CHECK(replies > kMessages / 2);
  CHECK(answers > kMessages / 4);
  CHECK(refused_writes > kMessages / 50);
  CHECK(bytes_of(run) == before);
}

TEST_CASE("a damaged database is read or refused by every tool") {
  const TestFolder folder;
  const std::string run = make_run(folder);
  const std::string whole = bytes_of(run);
  const std::string path = folder.file("damaged.db");
  Server server = server_over(folder.path());
  REQUIRE(server.reply_to(hello()));
  for (std::uint64_t seed = 0; seed < kDamagedFiles; ++seed) {
    Source source(seed);
    std::string damaged = whole;
    if (source.below(4) == 0) damaged.resize(source.below(damaged.size()));
    for (std::size_t i = 0, changes = 1 + source.below(30); i < changes && !damaged.empty(); ++i)
      damaged[source.below(damaged.size())] = static_cast<char>(source.below(256));
    std::ofstream(path, std::ios::binary) << damaged;
    for (const std::string& tool : reading_tools()) {
      INFO("damage " << seed << ", " << tool);
      Json arguments = {{"run", "damaged.db"}, {"timeout_ms", 200}};
      if (tool == "query_sql") arguments["sql"] = "SELECT * FROM span";
      if (tool == "compare") arguments = {{"a", "damaged.db"}, {"b", "run.db"}};
      if (tool == "list_runs") arguments.erase("run");
      const std::string line = call_of(tool, arguments);
      const auto reply = server.reply_to(line);
      REQUIRE(reply);
      check_reply(Json::parse(*reply), Json::parse(line));
    }
    CHECK(bytes_of(path) == damaged);
  }
}

}  // namespace sluice::mcp
