#include "core/shard/triple.h"

#include <fmt/format.h>

#include <array>

#include "base/nearest.h"

namespace sluice::shard {
namespace {

constexpr std::string_view kMics = "mics";

struct NamedScope {
  const char* name;
  Scope scope;
};

Status broken(const char* rule, const std::string& what) {
  return make_error(ErrorCode::config, "sharding breaks the rule of {}: {}", rule, what);
}

bool is_within(const Scope& inner, const Scope& outer) {
  return inner.ranks <= outer.ranks && inner.nodes <= outer.nodes;
}

bool divides(const Scope& inner, const Scope& outer) {
  return outer.ranks % inner.ranks == 0 && outer.nodes % inner.nodes == 0;
}

std::string named(const NamedScope& scope) {
  return fmt::format("{} ({})", scope.name, platform::scope_text(scope.scope));
}

std::vector<Scope> legal_scopes(const Scope& mesh) {
  std::vector<Scope> scopes;
  for (std::int32_t ranks = 1; ranks <= mesh.ranks; ++ranks) {
    if (mesh.ranks % ranks == 0) scopes.push_back({ranks, 1});
  }
  for (std::int32_t nodes = 2; nodes <= mesh.nodes; ++nodes) {
    if (mesh.nodes % nodes == 0) scopes.push_back({mesh.ranks, nodes});
  }
  return scopes;
}

Result<Triple> parse_scopes(std::string_view text) {
  std::array<Scope, 3> scopes;
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    const std::size_t comma = text.find(',');
    const bool is_last = i + 1 == scopes.size();
    if ((comma == std::string_view::npos) != is_last) {
      return make_error(ErrorCode::config,
                        "give three scopes, of parameters, gradients and state, such as "
                        "4x1,4x1,8x1");
    }
    ASSIGN_OR_RETURN(scopes[i], platform::parse_scope(text.substr(0, comma)));
    if (!is_last) text.remove_prefix(comma + 1);
  }
  return Triple{scopes[0], scopes[1], scopes[2]};
}

Result<Triple> parse_unchecked(std::string_view text, const Scope& mesh) {
  if (const auto known = scheme(text, mesh)) return *known;
  const std::string prefix = std::string(kMics) + ":";
  if (text.starts_with(prefix)) {
    ASSIGN_OR_RETURN(const Scope scope, platform::parse_scope(text.substr(prefix.size())));
    return Triple{scope, scope, scope};
  }
  if (text.find(',') != std::string_view::npos) return parse_scopes(text);
  const std::vector<std::string> names = scheme_names();
  return make_error(ErrorCode::config,
                    "'{}' is no sharding{}; there are {}, {}:8x2, and three scopes such as "
                    "4x1,4x1,8x1",
                    text, did_you_mean(text, names), fmt::join(names, ", "), kMics);
}

}  // namespace

std::string triple_text(const Triple& triple) {
  return fmt::format("{},{},{}", platform::scope_text(triple.parameters),
                     platform::scope_text(triple.gradients), platform::scope_text(triple.state));
}

Status check_triple(const Triple& triple, const Scope& mesh) {
  const std::array<NamedScope, 4> scopes = {{{"parameters", triple.parameters},
                                             {"gradients", triple.gradients},
                                             {"state", triple.state},
                                             {"all ranks", mesh}}};
  for (std::size_t i = 0; i + 1 < scopes.size(); ++i) {
    if (is_within(scopes[i].scope, scopes[i + 1].scope)) continue;
    return broken("order",
                  fmt::format("{} are over more ranks of a node, or nodes, than {}; a rank "
                              "never owns state or gradients of parameters that it does "
                              "not hold",
                              named(scopes[i]), named(scopes[i + 1])));
  }
  for (std::size_t i = 0; i + 1 < scopes.size(); ++i) {
    if (divides(scopes[i].scope, scopes[i + 1].scope)) continue;
    return broken("divisibility",
                  fmt::format("{} do not divide {}, in ranks of a node and in nodes",
                              named(scopes[i]), named(scopes[i + 1])));
  }
  for (std::size_t i = 0; i + 1 < scopes.size(); ++i) {
    const Scope& scope = scopes[i].scope;
    if (scope.nodes == 1 || scope.ranks == mesh.ranks) continue;
    return broken("node fill", fmt::format("{} span nodes, and so take all {} ranks of each",
                                           named(scopes[i]), mesh.ranks));
  }
  if (triple.gradients == triple.parameters || triple.gradients == triple.state) return ok_status();
  return broken("gradients", fmt::format("{} are over as many ranks as {} or {}, no others",
                                         named(scopes[1]), named(scopes[0]), named(scopes[2])));
}

std::vector<Triple> all_triples(const Scope& mesh) {
  std::vector<Triple> triples;
  const std::vector<Scope> scopes = legal_scopes(mesh);
  for (const Scope& parameters : scopes) {
    for (const Scope& state : scopes) {
      for (const Scope& gradients : {parameters, state}) {
        const Triple triple{parameters, gradients, state};
        if (!triples.empty() && triples.back() == triple) continue;  // both are one scope
        if (check_triple(triple, mesh).ok()) triples.push_back(triple);
      }
    }
  }
  return triples;
}

std::vector<std::string> scheme_names() {
  return {"data_parallel", "zero1", "zero2", "zero3", std::string(kMics)};
}

std::optional<Triple> scheme(std::string_view name, const Scope& mesh) {
  const Scope one{1, 1};
  const Scope node{mesh.ranks, 1};
  if (name == "data_parallel") return Triple{one, one, one};
  if (name == "zero1") return Triple{one, one, mesh};
  if (name == "zero2") return Triple{one, mesh, mesh};
  if (name == "zero3") return Triple{mesh, mesh, mesh};
  if (name == kMics) return Triple{node, node, node};
  return std::nullopt;
}

std::string scheme_of(const Triple& triple, const Scope& mesh) {
  for (const std::string& name : scheme_names()) {
    if (scheme(name, mesh) == triple) return name;
  }
  const bool is_mics = triple.parameters == triple.gradients && triple.gradients == triple.state;
  return is_mics ? std::string(kMics) : "";
}

Result<Triple> parse_triple(std::string_view text, const Scope& mesh) {
  ASSIGN_OR_RETURN(const Triple triple, parse_unchecked(text, mesh));
  RETURN_IF_ERROR(check_triple(triple, mesh));
  return triple;
}

}  // namespace sluice::shard
