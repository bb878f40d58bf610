#include "profiler/relay/far_run.h"

#include <algorithm>
#include <charconv>

#include "base/shell_quoted.h"

namespace sluice::relay {
namespace {

constexpr std::string_view kScheme = "ssh://";
constexpr const char* kForm = "ssh://[user@]host[:port]/path/to/run.db";
constexpr std::string_view kLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

bool is_of(std::string_view text, std::string_view more) {
  return std::ranges::all_of(text, [more](char letter) {
    return kLetters.find(letter) != kLetters.npos || more.find(letter) != more.npos;
  });
}

Error wrong(std::string_view text, std::string_view what) {
  return make_error(ErrorCode::config, "{}: {}; a run on a server is {}", text, what, kForm);
}

bool is_port(std::string_view text, int& port) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port > 0 && port < 65'536;
}

// "[::1]:22", "host:22", "host".
Status take_host(std::string_view text, std::string_view place, FarRun& run) {
  const bool is_bracketed = place.starts_with('[');
  const std::size_t end = is_bracketed ? place.find(']') : place.find(':');
  if (is_bracketed && end == place.npos) return wrong(text, "a bracket is open");
  run.host = place.substr(is_bracketed ? 1 : 0, is_bracketed ? end - 1 : end);
  std::string_view left = end == place.npos ? "" : place.substr(is_bracketed ? end + 1 : end);
  if (run.host.empty()) return wrong(text, "there is no host");
  if (run.host.front() == '-') return wrong(text, "the host begins with '-', as an option does");
  if (!is_of(run.host, is_bracketed ? ".-_:%" : ".-_"))
    return wrong(text, "the host has a letter that no host has");
  if (left.empty()) return ok_status();
  if (!left.starts_with(':') || !is_port(left.substr(1), run.port))
    return wrong(text, "the port is no number from 1 to 65535");
  return ok_status();
}

Status take_user(std::string_view text, std::string_view user, FarRun& run) {
  if (user.empty()) return wrong(text, "the user has no name");
  if (user.front() == '-') return wrong(text, "the user begins with '-', as an option does");
  if (!is_of(user, ".-_+@\\")) return wrong(text, "the user has a letter that no user has");
  run.user = user;
  return ok_status();
}

}  // namespace

std::string FarRun::text() const {
  const bool is_address = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}{}{}{}", kScheme, user.empty() ? "" : user + "@",
                     is_address ? "[" + host + "]" : host, port == 0 ? "" : ":",
                     port == 0 ? "" : std::to_string(port), path);
}

bool is_far_run(std::string_view text) { return text.starts_with(kScheme); }

Result<FarRun> parse_far_run(std::string_view text) {
  if (!is_far_run(text)) return wrong(text, "it does not begin with ssh://");
  const std::string_view rest = text.substr(kScheme.size());
  const std::size_t slash = rest.find('/');
  if (slash == rest.npos || slash + 1 == rest.size()) return wrong(text, "there is no path");
  FarRun run;
  run.path = rest.substr(slash);
  const bool has_control = std::ranges::any_of(
      run.path, [](char letter) { return static_cast<unsigned char>(letter) < 0x20; });
  if (has_control) return wrong(text, "the path has a control character");
  std::string_view place = rest.substr(0, slash);
  const std::size_t at = place.rfind('@');
  if (at != place.npos) {
    RETURN_IF_ERROR(take_user(text, place.substr(0, at), run));
    place.remove_prefix(at + 1);
  }
  RETURN_IF_ERROR(take_host(text, place, run));
  return run;
}

std::string why_no_control(const FarRun& run, const std::string& control_socket) {
  for (const std::string& path : {run.path, control_socket}) {
    if (path.find(':') == std::string::npos) continue;
    return fmt::format(
        "{}: ssh forwards no socket whose path has a colon, so that knobs of the run "
        "cannot be turned from here",
        path);
  }
  return "";
}

std::vector<std::string> ssh_command(const FarRun& run, const FarOptions& options) {
  // No terminal at the other end. A line that is silent for 15 seconds is cut.
  std::vector<std::string> words = {
      "ssh", "-T", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"};
  if (run.port != 0) words.insert(words.end(), {"-p", std::to_string(run.port)});
  if (!options.control_socket.empty() && why_no_control(run, options.control_socket).empty()) {
    words.insert(words.end(), {"-o", "StreamLocalBindUnlink=yes", "-o", "StreamLocalBindMask=0177",
                               "-L", options.control_socket + ":" + run.path + ".socket"});
  }
  words.insert(words.end(), {"--", run.user.empty() ? run.host : run.user + "@" + run.host,
                             shell_quoted(options.program) + " relay " + shell_quoted(run.path)});
  return words;
}

}  // namespace sluice::relay
