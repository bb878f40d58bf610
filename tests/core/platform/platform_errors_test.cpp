// Every way in which a platform file can be wrong, each with the whole message: one line of a good
// file is replaced.

#include <catch2/catch.hpp>

#include "core/platform/platform.h"
#include "tests/core/platform/refused_text.h"

namespace sluice::platform {
namespace {

// Line numbers count from 1, the first line being `name`.
constexpr const char* kGood = R"(name = "good"
[[link]]
name = "host"
read = "8 GB/s"
write = "8 GB/s"
duplex = "full"
latency = "5 us"
[host]
memory = "64 GB"
adamw = "1.5 Gelem/s"
[compute]
matmul = "420 GFLOP/s"
[[device]]
name = "csd"
count = 2
via = ["host"]
memory = "4 GB"
capacity = "4 TB"
drive = { read = "3 GB/s", write = "1.65 GB/s", duplex = "half" }
[device.internal]
read = "4 GB/s"
write = "4 GB/s"
duplex = "full"
[device.engine]
adamw = "0.51 Gelem/s"
launch = "20 us"
)";

// The message when line `line` of the good file is replaced.
std::string machine_with_line(int line, const std::string& text) {
  return with_line_of(kGood, line, text);
}

TEST_CASE("a processor_bandwidth is a rate above nothing") {
  const std::string drive = R"(drive = { read = "3 GB/s", write = "1 GB/s", duplex = "half", )";
  CHECK(machine_with_line(19, drive + R"(processor_bandwidth = "20 GB/s" })").empty());
  CHECK(machine_with_line(19, drive + R"(processor_bandwidth = "0 GB/s" })") ==
        "p.toml:19: device.drive.processor_bandwidth: '0 GB/s' is out of range: a rate is 1 to "
        "10^18 a second");
}

TEST_CASE("the file that the bad ones are made of is good") { CHECK(message_of(kGood).empty()); }

TEST_CASE("text that is not TOML names file and line") {
  CHECK(machine_with_line(4, "read = 8 GB/s").starts_with("p.toml:4: "));
  CHECK(machine_with_line(5, "read = \"8 GB/s\"").starts_with("p.toml:5: "));  // `read` twice
  CHECK(message_of("\xff").starts_with("p.toml:1: "));
}

TEST_CASE("an unknown key names the one that was probably meant") {
  CHECK(machine_with_line(1, "name = \"x\"\nhots = 1") ==
        "p.toml:2: hots: there is no such key (did you mean 'host'?)");
  CHECK(machine_with_line(7, "latencey = \"5 us\"") ==
        "p.toml:7: link.latencey: there is no such key (did you mean 'latency'?)");
  CHECK(machine_with_line(9, "memroy = \"64 GB\"") ==
        "p.toml:9: host.memroy: there is no such key (did you mean 'memory'?)");
  CHECK(machine_with_line(12, "mathmul = \"420 GFLOP/s\"") ==
        "p.toml:12: compute.mathmul: there is no such key (did you mean 'matmul'?)");
  CHECK(machine_with_line(18, "capcity = \"4 TB\"") ==
        "p.toml:18: device.capcity: there is no such key (did you mean 'capacity'?)");
  CHECK(machine_with_line(19, "drive = { raed = \"3 GB/s\" }") ==
        "p.toml:19: device.drive.raed: there is no such key (did you mean 'read'?)");
  CHECK(machine_with_line(25, "adam = \"0.51 Gelem/s\"") ==
        "p.toml:25: device.engine.adam: there is no such key (did you mean 'adamw'?)");
  CHECK(machine_with_line(25, "something_else = 1") ==
        "p.toml:25: device.engine.something_else: there is no such key");
}

TEST_CASE("of several unknown keys the first in the file is named") {
  CHECK(machine_with_line(7, "zzzzzz = 1\naaaaaa = 1") ==
        "p.toml:7: link.zzzzzz: there is no such key");
}

TEST_CASE("a missing key names its table's line") {
  CHECK(machine_with_line(1, "") == "p.toml:1: name: is missing");
  CHECK(machine_with_line(3, "") == "p.toml:2: link.name: is missing");
  CHECK(machine_with_line(4, "") == "p.toml:2: link.read: is missing");
  CHECK(machine_with_line(5, "") == "p.toml:2: link.write: is missing");
  CHECK(machine_with_line(6, "") == "p.toml:2: link.duplex: is missing");
  CHECK(machine_with_line(12, "") == "p.toml:11: compute.matmul: is missing");
  CHECK(machine_with_line(14, "") == "p.toml:13: device.name: is missing");
  CHECK(machine_with_line(16, "") == "p.toml:13: device.via: is missing");
  CHECK(machine_with_line(17, "") ==
        "p.toml:13: device.memory: is missing; a device with `engine` needs it");
  CHECK(machine_with_line(19, "") == "p.toml:13: device.drive: is missing");
  CHECK(message_of("name = \"x\"\n") == "p.toml:1: host: is missing");
  CHECK(message_of("name = \"x\"\n[host]\n") == "p.toml:1: compute: is missing");
  CHECK(message_of("name = \"x\"\n[host]\n[compute]\nmatmul = \"1 GFLOP/s\"") ==
        "p.toml:1: device: is missing");
}

TEST_CASE("an engine and its internal link come together, and the engine runs an update") {
  const std::string head = std::string(kGood).substr(0, std::string(kGood).find("[device.inter"));
  CHECK(message_of(head + "engine = { adamw = \"1 Gelem/s\" }") ==
        "p.toml:13: device.internal: is missing");
  CHECK(message_of(head + "internal = { read = \"1 GB/s\", write = \"1 GB/s\", duplex = \"full\" "
                          "}") == "p.toml:13: device.engine: is missing");
  CHECK(message_of(head) ==
        "p.toml:17: device.memory: a device without `engine` is a plain drive and has no memory");
  CHECK(machine_with_line(25, "decompress = \"1 Gelem/s\"") ==
        "p.toml:24: device.engine: runs no update; give `adamw`, `sgd` or `adagrad`");
}

TEST_CASE("an engine shares the processor of the host, or has its own") {
  CHECK(machine_with_line(
            12, "matmul = \"1 TFLOP/s\"\nelementwise = \"1 Gelem/s\"\nprocessor = \"host\"")
            .empty());
  CHECK(machine_with_line(25, "adamw = \"1 Gelem/s\"\nprocessor = \"host\"").empty());
  CHECK(
      machine_with_line(12, "matmul = \"1 TFLOP/s\"\nprocessor = \"csd0\"") ==
      "p.toml:13: compute.processor: 'csd0' is not \"host\"; leave the key out for an engine that "
      "shares its processor with no other");
  CHECK(machine_with_line(12, "matmul = \"1 TFLOP/s\"\nelementwise = \"1 GFLOP/s\"")
            .starts_with("p.toml:13: compute.elementwise: "));
  CHECK(machine_with_line(10, "processor = \"host\"").starts_with("p.toml:10: host.processor: "));
}

TEST_CASE("an accelerator has a link of its own, or computes in host memory") {
  const std::string matmul = "matmul = \"1 TFLOP/s\"\n";
  const std::string link = "link = { read = \"1 GB/s\", write = \"1 GB/s\", duplex = \"full\" }\n";
  CHECK(machine_with_line(12, matmul + link + "via = [\"host\"]\ncount = 2").empty());
  CHECK(machine_with_line(12, matmul + "count = 2") ==
        "p.toml:13: compute.count: needs `link`, the accelerator's own");
  CHECK(machine_with_line(12, matmul + "via = [\"host\"]") ==
        "p.toml:13: compute.via: needs `link`, the accelerator's own");
  CHECK(machine_with_line(12, matmul + link + "count = 0") ==
        "p.toml:14: compute.count: 0 is not in 1 to 64");
  CHECK(machine_with_line(12, matmul + link + "via = [\"hots\"]") ==
        "p.toml:14: compute.via: there is no [[link]] 'hots' (did you mean 'host'?)");
  CHECK(machine_with_line(12, matmul + link + "processor = \"host\"") ==
        "p.toml:14: compute.processor: is the host's; an accelerator with a `link` has its own");
}

TEST_CASE("a value of the wrong type says what it is and what to write") {
  CHECK(machine_with_line(1, "name = 5") ==
        "p.toml:1: name: is a whole number; write a text in quotes");
  CHECK(machine_with_line(4, "read = 8.5") ==
        "p.toml:4: link.read: is a number; write a text in quotes");
  CHECK(machine_with_line(4, "read = true") ==
        "p.toml:4: link.read: is a truth value; write a text in quotes");
  CHECK(machine_with_line(4, "read = 2024-01-01") ==
        "p.toml:4: link.read: is a date or time; write a text in quotes");
  CHECK(machine_with_line(15, "count = \"2\"") ==
        "p.toml:15: device.count: is a text; write a whole number");
  CHECK(machine_with_line(16, "via = \"host\"") ==
        "p.toml:16: device.via: is not an array of texts; write it like [\"a\", \"b\"]");
  CHECK(machine_with_line(16, "via = [1]") ==
        "p.toml:16: device.via: is not an array of texts; write it like [\"a\", \"b\"]");
  CHECK(machine_with_line(19, "drive = [\"fast\"]") ==
        "p.toml:19: device.drive: is an array; write a table, like [device.drive] or drive = { "
        "... }");
  CHECK(machine_with_line(4, "read = { rate = 1 }") ==
        "p.toml:4: link.read: is a table; write a text in quotes");
  CHECK(message_of("name = \"x\"\nlink = 5\n") ==
        "p.toml:2: link: is not a list of tables; write [[link]]");
}

TEST_CASE("a misspelt unit says how to write it") {
  CHECK(machine_with_line(4, "read = \"8 GBs\"") ==
        "p.toml:4: link.read: '8 GBs' is not a bandwidth; write it like \"3.0 GB/s\" or \"100 "
        "MiB/s\"");
  CHECK(machine_with_line(7, "latency = \"5 usec\"") ==
        "p.toml:7: link.latency: '5 usec' is not a time; write ns, us, ms or s, like \"80 us\"");
  CHECK(machine_with_line(9, "memory = \"64 Gb\"") ==
        "p.toml:9: host.memory: '64 Gb' has no unit of bytes; write B, kB, MB, GB, TB or KiB, MiB, "
        "GiB, TiB");
  CHECK(machine_with_line(12, "matmul = \"420 Gelem/s\"") ==
        "p.toml:12: compute.matmul: '420 Gelem/s' is not in FLOP/s; write it like \"1.5 GFLOP/s\"");
  CHECK(machine_with_line(25, "adamw = \"fast\"") ==
        "p.toml:25: device.engine.adamw: 'fast' is not a number with a unit; write it like \"1.5 "
        "Gelem/s\"");
}

TEST_CASE("rates are above zero and within reason") {
  CHECK(machine_with_line(4, "read = \"0 GB/s\"") ==
        "p.toml:4: link.read: '0 GB/s' is out of range: a rate is 1 to 10^18 a second");
  CHECK(machine_with_line(5, "write = \"-8 GB/s\"") ==
        "p.toml:5: link.write: '-8 GB/s' is out of range: a rate is 1 to 10^18 a second");
  CHECK(machine_with_line(5, "write = \"1e308 GB/s\"") ==
        "p.toml:5: link.write: '1e308 GB/s' is out of range: a rate is 1 to 10^18 a second");
  CHECK(machine_with_line(10, "adamw = \"0 Gelem/s\"") ==
        "p.toml:10: host.adamw: '0 Gelem/s' is out of range: a rate is 1 to 10^18 a second");
}

TEST_CASE("times are within a day") {
  CHECK(machine_with_line(7, "latency = \"86400 s\"").empty());
  CHECK(machine_with_line(7, "latency = \"86401 s\"") ==
        "p.toml:7: link.latency: '86401 s' is out of range: at most a day, 86400 s");
  CHECK(machine_with_line(26, "launch = \"9000000000 s\"") ==
        "p.toml:26: device.engine.launch: '9000000000 s' is out of range: at most a day, 86400 s");
}

TEST_CASE("times are not below zero, and sizes above it") {
  CHECK(machine_with_line(7, "latency = \"-5 us\"") ==
        "p.toml:7: link.latency: '-5 us' is out of range for a time");
  CHECK(machine_with_line(7, "latency = \"1e300 s\"") ==
        "p.toml:7: link.latency: '1e300 s' is out of range for a time");
  CHECK(machine_with_line(26, "launch = \"-1 ns\"") ==
        "p.toml:26: device.engine.launch: '-1 ns' is out of range for a time");
  CHECK(machine_with_line(9, "memory = \"0 GB\"") ==
        "p.toml:9: host.memory: is zero; leave the key out if it is not known");
  CHECK(machine_with_line(18, "capacity = \"-4 TB\"") ==
        "p.toml:18: device.capacity: '-4 TB' is out of range for a number of bytes");
  CHECK(machine_with_line(18, "endurance = \"0 TB\"") ==
        "p.toml:18: device.endurance: is zero; leave the key out if it is not known");
}

TEST_CASE("a scale is a number within reason, and stands where there is something to scale") {
  CHECK(machine_with_line(1, "name = \"x\"\nengine_scale = 100\nmedia_scale = 0.5").empty());
  CHECK(machine_with_line(1, "name = \"x\"\nengin_scale = 100") ==
        "p.toml:2: engin_scale: there is no such key (did you mean 'engine_scale'?)");
  CHECK(machine_with_line(1, "name = \"x\"\nmedia_scale = \"2\"") ==
        "p.toml:2: media_scale: is a text; write a number");
  CHECK(machine_with_line(1, "name = \"x\"\nlink_scale = 0") ==
        "p.toml:2: link_scale: 0 is not in 1e-06 to 1e+06");
  CHECK(machine_with_line(1, "name = \"x\"\nlink_scale = 9007199254740993") ==
        "p.toml:2: link_scale: 9.0072e+15 is not in 1e-06 to 1e+06");
  CHECK(machine_with_line(1, "name = \"x\"\nlink_scale = nan") ==
        "p.toml:2: link_scale: nan is not in 1e-06 to 1e+06");
  CHECK(machine_with_line(4, "read = \"1e9 GB/s\"\nlink_scale = 2") ==
        "p.toml:5: link.link_scale: 2 times 1e+18 a second is out of range: a rate is 1 to 10^18 a "
        "second");
  CHECK(machine_with_line(1, "name = \"x\"\nmedia_scale = 1e6").empty());
  CHECK(machine_with_line(7, "engine_scale = 2") ==
        "p.toml:7: link.engine_scale: there is no such key (did you mean 'link_scale'?)");
  CHECK(machine_with_line(18, "internal_scal = 2") ==
        "p.toml:18: device.internal_scal: there is no such key (did you mean 'internal_scale'?)");
  const std::string plain =
      std::string(kGood) +
      "[[device]]\nname = \"nvme\"\nvia = []\n"
      "drive = { read = \"1 GB/s\", write = \"1 GB/s\", duplex = \"half\" }\n";
  CHECK(message_of(plain + "media_scale = 2").empty());
  CHECK(message_of(plain + "engine_scale = 2") ==
        "p.toml:31: device.engine_scale: a plain drive has nothing of the kind");
}

TEST_CASE("compute units are a whole number, of an update engine") {
  CHECK(machine_with_line(26, "compute_units = 64").empty());
  CHECK(machine_with_line(26, "compute_units = 0") ==
        "p.toml:26: device.engine.compute_units: 0 is not in 1 to 64");
  CHECK(machine_with_line(26, "compute_units = 1.5") ==
        "p.toml:26: device.engine.compute_units: is a number; write a whole number");
  CHECK(machine_with_line(26, "compute_unit = 2") ==
        "p.toml:26: device.engine.compute_unit: there is no such key (did you mean "
        "'compute_units'?)");
  CHECK(machine_with_line(10, "compute_units = 2") ==
        "p.toml:10: host.compute_units: there is no such key");
}

TEST_CASE("a price is an amount in USD") {
  CHECK(machine_with_line(9, "price = \"45000 USD\"").empty());
  CHECK(machine_with_line(18, "price = \"2400.50 USD\"").empty());
  for (const char* wrong : {"2400", "2400 EUR", "-1 USD", "0 USD", "USD", "nan USD"}) {
    CHECK(machine_with_line(18, fmt::format("price = \"{}\"", wrong)) ==
          fmt::format("p.toml:18: device.price: '{}' is not a price; write it as \"2400 USD\"",
                      wrong));
  }
}

TEST_CASE("duplex is full or half") {
  CHECK(machine_with_line(6, "duplex = \"ful\"") ==
        "p.toml:6: link.duplex: 'ful' is neither \"full\" (read and write each have their "
        "bandwidth) nor \"half\" (they share time)");
}

TEST_CASE("a link is shared fairly or in order") {
  CHECK(machine_with_line(6, "duplex = \"full\"\nsharing = \"in_order\"").empty());
  CHECK(machine_with_line(6, "duplex = \"full\"\nsharing = \"fifo\"") ==
        "p.toml:7: link.sharing: 'fifo' is neither \"fair\" (transfers flow at once) nor "
        "\"in_order\" (one after the other in each direction)");
}

TEST_CASE("names are plain and given once") {
  CHECK(machine_with_line(3, "name = \"the host\"") ==
        "p.toml:3: link.name: 'the host' is not a name of letters, digits, - and _");
  CHECK(machine_with_line(14, "name = \"\"") ==
        "p.toml:14: device.name: '' is not a name of letters, digits, - and _");
  CHECK(machine_with_line(14, "name = \"csd0.drive\"") ==
        "p.toml:14: device.name: 'csd0.drive' is not a name of letters, digits, - and _");
  CHECK(machine_with_line(
            7,
            "[[link]]\nname = \"host\"\nread = \"1 GB/s\"\nwrite = \"1 GB/s\"\nduplex = "
            "\"full\"") == "p.toml:8: link.name: a link 'host' is there already");
  CHECK(message_of(std::string(kGood) +
                   "[[device]]\nname = \"csd1\"\nvia = []\n[device.drive]\nread = \"1 "
                   "GB/s\"\nwrite = \"1 GB/s\"\nduplex = \"half\"\n") ==
        "p.toml:28: device.name: a device 'csd1' is there already");
}

TEST_CASE("a route goes over links that are there, each once") {
  CHECK(machine_with_line(16, "via = [\"hots\"]") ==
        "p.toml:16: device.via: there is no [[link]] 'hots' (did you mean 'host'?)");
  CHECK(machine_with_line(16, "via = [\"csd0.internal\"]") ==
        "p.toml:16: device.via: there is no [[link]] 'csd0.internal'");
  CHECK(machine_with_line(16, "via = [\"host\", \"host\"]") ==
        "p.toml:16: device.via: lists 'host' twice; a route crosses a link once");
}

TEST_CASE("a group has 1 to 1024 devices, and so have all groups together") {
  for (const std::string count : {"0", "-1", "1025"}) {
    CHECK(machine_with_line(15, "count = " + count) ==
          "p.toml:15: device.count: " + count + " is not in 1 to 1024");
  }
  CHECK(machine_with_line(15, "count = 1024").empty());
  const std::string second = std::string(kGood).substr(std::string(kGood).find("[[device]]"));
  const std::string more = "[[device]]\nname = \"more\"" + second.substr(second.find("\ncount"));
  CHECK(message_of(kGood + more).empty());
  std::string full = more;
  full.replace(full.find("count = 2"), 9, "count = 1023");
  CHECK(message_of(kGood + full) == "p.toml:29: device.count: more than 1024 devices in all");
}

TEST_CASE("a chunk curve has rows of three with rising sizes") {
  const auto with_curve = [](const std::string& curve) {
    return machine_with_line(7, "chunk_curve = " + curve);
  };
  CHECK(with_curve(R"([["4 KiB", "1 GB/s", "1 GB/s"], ["1 MiB", "2 GB/s", "2 GB/s"]])").empty());
  CHECK(with_curve("5") == "p.toml:7: link.chunk_curve: is a whole number; write an array");
  CHECK(with_curve("[]") == "p.toml:7: link.chunk_curve: has no points; leave the key out");
  CHECK(with_curve("[\"4 KiB\"]") ==
        "p.toml:7: link.chunk_curve: element 1 is not an array of texts");
  CHECK(with_curve(R"([["4 KiB", "1 GB/s"]])") ==
        "p.toml:7: link.chunk_curve: point 1: has 2 texts; write three: request size, read, write, "
        "like [\"4 KiB\", \"60 MB/s\", \"250 MB/s\"]");
  CHECK(with_curve(R"([["0 B", "1 GB/s", "1 GB/s"]])") ==
        "p.toml:7: link.chunk_curve: point 1: '0 B' is not above zero");
  CHECK(with_curve(R"([["4 KiB", "1 GB/s", "0 GB/s"]])") ==
        "p.toml:7: link.chunk_curve: point 1: '0 GB/s' is out of range: a rate is 1 to 10^18 a "
        "second");
  CHECK(with_curve(R"([["4 KiB", "1 GB/s", "1 GB/s"], ["4096", "2 GB/s", "2 GB/s"]])") ==
        "p.toml:7: link.chunk_curve: point 2: '4096' is not above the size before it");
}

TEST_CASE("waking takes longer than the work") {
  CHECK(machine_with_line(9, "wake = \"20 ms\"\nwake_takes = \"36 ms\"").empty());
  CHECK(machine_with_line(9, "wake = \"20 ms\"") ==
        "p.toml:9: host.wake: stands with the other of `wake` and `wake_takes`: so much work after "
        "idling takes so long");
  CHECK(machine_with_line(9, "wake_takes = \"10 ms\"\nwake = \"20 ms\"") ==
        "p.toml:9: host.wake_takes: is less than `wake`: after idling work takes longer, not less");
  CHECK(machine_with_line(12,
                          "matmul = \"420 GFLOP/s\"\nprocessor = \"host\"\nwake = \"20 ms\"\n"
                          "wake_takes = \"36 ms\"")
            .empty());
}

TEST_CASE("a burst has a size and a rate above the link's") {
  CHECK(machine_with_line(7, "read_burst = \"10 MB\"\nread_burst_rate = \"100 GB/s\"").empty());
  CHECK(machine_with_line(7, "read_burst = \"10 MB\"") ==
        "p.toml:7: link.read_burst: needs read_burst_rate beside it: N bytes after idling, at "
        "that rate");
  CHECK(machine_with_line(7, "write_burst_rate = \"9 GB/s\"") ==
        "p.toml:7: link.write_burst_rate: needs write_burst beside it: N bytes after idling, "
        "at that rate");
  CHECK(machine_with_line(7, "read_burst_rate = \"1 MB/s\"\nread_burst = \"10 MB\"") ==
        "p.toml:7: link.read_burst_rate: is not above read: a burst is faster than what lasts");
  CHECK(machine_with_line(7, "read_burst = \"0 B\"\nread_burst_rate = \"9 GB/s\"") ==
        "p.toml:7: link.read_burst: is zero; leave the key out if it is not known");
}

}  // namespace
}  // namespace sluice::platform
