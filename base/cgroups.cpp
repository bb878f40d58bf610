#include "base/cgroups.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

namespace sluice {
namespace {

// Version 1 says "no limit" with the largest number of whole pages; nobody sets one near it.
constexpr std::int64_t kNearlyAll = std::int64_t{1} << 60;

std::vector<std::string_view> parts_of(std::string_view text, char between) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(between), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool has_part(std::string_view text, char between, std::string_view part) {
  const std::vector<std::string_view> parts = parts_of(text, between);
  return std::ranges::find(parts, part) != parts.end();
}

// "a\040b" is "a b": mountinfo writes blanks and backslashes as three octal digits.
std::string without_escapes(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    int character = 0;
    const bool is_escape =
        text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 4, character, 8).ptr ==
            text.data() + i + 4;
    plain += is_escape ? static_cast<char>(character) : text[i];
    if (is_escape) i += 3;
  }
  return plain;
}

struct Mount {
  std::string top;    // the group that is mounted there
  std::string point;  // where
};

// A line: id, parent, device, top, point, options, more of them, "-", type, source, options.
std::optional<Mount> mount_of(std::string_view line, std::string_view controller) {
  constexpr std::string_view kDash = " - ";
  const std::size_t dash = line.find(kDash);
  if (dash == std::string_view::npos) return std::nullopt;
  const std::vector<std::string_view> left = parts_of(line.substr(0, dash), ' ');
  const std::vector<std::string_view> right = parts_of(line.substr(dash + kDash.size()), ' ');
  if (left.size() < 5 || right.size() < 3) return std::nullopt;
  const bool is_it = controller.empty()
                         ? right[0] == "cgroup2"
                         : right[0] == "cgroup" && has_part(right[2], ',', controller);
  if (!is_it) return std::nullopt;
  return Mount{without_escapes(left[3]), without_escapes(left[4])};
}

// A line: number, controllers with commas between, group. Version 2's is "0::/group".
std::optional<std::string> group_of(std::string_view groups, std::string_view controller) {
  for (const std::string_view line : parts_of(groups, '\n')) {
    const std::size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool is_it =
        controller.empty() ? line.starts_with("0::") : has_part(controllers, ',', controller);
    if (is_it) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

// Below the mount point: "" or "/a/b". Where the group is not below what is mounted (a container
// that shares its host's names), the mount point is the nearest that can be seen.
std::string below(const std::string& group, const std::string& top) {
  if (group.find("/..") != std::string::npos) return "";
  if (top == "/") return group == "/" ? "" : group;
  return group.starts_with(top + "/") ? group.substr(top.size()) : "";
}

bool holds(const Mount& mount, const std::string& group) {
  return mount.top == "/" || group == mount.top || group.starts_with(mount.top + "/");
}

}  // namespace

std::vector<std::string> cgroup_folders(std::string_view mounts, std::string_view groups,
                                        std::string_view controller) {
  const std::optional<std::string> group = group_of(groups, controller);
  if (!group) return {};
  std::optional<Mount> found;
  for (const std::string_view line : parts_of(mounts, '\n')) {
    const std::optional<Mount> mount = mount_of(line, controller);
    if (mount && (!found || (!holds(*found, *group) && holds(*mount, *group)))) found = mount;
  }
  if (!found) return {};
  std::vector<std::string> folders;
  std::string path = below(*group, found->top);
  for (; !path.empty(); path.resize(path.rfind('/'))) folders.push_back(found->point + path);
  folders.push_back(found->point);
  return folders;
}

std::vector<std::string> cgroup_folders(const std::string& root, std::string_view controller) {
  return cgroup_folders(text_below(root, "/proc/self/mountinfo"),
                        text_below(root, "/proc/self/cgroup"), controller);
}

std::string text_below(const std::string& root, const std::string& path) {
  std::ifstream file(root + path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::optional<std::int64_t> number_below(const std::string& root, const std::string& path) {
  const std::string text = text_below(root, path);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number >= kNearlyAll) return std::nullopt;
  return number;
}

std::optional<std::int64_t> number_behind(std::string_view text, std::string_view word) {
  for (const std::string_view line : parts_of(text, '\n')) {
    if (!line.starts_with(word)) continue;
    std::string_view rest = line.substr(word.size());
    const std::size_t begin = rest.find_first_not_of(" \t");
    if (begin == 0 || begin == std::string_view::npos) continue;  // a longer word; nothing behind
    rest.remove_prefix(begin);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error == std::errc()) return number;
  }
  return std::nullopt;
}

}  // namespace sluice
