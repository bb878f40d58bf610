#include "core/replay/what_if.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>

#include "base/nearest.h"
#include "base/units.h"

namespace sluice::replay {
namespace {

constexpr double kLimits = 1.05;  // a rate up to so far above one transfer's is what limits it

bool is_number(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0 && value < 1e12;
}

bool is_of(const std::string& link, const std::string& device) {
  return link.starts_with(device + ".");
}

// The name itself, or of every device: "drive" is csd0.drive, csd1.drive, ...
std::vector<std::int32_t> links_named(const OperationGraph& graph, const std::string& name) {
  std::vector<std::int32_t> exact;
  std::vector<std::int32_t> alike;
  for (std::size_t l = 0; l < graph.links.links.size(); ++l) {
    const std::string& known = graph.links.links[l].name;
    if (known == name) exact.push_back(static_cast<std::int32_t>(l));
    if (known.ends_with("." + name)) alike.push_back(static_cast<std::int32_t>(l));
  }
  return exact.empty() ? alike : exact;
}

Error no_link(const OperationGraph& graph, const Change& change) {
  std::vector<std::string> names;
  std::string all;
  for (const ModelledLink& link : graph.links.links) {
    names.push_back(link.name);
    if (names.size() <= 8) all += (all.empty() ? "" : ", ") + link.name;
    const std::size_t dot = link.name.rfind('.');
    if (dot != link.name.npos) names.push_back(link.name.substr(dot + 1));
  }
  return make_error(ErrorCode::config, "{}: no link of this record is named '{}'{}; it has {}",
                    change.text, change.name, did_you_mean(change.name, names),
                    all.empty() ? "none" : all);
}

bool crosses(const Route& route, std::int32_t link) {
  return std::ranges::find(route.links, link) != route.links.end();
}

// Whether one transfer over the route is as fast as it is because of this link.
bool limits(const LinkModel& model, const Route& route, std::int32_t link) {
  const double rate =
      model.links[static_cast<std::size_t>(link)].bytes_per_s[side(route.direction)];
  return rate > 0 && rate <= kLimits * route.bytes_per_s;
}

// One transfer alone is limited by links that are no faster, and else by the drive itself.
void scale_link(LinkModel& model, std::int32_t l, std::size_t to, double factor) {
  for (Route& route : model.routes) {
    if (side(route.direction) != to || !crosses(route, l) || route.bytes_per_s == 0) continue;
    const bool has_limit = std::ranges::any_of(
        route.links, [&](std::int32_t link) { return limits(model, route, link); });
    const bool is_drives =
        model.links[static_cast<std::size_t>(l)].name.find('.') != std::string::npos;
    if (has_limit ? limits(model, route, l) : is_drives) route.bytes_per_s *= factor;
  }
  model.links[static_cast<std::size_t>(l)].bytes_per_s[to] *= factor;
}

bool is_used(const LinkModel& model, std::int32_t l, std::size_t to) {
  return std::ranges::any_of(model.routes, [&](const Route& route) {
    return side(route.direction) == to && crosses(route, l);
  });
}

Status change_link(const Change& change, OperationGraph& graph) {
  const std::vector<std::int32_t> links = links_named(graph, change.name);
  if (links.empty()) return no_link(graph, change);
  bool has_any = false;
  for (const std::int32_t l : links) {
    for (const std::size_t to : {0U, 1U}) {
      ModelledLink& link = graph.links.links[static_cast<std::size_t>(l)];
      if (!is_used(graph.links, l, to)) continue;
      has_any = true;
      const double rate = link.bytes_per_s[to];
      if (rate > 0) {
        const double factor =
            change.factor > 0 ? change.factor : change.bytes_per_s / graph.time_scale / rate;
        scale_link(graph.links, l, to, factor);
      } else if (change.factor > 0) {
        return make_error(ErrorCode::config,
                          "{}: how fast {} is, is not known: it declares no rate and was never "
                          "full in this record; give a rate, as in --link {}=3GB/s",
                          change.text, link.name, change.name);
      } else {
        link.bytes_per_s[to] = change.bytes_per_s / graph.time_scale;
      }
    }
  }
  if (has_any) return ok_status();
  return make_error(ErrorCode::config, "{}: nothing crossed {} in the steps looked at", change.text,
                    change.name);
}

Status spread_over_drives(const Change& change, OperationGraph& graph, std::int32_t count) {
  if (graph.drives.empty()) {
    return make_error(ErrorCode::config,
                      "{}: this record has no drive that bytes came from or went to", change.text);
  }
  const double factor = static_cast<double>(count) / static_cast<double>(graph.drives.size());
  for (const std::string& drive : graph.drives) {
    for (std::size_t l = 0; l < graph.links.links.size(); ++l) {
      if (!is_of(graph.links.links[l].name, drive)) continue;
      for (const std::size_t to : {0U, 1U})
        scale_link(graph.links, static_cast<std::int32_t>(l), to, factor);
    }
    for (Engine& engine : graph.engines) {
      if (engine.device == drive) engine.speed *= factor;
    }
  }
  return ok_status();
}

// Operations --------------------------------------------------------------------------------------

Result<std::int32_t> operation_named(const OperationGraph& graph, const Change& change) {
  std::vector<std::string> names;
  for (std::size_t n = 0; n < graph.names.size(); ++n) {
    if (graph.names[n].text == change.name) return static_cast<std::int32_t>(n);
    names.push_back(graph.names[n].text);
  }
  std::string all;
  for (std::size_t n = 0; n < std::min<std::size_t>(names.size(), 12); ++n)
    all += (n == 0 ? "" : ", ") + names[n];
  return make_error(ErrorCode::config,
                    "{}: no operation in the steps looked at is named '{}'{}; there are {}",
                    change.text, change.name, did_you_mean(change.name, names), all);
}

Status compress(const Change& change, OperationGraph& graph) {
  ASSIGN_OR_RETURN(const std::int32_t name, operation_named(graph, change));
  bool has_any = false;
  for (Node& node : graph.nodes) {
    if (node.name != name || node.route < 0) continue;
    node.size_bytes *= change.factor;
    has_any = true;
  }
  if (has_any) return ok_status();
  return make_error(ErrorCode::config, "{}: {} moves no bytes over a link", change.text,
                    change.name);
}

Status leave_out(const Change& change, OperationGraph& graph) {
  ASSIGN_OR_RETURN(const std::int32_t name, operation_named(graph, change));
  for (Node& node : graph.nodes) {
    if (node.name != name) continue;
    node.route = -1;
    node.engine = -1;
    node.size_bytes = 0;
    node.end_ns = node.begin_ns;
    node.delay_ns = 0;
  }
  return ok_status();
}

// State on CSDs -----------------------------------------------------------------------------------

constexpr std::string_view kUpdate = "update";  // core/stages/stage.h

Error does_not_say(const Change& change, const std::string& what) {
  return make_error(ErrorCode::config,
                    "{}: this record does not say which operations {}: only runs of sluice train "
                    "and of the Python module do, whose stages name the file of a transfer",
                    change.text, what);
}

class OnCsd {
 public:
  OnCsd(const Change& change, OperationGraph& graph) : change_(change), graph_(graph) {}

