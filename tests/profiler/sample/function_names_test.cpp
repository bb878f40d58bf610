// Addresses of this very program as functions; files that are no ELF files.

#include "profiler/sample/function_names.h"

#include <elf.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <set>

#include "profiler/sample/call_tree.h"
#include "profiler/sample/elf_symbols.h"
#include "profiler/sample/mapped_file.h"

namespace sluice::sample {

// Not static: the program exports them.
[[gnu::noinline]] int first_sampled_function(int value) { return value * 3 + std::rand(); }
[[gnu::noinline]] int second_sampled_function(int value) { return value * 5 + std::rand(); }

namespace {

std::uint64_t address_of(int (*function)(int)) { return reinterpret_cast<std::uint64_t>(function); }

std::string name_of(const std::vector<rundb::SampledFunctionRow>& rows, std::int64_t id) {
  for (const rundb::SampledFunctionRow& row : rows) {
    if (row.id == id) return row.name;
  }
  return "no row";
}

TEST_CASE("an address has the name of the function that it lies in") {
  FunctionNames names;
  std::vector<rundb::SampledFunctionRow> rows;
  const std::uint64_t first = address_of(&first_sampled_function);
  const std::uint64_t second = address_of(&second_sampled_function);
  names.learn({first, first + 1, second}, rows);
  CHECK(name_of(rows, names.function_of(first)) == "sluice::sample::first_sampled_function(int)");
  CHECK(names.function_of(first) == names.function_of(first + 1));
  CHECK(name_of(rows, names.function_of(second)) == "sluice::sample::second_sampled_function(int)");
  const std::size_t count = rows.size();
  names.learn({first, second + 1}, rows);
  CHECK(rows.size() == count);  // each once
}

TEST_CASE("an address of no code is of the function that is not known") {
  FunctionNames names;
  std::vector<rundb::SampledFunctionRow> rows;
  int of_data = 0;
  names.learn({0, 1, reinterpret_cast<std::uint64_t>(&of_data), ~std::uint64_t{0}}, rows);
  CHECK(names.function_of(0) == kUnknownFunction);
  CHECK(names.function_of(reinterpret_cast<std::uint64_t>(&of_data)) == kUnknownFunction);
  CHECK(names.function_of(~std::uint64_t{0}) == kUnknownFunction);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].name.empty());
}

TEST_CASE("chains share the calls that they begin with") {
  FunctionNames names;
  CallTree tree;
  std::vector<rundb::SampledFunctionRow> functions;
  std::vector<rundb::CallRow> calls;
  const std::uint64_t first = address_of(&first_sampled_function) + 1;
  const std::uint64_t second = address_of(&second_sampled_function) + 1;
  const std::vector<std::vector<std::uint64_t>> chains = {
      {first, second}, {second, second}, {first + 1, second}, {first, 0, second}, {}};
  std::vector<std::uint64_t> addresses;
  for (const auto& chain : chains) CallTree::add_addresses(chain, addresses);
  names.learn(addresses, functions);
  std::vector<std::int64_t> found;
  for (const auto& chain : chains) found.push_back(tree.call_of(chain, names, calls));
  REQUIRE(calls.size() == 4);  // second; in it first; in it second; first alone
  CHECK(calls[0].caller_id == -1);
  CHECK(calls[1].caller_id == calls[0].id);
  CHECK(calls[2].caller_id == calls[0].id);
  CHECK(calls[3].caller_id == -1);  // what lies beyond code of no library is not believed
  CHECK(found[0] == calls[1].id);
  CHECK(found[1] == calls[2].id);
  CHECK(found[2] == found[0]);
  CHECK(found[3] == calls[3].id);
  CHECK(found[4] == 0);
}

TEST_CASE("a file that is no ELF file names nothing, whatever its bytes are") {
  const MappedFile program("/proc/self/exe");
  REQUIRE(program.bytes().size() > sizeof(Elf64_Ehdr));
  const ElfSymbols symbols(program.bytes());
  std::vector<std::byte> bytes(program.bytes().begin(), program.bytes().end());
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> damaged = bytes;
    // In its header and its table of sections, which say where all else is.
    const std::size_t sections = header.e_shoff + random() % (header.e_shnum * sizeof(Elf64_Shdr));
    damaged[random() % sizeof(Elf64_Ehdr)] = static_cast<std::byte>(random());
    if (sections < damaged.size()) damaged[sections] = static_cast<std::byte>(random());
    damaged.resize(random() % 4 == 0 ? random() % damaged.size() : damaged.size());
    const ElfSymbols of_damaged(damaged);
    for (int ask = 0; ask < 50; ++ask) (void)of_damaged.at(random() % (1 << 24));
  }
  CHECK_FALSE(ElfSymbols({}).at(0));
}

TEST_CASE("a file that cannot be read has no bytes") {
  CHECK(MappedFile("/no/such/file").bytes().empty());
  CHECK(MappedFile("/").bytes().empty());
}

}  // namespace
}  // namespace sluice::sample
