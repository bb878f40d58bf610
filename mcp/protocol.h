#pragma once
// The Model Context Protocol's server side (https://modelcontextprotocol.io): JSON-RPC 2.0, one
// message a line. initialize, ping, tools/list and tools/call; every other method is none
// (-32601). Each request with an id gets one reply, in the order in which they came. docs/mcp.md
// is its page.
//
// Bounded: a line has at most kLineBytesMax bytes, and what is nested deeper than kDepthMax is
// left out of what a message says; a reply has at most twice an answer's bytes and its escapes.
//
// Thread contract: one thread.

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "mcp/tool.h"

namespace sluice::mcp {

inline constexpr std::size_t kLineBytesMax = 1 << 20;
inline constexpr int kDepthMax = 32;

enum class Writing : std::uint8_t { refuse, allow };

class Server {
 public:
  // `version`: of this program, as it is told to clients.
  Server(RunFolders runs, Writing writing, std::string version)
      : runs_(std::move(runs)), writing_(writing), version_(std::move(version)) {}

  // The reply to a message, without a newline; none: it wants none.
  std::optional<std::string> reply_to(std::string_view line);
  // The reply to a line above kLineBytesMax, which nobody read.
  static std::string reply_to_long_line();

 private:
  struct Request;
  Json answer(const Request& request);
  Json initialize(const Request& request);
  Json list_tools() const;
  Json call_tool(const Request& request) const;
  Result<Answered> run_tool(const Tool& tool, const Arguments& arguments, const Call& call) const;

  RunFolders runs_;
  Writing writing_;
  std::string version_;
  bool is_initialized_ = false;
  std::string who_ = "mcp:unknown";
};

// Answers what comes from `in` on `out` until `in` ends. Errors: read(2)'s and write(2)'s.
Status serve(Server& server, int in, int out);

}  // namespace sluice::mcp