  Status apply() {
    RETURN_IF_ERROR(look());
    for (Node& node : graph_.nodes) {
      if (moves_[static_cast<std::size_t>(node.name)] && node.route >= 0) {
        node.route = inner_route(node.route);
      } else if (is_update(node)) {
        node.engine = inner_engine(node);
      }
    }
    const auto drives = static_cast<std::int32_t>(graph_.drives.size());
    if (change_.count == 0 || change_.count == drives) return ok_status();
    return spread_over_drives(change_, graph_, change_.count);
  }

 private:
  bool is_update(const Node& node) const {
    return graph_.names[static_cast<std::size_t>(node.name)].text == kUpdate && node.engine >= 0 &&
           node.device >= 0;
  }

  Status look() {
    if (graph_.drives.empty()) return does_not_say(change_, "read and write drives");
    for (const OperationName& name : graph_.names) {
      moves_.push_back(name.drive_file == "state" ||
                       (name.drive_file == "gradients" && name.text.ends_with("_read")));
    }
    const bool has_state = std::ranges::any_of(
        graph_.names, [](const OperationName& name) { return name.drive_file == "state"; });
    if (!has_state) return does_not_say(change_, "read and write the state");
    if (std::ranges::none_of(graph_.nodes, [this](const Node& node) { return is_update(node); }))
      return does_not_say(change_, "update it");
    const bool crosses_host = std::ranges::any_of(graph_.nodes, [this](const Node& node) {
      return moves_[static_cast<std::size_t>(node.name)] && node.route >= 0 &&
             drive_of(node.route) != nullptr && has_other_links(node.route);
    });
    if (crosses_host) return ok_status();
    return make_error(ErrorCode::config,
                      "{}: the state of this run does not cross a link outside of its drives: it "
                      "is updated in them already, or nothing is known of another link",
                      change_.text);
  }

  const Route& route(std::int32_t r) const {
    return graph_.links.routes[static_cast<std::size_t>(r)];
  }
  const std::string& link_name(std::int32_t l) const {
    return graph_.links.links[static_cast<std::size_t>(l)].name;
  }
  const std::string* drive_of(std::int32_t r) const {
    for (const std::string& drive : graph_.drives) {
      for (const std::int32_t l : route(r).links) {
        if (is_of(link_name(l), drive)) return &drive;
      }
    }
    return nullptr;
  }
  bool has_other_links(std::int32_t r) const {
    const std::string& drive = *drive_of(r);
    return std::ranges::any_of(route(r).links,
                               [&](std::int32_t l) { return !is_of(link_name(l), drive); });
  }

