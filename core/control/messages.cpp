#include "core/control/messages.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "base/setting_text.h"

namespace sluice::control {
namespace {

using nlohmann::json;

struct KindName {
  const char* name;
  RequestKind kind;
};
constexpr std::array<KindName, 6> kKinds = {{{"status", RequestKind::status},
                                             {"knobs", RequestKind::knobs},
                                             {"set", RequestKind::set},
                                             {"subscribe", RequestKind::subscribe},
                                             {"snapshot", RequestKind::snapshot},
                                             {"stop", RequestKind::stop}}};
constexpr std::array<const char*, 5> kStates = {"in force", "refused", "kept", "reverted",
                                                "superseded"};
constexpr const char* kKept = "kept";  // of a snapshot; else it was refused
constexpr std::size_t kWhoBytesMax = 200;
constexpr std::size_t kSettingsMax = 64;
constexpr std::int64_t kWatchStepsMax = 10'000;

// Text that came from outside goes into messages as it is, but valid: json::dump throws on bytes
// that are no UTF-8.
std::string line_of(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

Error wrong(const std::string& message) { return Error(ErrorCode::config, message); }

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const KindName& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

Result<std::string> text_at(const json& object, const char* key, std::string default_value,
                            std::size_t bytes_max) {
  const auto found = object.find(key);
  if (found == object.end()) return default_value;
  if (!found->is_string()) return wrong(fmt::format("'{}' must be a text", key));
  std::string text = found->get<std::string>();
  if (text.size() > bytes_max) {
    return wrong(fmt::format("'{}' has {} bytes; {} are allowed", key, text.size(), bytes_max));
  }
  return text;
}

// nlohmann-json reads what is beyond int64 as unsigned, and hands it over with other bits.
bool is_int64(const json& value) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>() <= INT64_MAX;
  return value.is_number_integer();
}

// As --set would take it.
Result<std::string> value_text(const std::string& key, const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return std::string(value.get<bool>() ? "true" : "false");
  if (value.is_number_integer()) return value.dump();
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  return wrong(fmt::format("'{}' must be a number, true, false or a text, not {}", key,
                           value.is_null() ? "null" : value.type_name()));
}

Result<SetRequest> parse_set(const json& object) {
  const auto knobs = object.find("knobs");
  if (knobs == object.end() || !knobs->is_object() || knobs->empty()) {
    return wrong("set needs 'knobs', an object such as {\"buffers\":4}");
  }
  if (knobs->size() > kSettingsMax) return wrong("more knobs than there are");
  SetRequest set;
  for (const auto& [key, value] : knobs->items()) {
    ASSIGN_OR_RETURN(const std::string text, value_text(key, value));
    set.settings.push_back(key + "=" + text);
  }
  ASSIGN_OR_RETURN(set.who, text_at(object, "who", "user", kWhoBytesMax));
  ASSIGN_OR_RETURN(set.revert_if, text_at(object, "revert_if", "", kWhoBytesMax));
  const auto steps = object.find("watch_steps");
  if (steps != object.end()) {
    if (!is_int64(*steps) || *steps < 1 || *steps > kWatchStepsMax) {
      return wrong(fmt::format("'watch_steps' must be 1 to {}", kWatchStepsMax));
    }
    set.watch_steps = steps->get<std::int64_t>();
  }
  return set;
}

Status check_keys(const json& object) {
  static const std::vector<std::string> known = {"id",  "do",        "knobs",
                                                 "who", "revert_if", "watch_steps"};
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(known, key) == known.end()) {
      return wrong(fmt::format("unknown key '{}'{}", key, did_you_mean(key, known)));
    }
  }
  return ok_status();
}

json status_json(const RunStatus& status) {
  return {{"step", status.step},
          {"steps", status.steps},
          {"loss", status.loss},  // null where it is no number
          {"step_seconds", status.step_seconds},
          {"forward_seconds", status.forward_seconds},
          {"backward_seconds", status.backward_seconds},
          {"update_seconds", status.update_seconds},
          {"tokens", status.tokens}};
}

json knob_json(const Knob& knob) {
  json object = {{"key", knob.key},
                 {"type", knob.type},
                 {"values", knob.values},
                 {"unit", knob.unit},
                 {"default", knob.default_value},
                 {"help", knob.help},
                 {"value", knob.value}};
  if (!knob.words.empty()) object["words"] = knob.words;
  if (knob.min) object["min"] = *knob.min;
  if (knob.max) object["max"] = *knob.max;
  return object;
}

