#pragma once
// The machine as data (D2): links, devices, engines, compute, read from a TOML file.
// docs/platform_format.md is its page.
//
// Direction: `read` is data coming out of a drive (towards the host on the host link, towards the
// update engine on an internal link), `write` is data going into it.
//
// Thread contract: immutable after load.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/ids.h"
#include "base/status.h"
#include "base/units.h"
#include "core/platform/cluster.h"

namespace sluice::platform {

enum class Direction : std::uint8_t { read, write };
enum class Duplex : std::uint8_t {
  full,  // read and write each have their own bandwidth
  half,  // they share time: read_rate / read_bandwidth + write_rate / write_bandwidth <= 1
};

// How transfers of one direction that were asked for at the same time share a link.
enum class Sharing : std::uint8_t {
  fair,      // all flow at once, max-min fairly
  in_order,  // one after the other, as a drive serves a queue
};

enum class LinkId : std::int32_t {};
enum class EngineId : std::int32_t {};
constexpr std::int32_t index_of(LinkId id) { return static_cast<std::int32_t>(id); }
constexpr std::int32_t index_of(EngineId id) { return static_cast<std::int32_t>(id); }

// Bandwidth that one operation can reach when it is moved in requests of this size; between points
// it is interpolated over the logarithm of the size, outside it is that of the nearest point.
struct ChunkPoint {
  std::int64_t chunk_bytes;
  double read_bytes_per_s;
  double write_bytes_per_s;
};

// The first `size_bytes` after an idle period move at `bytes_per_s` instead of the steady rate.
struct Burst {
  std::int64_t size_bytes = 0;  // 0: nothing
  double bytes_per_s = 0;
};

struct Link {
  std::string name;
  double read_bytes_per_s = 0;
  double write_bytes_per_s = 0;
  TimeNs latency_ns = 0;  // paid once by each operation, before its bytes flow
  Duplex duplex = Duplex::full;
  Sharing sharing = Sharing::fair;
  std::vector<ChunkPoint> chunk_curve = {};  // may be empty: no dependence on request size
  Burst read_burst = {};
  Burst write_burst = {};
  // N bytes a second across this link would take all of the host processor's time; 0: its
  // transfers take none.
  double processor_bytes_per_s = 0;

  // Seconds of the host processor's time that a byte takes.
  double toll_per_byte() const { return processor_bytes_per_s > 0 ? 1 / processor_bytes_per_s : 0; }
};

// Its kernels start in the order asked, each on the first of its compute units that is free; a unit
// runs one at a time, at the engine's rates. Engines of one processor share its time, and so do the
// units of one that shares it.
struct Engine {
  std::string name;
  std::map<std::string, double> rate =
      {};                // kernel name ("adamw", "matmul", ...) -> elements or FLOP a second
  TimeNs launch_ns = 0;  // paid by each kernel
  std::int32_t compute_units = 1;  // 1 to kComputeUnitsMax; above 1 only of a device's engine
  EngineId processor{-1};          // the engine whose time it shares; -1: its own
  // Work of wake_ns takes wake_takes_ns when it comes after idling, since clocks and caches need a
  // while. What idles is this engine, whatever else its processor does.
  TimeNs wake_ns = 0;
  TimeNs wake_takes_ns = 0;
};

struct Device {
  std::string name;                    // "csd0"
  std::vector<LinkId> host_route;      // from host memory to the drive: "host", ..., "csd0.drive"
  std::vector<LinkId> memory_route;    // from host memory to the device's own memory: "host", ...
                                       // without the drive; empty: a plain drive
  std::vector<LinkId> internal_route;  // from the drive to the update engine: "csd0.drive",
                                       // "csd0.internal"; empty: a plain drive
  EngineId engine{-1};                 // -1: a plain drive
  std::int64_t memory_bytes = 0;       // of the update engine
  std::int64_t capacity_bytes = 0;     // of the drive; 0 = not stated
  std::int64_t endurance_bytes = 0;    // that may be written to the drive; 0 = not stated
  double price_usd = 0;                // 0 = not stated
};

struct Platform {
  std::string name;
  std::string source;  // path of the file
  std::vector<Link> links;
  std::vector<Engine> engines;  // the host's are among them
  std::vector<Device> devices;
  EngineId host_engine{
      -1};  // updates of `method=host`, gradient checks, staging: kernel rates by name
  EngineId compute_engine{-1};  // forward and backward; of several accelerators, all together
  // From host memory to each accelerator, its own link last; empty: forward and backward run in
  // host memory.
  std::vector<std::vector<LinkId>> accelerator_routes;
  // The machine as one of many ranks; then `compute_engine` is one rank's, and there may be no
  // devices.
  std::optional<Cluster> cluster = {};
  std::int64_t host_memory_bytes = 0;  // 0 = not stated
  double host_price_usd = 0;     // the machine without accelerator and devices; 0 = not stated
  double compute_price_usd = 0;  // of all accelerators

  // The id is one of the list; -1 is a programmer error.
  const Link& link(LinkId id) const { return links[place_of(id, links.size())]; }
  Link& link(LinkId id) { return links[place_of(id, links.size())]; }
  const Engine& engine(EngineId id) const { return engines[place_of(id, engines.size())]; }
  Engine& engine(EngineId id) { return engines[place_of(id, engines.size())]; }
  const Device& device(DeviceId id) const { return devices[place_of(id, devices.size())]; }

  // Gradients are compressed where they come from if that can, else by the host.
  EngineId compressing_engine() const {
    return engine(compute_engine).rate.contains("compress") ? compute_engine : host_engine;
  }
  // The price of the machine and its devices, as far as stated.
  double price_usd() const {
    double sum = host_price_usd + compute_price_usd;
    for (const Device& device : devices) sum += device.price_usd;
    return sum;
  }

 private:
  template <typename Id>
  static std::size_t place_of(Id id, std::size_t count) {
    const auto place = static_cast<std::size_t>(index_of(id));
    CHECK_LT(place, count);  // -1 is above every size
    return place;
  }
};

// Names of the kernels that a file may give rates for: "adamw", "sgd", "adagrad" (and each with
// "_exact" and "_compact" behind it, for state in that format), "decompress" on
// the host and on devices, "stage" and "checksum" on the host, "compress" on the host and in
// compute, "matmul" and "elementwise" in compute. An engine has those that its file gives.
//
// Errors (ErrorCode::config) name file, line and key, and for a misspelt key the nearest right one.
// A file that cannot be read is ErrorCode::not_found or io.
Result<Platform> load_platform(const std::string& path);
Result<Platform> parse_platform(std::string_view toml, const std::string& path_for_messages);

// The same platform with its first `device_count` devices. More than there are is an error that
// says how many there are.
Result<Platform> with_devices(const Platform& platform, std::int32_t device_count);

// The kind that a link or an engine of that name belongs to: "drive" for "csd3.drive",
// "accelerator" for "accelerator1.link"; its own name where it is the only one.
std::string kind_of(const Platform& platform, const std::string& name);

// The same platform with its first `count` accelerators; with 0 what computes does so in host
// memory, at the rates of one.
Result<Platform> with_accelerators(const Platform& platform, std::int32_t count);

// The same platform, and where forward and backward run in host memory there, an accelerator whose
// link is a PCIe 4.0 x16 slot's: kAddedAcceleratorRate each way. For a run on a device with memory
// of its own.
inline constexpr double kAddedAcceleratorRate = 25e9;  // bytes/s, of 31.5 GB/s raw (assumed)
Platform with_an_accelerator(const Platform& platform);

}  // namespace sluice::platform
