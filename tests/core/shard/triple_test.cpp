// Which triples of scopes are legal: counted on two meshes, each rule broken once, and the rules
// against a list written from AMSP's formulas as they stand.

#include "core/shard/triple.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

namespace sluice::shard {
namespace {

constexpr Scope kLargeMesh{8, 128};

// "" where the triple is legal.
std::string refusal(const char* text, const Scope& mesh = kLargeMesh) {
  const auto triple = parse_triple(text, mesh);
  if (triple.ok()) return "";
  CHECK(triple.error().code() == ErrorCode::config);
  return triple.error().message();
}

// AMSP's conditions, one after the other, over all six numbers.
std::vector<Triple> by_search(const Scope& mesh) {
  std::vector<Triple> found;
  const auto is_scope = [&](const Scope& s) {
    return mesh.ranks % s.ranks == 0 && mesh.nodes % s.nodes == 0 &&
           (s.nodes == 1 || s.ranks == mesh.ranks);
  };
  const auto rises = [](const Scope& a, const Scope& b) {
    return a.ranks <= b.ranks && a.nodes <= b.nodes && b.ranks % a.ranks == 0 &&
           b.nodes % a.nodes == 0;
  };
  std::vector<Scope> scopes;
  for (std::int32_t ranks = 1; ranks <= mesh.ranks; ++ranks) {
    for (std::int32_t nodes = 1; nodes <= mesh.nodes; ++nodes) scopes.push_back({ranks, nodes});
  }
  std::erase_if(scopes, [&](const Scope& scope) { return !is_scope(scope); });
  for (const Scope& p : scopes) {
    for (const Scope& g : scopes) {
      for (const Scope& os : scopes) {
        if (rises(p, g) && rises(g, os) && (g == p || g == os)) found.push_back({p, g, os});
      }
    }
  }
  return found;
}

TEST_CASE("121 triples are legal on 8x128 ranks, and 16 on 2x4") {
  CHECK(all_triples({8, 128}).size() == 121);
  CHECK(all_triples({2, 4}).size() == 16);
  CHECK(all_triples({1, 1}).size() == 1);
}

TEST_CASE("the legal triples are those of a search through all numbers") {
  for (const Scope& mesh : {Scope{2, 4}, Scope{8, 16}, Scope{6, 12}, Scope{1, 8}, Scope{4, 1}}) {
    const std::vector<Triple> legal = all_triples(mesh);
    const std::vector<Triple> searched = by_search(mesh);
    CHECK(legal.size() == searched.size());
    for (const Triple& triple : searched) {
      INFO(triple_text(triple));
      CHECK(std::ranges::count(legal, triple) == 1);
      CHECK(check_triple(triple, mesh).ok());
    }
  }
}

TEST_CASE("a triple that breaks a rule is refused with the rule") {
  CHECK(refusal("4x1,2x1,8x1") ==
        "sharding breaks the rule of order: parameters (4x1) are over more ranks of a node, or "
        "nodes, than gradients (2x1); a rank never owns state or gradients of parameters that it "
        "does not hold");
  CHECK(refusal("1x1,8x1,4x1").find("rule of order: gradients (8x1)") != std::string::npos);
  CHECK(refusal("1x1,1x1,16x1").find("rule of order: state (16x1)") != std::string::npos);
  CHECK(refusal("1x1,1x1,3x1") ==
        "sharding breaks the rule of divisibility: state (3x1) do not divide all ranks (8x128), in "
        "ranks of a node and in nodes");
  CHECK(refusal("4x1,6x1,6x1", {12, 1}) ==
        "sharding breaks the rule of divisibility: parameters (4x1) do not divide gradients (6x1), "
        "in ranks of a node and in nodes");
  CHECK(refusal("1x1,1x1,4x2") ==
        "sharding breaks the rule of node fill: state (4x2) span nodes, and so take all 8 ranks of "
        "each");
  CHECK(refusal("1x1,2x1,8x1") ==
        "sharding breaks the rule of gradients: gradients (2x1) are over as many ranks as "
        "parameters (1x1) or state (8x1), no others");
}

TEST_CASE("a text that is no sharding is refused with what would be one") {
  CHECK(refusal("zero4") ==
        "'zero4' is no sharding (did you mean 'zero1'?); there are data_parallel, zero1, zero2, "
        "zero3, mics, mics:8x2, and three scopes such as 4x1,4x1,8x1");
  CHECK(refusal("4x1,4x1").find("give three scopes") == 0);
  CHECK(refusal("4x1,4x1,8x1,8x1").find("give three scopes") == 0);
  for (const char* scope :
       {"4,1x1,8x1", "0x1,1x1,8x1", "4x,1x1,8x1", "-1x1,1x1,8x1", "99999x1,1x1,8x1"}) {
    INFO(scope);
    CHECK(refusal(scope).find("is no scope: write ranks in a node, x and nodes") !=
          std::string::npos);
  }
}

TEST_CASE("published schemes are names of triples") {
  const auto text_of = [](const char* name) {
    const auto triple = parse_triple(name, kLargeMesh);
    REQUIRE(triple.ok());
    CHECK(parse_triple(triple_text(*triple), kLargeMesh)->state == triple->state);
    return triple_text(*triple);
  };
  CHECK(text_of("data_parallel") == "1x1,1x1,1x1");
  CHECK(text_of("zero1") == "1x1,1x1,8x128");
  CHECK(text_of("zero2") == "1x1,8x128,8x128");
  CHECK(text_of("zero3") == "8x128,8x128,8x128");
  CHECK(text_of("mics") == "8x1,8x1,8x1");
  CHECK(text_of("mics:8x2") == "8x2,8x2,8x2");
  for (const std::string& name : scheme_names())
    CHECK(scheme_of(*scheme(name, kLargeMesh), kLargeMesh) == name);
  CHECK(scheme_of({{8, 2}, {8, 2}, {8, 2}}, kLargeMesh) == "mics");
  CHECK(scheme_of({{4, 1}, {4, 1}, {8, 1}}, kLargeMesh).empty());
}

}  // namespace
}  // namespace sluice::shard