// A message of this version has these fields; one of another kind of program has not.
template <typename T>
T field(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) {
    return std::is_floating_point_v<T> ? static_cast<T>(NAN) : T();
  }
  return found->get<T>();
}
template <>
std::string field<std::string>(const json& object, const char* key) {
  return object.value(key, std::string());
}
template <>
std::vector<std::string> field<std::vector<std::string>>(const json& object, const char* key) {
  return object.value(key, std::vector<std::string>());
}

RunStatus status_of(const json& object) {
  RunStatus status;
  status.step = field<std::int64_t>(object, "step");
  status.steps = field<std::int64_t>(object, "steps");
  status.loss = field<double>(object, "loss");
  status.step_seconds = field<double>(object, "step_seconds");
  status.forward_seconds = field<double>(object, "forward_seconds");
  status.backward_seconds = field<double>(object, "backward_seconds");
  status.update_seconds = field<double>(object, "update_seconds");
  status.tokens = field<std::int64_t>(object, "tokens");
  return status;
}

Knob knob_of(const json& object) {
  Knob knob;
  knob.key = field<std::string>(object, "key");
  knob.type = field<std::string>(object, "type");
  knob.values = field<std::string>(object, "values");
  knob.unit = field<std::string>(object, "unit");
  knob.default_value = field<std::string>(object, "default");
  knob.help = field<std::string>(object, "help");
  knob.value = field<std::string>(object, "value");
  knob.words = field<std::vector<std::string>>(object, "words");
  if (object.contains("min")) knob.min = field<double>(object, "min");
  if (object.contains("max")) knob.max = field<double>(object, "max");
  return knob;
}

ChangeEvent change_of(const json& object) {
  ChangeEvent event;
  event.change = field<std::int64_t>(object, "change");
  const auto state = field<std::string>(object, "state");
  for (std::size_t i = 0; i < kStates.size(); ++i) {
    if (state == kStates[i]) event.state = static_cast<ChangeState>(i);
  }
  event.step = field<std::int64_t>(object, "step");
  event.ts = field<std::int64_t>(object, "ts");
  event.settings = field<std::vector<std::string>>(object, "settings");
  event.who = field<std::string>(object, "who");
  event.message = field<std::string>(object, "message");
  return event;
}

SnapshotEvent snapshot_of(const json& object) {
  SnapshotEvent event;
  event.snapshot = field<std::int64_t>(object, "snapshot");
  event.is_kept = field<std::string>(object, "state") == kKept;
  event.step = field<std::int64_t>(object, "step");
  event.path = field<std::string>(object, "path");
  event.size_bytes = field<std::int64_t>(object, "bytes");
  event.message = field<std::string>(object, "message");
  return event;
}

Greeting greeting_of(const json& object) {
  return {field<int>(object, "sluice_control"), field<std::string>(object, "run"),
          field<std::string>(object, "db"), field<std::int64_t>(object, "pid")};
}

Message event_of(const json& object) {
  Message message;
  const auto name = field<std::string>(object, "event");
  if (name == "step") message.status = status_of(object);
  if (name == "change") message.change_event = change_of(object);
  if (name == "snapshot") message.snapshot_event = snapshot_of(object);
  if (name == "end") message.is_end = true;
  return message;
}

Message answer_of(const json& object) {
  Message message;
  message.answer_to = field<std::int64_t>(object, "id");
  if (object.contains("error")) {
    message.error = Error(ErrorCode::config, field<std::string>(object, "error"));
  }
  if (object.contains("knobs")) {
    for (const json& knob : object["knobs"]) message.knobs.push_back(knob_of(knob));
  }
  if (object.contains("status")) message.status = status_of(object["status"]);
  message.change = field<std::int64_t>(object, "change");
  message.from_step = field<std::int64_t>(object, "from_step");
  message.snapshot = field<std::int64_t>(object, "snapshot");
  return message;
}

}  // namespace

const char* kind_name(RequestKind kind) {
  return std::ranges::find(kKinds, kind, &KindName::kind)->name;  // each has one
}

const char* change_state_name(ChangeState state) {
  return kStates[static_cast<std::size_t>(state)];
}

