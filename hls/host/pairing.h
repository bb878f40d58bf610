#pragma once
// Which drive lies beside which card. A card reads and writes a drive peer to peer only below one
// PCIe switch (a SmartSSD has one of its own); a file on any other drive is reached through the
// host at best, and what was to stay inside the device goes over the shared link. So the pairing is
// looked up in sysfs, where a device's place is the path of bridges that lead to it.
//
// Thread contract: free functions; they read files of the kernel.

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace sluice::hls_host {

// A PCI device and the bridges above it, from the root port down: "0000:3a:00.0", ..., its own.
struct PciPlace {
  std::string name;  // "nvme0n1", or the address of a card
  std::vector<std::string> path;

  const std::string& address() const { return path.back(); }
};

// The drive that a file lies on. Errors: ErrorCode::unsupported where it lies on no PCI drive (a
// network, memory, several drives behind one), ErrorCode::io where it cannot be looked at.
Result<PciPlace> drive_of_file(const std::string& file, const std::string& sysfs = "/sys");
// The same by a block device's number, "259:0".
Result<PciPlace> drive_of_number(const std::string& number, const std::string& sysfs);

// A card by its address. Empty: sysfs knows no such PCI device.
std::optional<PciPlace> place_of_card(const std::string& address,
                                      const std::string& sysfs = "/sys");

// Whether the nearest bridge above both is one switch, with a port for each of them.
bool share_switch(const PciPlace& one, const PciPlace& other);

struct PairingRequest {
  std::string device;              // as the run calls it: "csd0"
  std::string card;                // its PCI address
  std::vector<std::string> cards;  // of all cards, in XRT's order
  std::string file;                // that lies on the drive
};
// Whether the card may be used with the file: ok, or an error that names both and says which card
// shares the drive's switch. `checked` says whether there was something to check.
Status check_pairing(const PairingRequest& request, const std::string& sysfs, bool& checked);

}  // namespace sluice::hls_host