  // The same drive, without what lies between it and the host.
  std::int32_t inner_route(std::int32_t outer) {
    if (drive_of(outer) == nullptr || !has_other_links(outer)) return outer;
    const auto known =
        std::ranges::find(inner_, outer, &std::pair<std::int32_t, std::int32_t>::first);
    if (known != inner_.end()) return known->second;
    const std::string drive = *drive_of(outer);
    Route made = route(outer);
    std::erase_if(made.links, [&](std::int32_t l) { return !is_of(link_name(l), drive); });
    const std::size_t to = side(made.direction);
    const double stated =
        (to == 0 ? change_.read_bytes_per_s : change_.write_bytes_per_s) / graph_.time_scale;
    if (stated > 0) {
      made.links.push_back(inner_link(drive, made.links.front()));
      made.bytes_per_s = 0;
    }
    const auto inner = static_cast<std::int32_t>(graph_.links.routes.size());
    graph_.links.routes.push_back(std::move(made));
    inner_.emplace_back(outer, inner);
    return inner;
  }

  std::int32_t inner_link(const std::string& drive, std::int32_t like) {
    const std::string name = drive + ".internal";
    const std::vector<std::int32_t> known = links_named(graph_, name);
    if (!known.empty()) return known.front();
    ModelledLink link = graph_.links.links[static_cast<std::size_t>(like)];
    link.name = name;
    link.latency_ns = 0;
    link.is_in_order = false;
    link.bytes_per_s = {change_.read_bytes_per_s / graph_.time_scale,
                        change_.write_bytes_per_s / graph_.time_scale};
    link.source = {RateSource::declared, RateSource::declared};
    graph_.links.links.push_back(std::move(link));
    return static_cast<std::int32_t>(graph_.links.links.size()) - 1;
  }

  // Each device updates what is its own, one subgroup after the other.
  std::int32_t inner_engine(const Node& node) {
    const std::size_t device = static_cast<std::size_t>(node.device) % graph_.drives.size();
    const std::string name = graph_.drives[device] + " " + std::string(kUpdate);
    for (std::size_t e = 0; e < graph_.engines.size(); ++e) {
      if (graph_.engines[e].name == name) return static_cast<std::int32_t>(e);
    }
    graph_.engines.push_back({.name = name, .device = graph_.drives[device]});
    return static_cast<std::int32_t>(graph_.engines.size()) - 1;
  }

  const Change& change_;
  OperationGraph& graph_;
  std::vector<bool> moves_;  // by name
  std::vector<std::pair<std::int32_t, std::int32_t>> inner_;
};

// "NAME=VALUE" in two. A name may hold '='.
bool split(const std::string& text, std::string& name, std::string& value) {
  const std::size_t at = text.rfind('=');
  if (at == text.npos || at == 0 || at + 1 == text.size()) return false;
  name = text.substr(0, at);
  value = text.substr(at + 1);
  return true;
}

}  // namespace

Result<Change> parse_link_change(const std::string& text) {
  Change change{.kind = ChangeKind::link, .text = "--link " + text, .name = {}};
  std::string value;
  if (split(text, change.name, value)) {
    if (value.front() == 'x' && is_number(std::string_view(value).substr(1), change.factor))
      return change;
    const Result<double> rate = parse_byte_rate(value);
    if (rate.ok() && *rate > 0) {
      change.factor = 0;
      change.bytes_per_s = *rate;
      return change;
    }
  }
  return make_error(ErrorCode::config,
                    "{}: a link is changed as in --link host=x2, --link csd0.drive=x0.5 or --link "
                    "drive=3GB/s",
                    change.text);
}

Result<Change> parse_compression(const std::string& text) {
  Change change{.kind = ChangeKind::compress, .text = "--compress " + text, .name = {}};
  std::string value;
  if (split(text, change.name, value) && is_number(value, change.factor) && change.factor <= 1)
    return change;
  return make_error(ErrorCode::config,
                    "{}: operations are compressed as in --compress gradient_down=0.1, to a share "
                    "of their bytes above 0 and at most 1",
                    change.text);
}

Result<Change> csd_change(const platform::Platform& platform, std::int32_t count) {
  Change change{.kind = ChangeKind::on_csd, .text = "--on-csd", .name = {}};
  if (platform.devices.empty() || platform.devices.front().internal_route.empty()) {
    return make_error(ErrorCode::config,
                      "{}: its devices are plain drives; --on-csd wants a platform whose devices "
                      "have an update engine",
                      platform.source);
  }
  change.read_bytes_per_s = std::numeric_limits<double>::infinity();
  change.write_bytes_per_s = std::numeric_limits<double>::infinity();
  for (const platform::LinkId id : platform.devices.front().internal_route) {
    const platform::Link& link = platform.link(id);
    change.read_bytes_per_s = std::min(change.read_bytes_per_s, link.read_bytes_per_s);
    change.write_bytes_per_s = std::min(change.write_bytes_per_s, link.write_bytes_per_s);
  }
  change.count = count > 0 ? count : static_cast<std::int32_t>(platform.devices.size());
  return change;
}

Status apply(const Change& change, OperationGraph& graph) {
  switch (change.kind) {
    case ChangeKind::link:
      return change_link(change, graph);
    case ChangeKind::drives:
      return spread_over_drives(change, graph, change.count);
    case ChangeKind::on_csd:
      return OnCsd(change, graph).apply();
    case ChangeKind::compress:
      return compress(change, graph);
    case ChangeKind::without:
      return leave_out(change, graph);
  }
  return ok_status();
}

}  // namespace sluice::replay