Result<Request> parse_request(std::string_view line, std::int64_t& id) {
  id = 0;
  const json object = json::parse(line, nullptr, false);
  if (object.is_discarded()) return wrong("this is no JSON");
  if (!object.is_object()) return wrong("a request is a JSON object");
  Request request;
  if (const auto found = object.find("id"); found != object.end()) {
    if (!found->is_number_integer()) return wrong("'id' must be an integer");
    if (!is_int64(*found)) {
      return wrong(fmt::format("'id' is {}; it must be at most {}", found->dump(), INT64_MAX));
    }
    id = request.id = found->get<std::int64_t>();
  }
  RETURN_IF_ERROR(check_keys(object));
  ASSIGN_OR_RETURN(const std::string what, text_at(object, "do", "", kWhoBytesMax));
  const auto kind = std::ranges::find_if(kKinds, [&](const KindName& k) { return what == k.name; });
  if (kind == kKinds.end()) {
    return wrong(fmt::format("'do' is '{}'{}; it must be one of {}", what,
                             did_you_mean(what, kind_names()), fmt::join(kind_names(), ", ")));
  }
  request.kind = kind->kind;
  if (request.kind == RequestKind::set) {
    ASSIGN_OR_RETURN(request.set, parse_set(object));
  } else {
    ASSIGN_OR_RETURN(request.who, text_at(object, "who", "user", kWhoBytesMax));
  }
  return request;
}

std::string request_line(const Request& request) {
  json object = {{"id", request.id}, {"do", kind_name(request.kind)}};
  if (request.kind == RequestKind::set) {
    json& knobs = object["knobs"] = json::object();
    for (const std::string& setting : request.set.settings) {
      knobs[key_of(setting)] = value_of(setting);
    }
    object["who"] = request.set.who;
    if (!request.set.revert_if.empty()) object["revert_if"] = request.set.revert_if;
    if (request.set.watch_steps > 0) object["watch_steps"] = request.set.watch_steps;
  }
  if (request.kind == RequestKind::snapshot || request.kind == RequestKind::stop)
    object["who"] = request.who;
  return line_of(object);
}

std::string greeting_line(const Greeting& greeting) {
  return line_of({{"sluice_control", greeting.version},
                  {"run", greeting.run},
                  {"db", greeting.database},
                  {"pid", greeting.pid}});
}

std::string error_line(std::int64_t id, const Error& error) {
  return line_of({{"id", id}, {"ok", false}, {"error", error.message()}});
}

std::string ok_line(std::int64_t id) { return line_of({{"id", id}, {"ok", true}}); }

std::string status_line(std::int64_t id, const RunStatus& status) {
  return line_of({{"id", id}, {"ok", true}, {"status", status_json(status)}});
}

std::string knobs_line(std::int64_t id, const std::vector<Knob>& knobs) {
  json list = json::array();
  for (const Knob& knob : knobs) list.push_back(knob_json(knob));
  return line_of({{"id", id}, {"ok", true}, {"knobs", std::move(list)}});
}

std::string set_line(std::int64_t id, std::int64_t change, std::int64_t from_step) {
  return line_of({{"id", id}, {"ok", true}, {"change", change}, {"from_step", from_step}});
}

std::string snapshot_line(std::int64_t id, std::int64_t snapshot) {
  return line_of({{"id", id}, {"ok", true}, {"snapshot", snapshot}});
}

std::string snapshot_event_line(const SnapshotEvent& event) {
  return line_of({{"event", "snapshot"},
                  {"snapshot", event.snapshot},
                  {"state", event.is_kept ? kKept : "refused"},
                  {"step", event.step},
                  {"path", event.path},
                  {"bytes", event.size_bytes},
                  {"message", event.message}});
}

std::string step_event_line(const RunStatus& status) {
  json object = status_json(status);
  object["event"] = "step";
  return line_of(object);
}

std::string change_event_line(const ChangeEvent& event) {
  return line_of({{"event", "change"},
                  {"change", event.change},
                  {"state", change_state_name(event.state)},
                  {"step", event.step},
                  {"ts", event.ts},
                  {"settings", event.settings},
                  {"who", event.who},
                  {"message", event.message}});
}

std::string end_event_line(const std::string& reason) {
  return line_of({{"event", "end"}, {"reason", reason}});
}

// A run of another version may send what this one does not know; wrong types are refused.
Result<Message> parse_message(std::string_view line) {
  const json object = json::parse(line, nullptr, false);
  if (object.is_discarded() || !object.is_object()) {
    return make_error(ErrorCode::corrupt, "what came over the control socket is no JSON object");
  }
  try {
    if (object.contains("sluice_control")) {
      Message message;
      message.greeting = greeting_of(object);
      return message;
    }
    return object.contains("event") ? event_of(object) : answer_of(object);
  } catch (const json::exception& error) {
    return make_error(ErrorCode::corrupt, "a message of the control socket: {}", error.what());
  }
}

}  // namespace sluice::control
