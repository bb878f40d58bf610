#include "mcp/arguments.h"

#include <algorithm>

#include "base/nearest.h"

namespace sluice::mcp {
namespace {

Json schema_of(const Parameter& parameter) {
  Json schema;
  switch (parameter.type) {
    case Parameter::Type::text:
      schema["type"] = "string";
      break;
    case Parameter::Type::integer:
      schema = {{"type", "integer"}, {"minimum", parameter.min}, {"maximum", parameter.max}};
      break;
    case Parameter::Type::flag:
      schema["type"] = "boolean";
      break;
    case Parameter::Type::texts:
      schema = {{"type", "array"}, {"items", {{"type", "string"}}}, {"maxItems", kTextsMax}};
      break;
  }
  if (!parameter.words.empty()) schema["enum"] = parameter.words;
  schema["description"] = parameter.description;
  return schema;
}

Error wrong(const std::string& message) { return Error(ErrorCode::config, message); }

Result<std::string> text_argument(const Json& given, const Parameter& parameter) {
  if (!given.is_string()) return wrong(fmt::format("'{}' must be a text", parameter.name));
  std::string text = given.get<std::string>();
  if (text.size() > kTextBytesMax) {
    return wrong(fmt::format("'{}' has {} bytes; {} are allowed", parameter.name, text.size(),
                             kTextBytesMax));
  }
  if (!parameter.words.empty() && std::ranges::find(parameter.words, text) == parameter.words.end())
    return wrong(
        fmt::format("'{}' must be one of {}", parameter.name, fmt::join(parameter.words, ", ")));
  return text;
}

}  // namespace

Json schema_of(const std::vector<Parameter>& parameters) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const Parameter& parameter : parameters) {
    properties[parameter.name] = schema_of(parameter);
    if (parameter.is_required) required.push_back(parameter.name);
  }
  Json schema = {{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  return schema;
}

Result<Arguments::Value> Arguments::value_of(const Json& given, const Parameter& parameter) {
  switch (parameter.type) {
    case Parameter::Type::text: {
      ASSIGN_OR_RETURN(std::string text, text_argument(given, parameter));
      return Value(std::move(text));
    }
    case Parameter::Type::flag:
      if (!given.is_boolean()) return wrong(fmt::format("'{}' is true or false", parameter.name));
      return Value(given.get<bool>());
    case Parameter::Type::integer: {
      // nlohmann-json has what is beyond int64 as unsigned.
      const bool fits = given.is_number_unsigned() ? given.get<std::uint64_t>() <= INT64_MAX
                                                   : given.is_number_integer();
      if (!fits || given.get<std::int64_t>() < parameter.min ||
          given.get<std::int64_t>() > parameter.max) {
        return wrong(fmt::format("'{}' must be a whole number from {} to {}", parameter.name,
                                 parameter.min, parameter.max));
      }
      return Value(given.get<std::int64_t>());
    }
    case Parameter::Type::texts:
      break;
  }
  if (!given.is_array() || given.size() > kTextsMax)
    return wrong(fmt::format("'{}' must be a list of at most {} texts", parameter.name, kTextsMax));
  std::vector<std::string> texts;
  for (const Json& one : given) {
    ASSIGN_OR_RETURN(std::string text, text_argument(one, parameter));
    texts.push_back(std::move(text));
  }
  return Value(std::move(texts));
}

Result<Arguments> Arguments::read(const Json& given, const std::vector<Parameter>& parameters) {
  Arguments arguments;
  if (!given.is_object()) return wrong("'arguments' must be an object");
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters) names.emplace_back(parameter.name);
  for (const auto& [key, value] : given.items()) {
    const auto parameter = std::ranges::find(parameters, key, &Parameter::name);
    if (parameter == parameters.end()) {
      return wrong(fmt::format("there is no argument '{}'{}", key.substr(0, kTextsMax),
                               did_you_mean(key.substr(0, kTextsMax), names)));
    }
    ASSIGN_OR_RETURN(Value read, value_of(value, *parameter));
    arguments.values_.insert_or_assign(key, std::move(read));
  }
  for (const Parameter& parameter : parameters) {
    if (parameter.is_required && !arguments.values_.contains(parameter.name))
      return wrong(fmt::format("'{}' is missing: {}", parameter.name, parameter.description));
  }
  return arguments;
}

std::optional<std::string> Arguments::text(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  return std::get<std::string>(found->second);
}

std::optional<std::int64_t> Arguments::integer(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  return std::get<std::int64_t>(found->second);
}

bool Arguments::flag(std::string_view name) const {
  const auto found = values_.find(name);
  return found != values_.end() && std::get<bool>(found->second);
}

std::vector<std::string> Arguments::texts(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return {};
  return std::get<std::vector<std::string>>(found->second);
}

}  // namespace sluice::mcp
