// For `sluice doctor`: what XRT shows, found by asking it.

#include "hls/host/detail/card.h"
#include "hls/host/detail/xrt_call.h"
#include "hls/host/pairing.h"
#include "hls/host/xrt_devices.h"

namespace sluice::hls_host {
namespace {

XrtFinding library_finding(const Result<std::vector<CardFacts>>& cards) {
  constexpr const char* kWhat = "XRT (hardware CSDs)";
  if (!cards.ok()) return {kWhat, false, cards.error().message()};
  if (cards->empty()) {
    return {kWhat, false,
            "is there, but shows no card: `lspci -d 10ee:` says whether the machine sees one, and "
            "`xbutil examine` whether its driver does; method=csd uses emulated devices"};
  }
  return {kWhat, true, fmt::format("{} card{}", cards->size(), cards->size() == 1 ? "" : "s")};
}

// Peer-to-peer memory as the shell reports it; where it does not, a page is asked for. Before a
// card has been programmed there may be none to give, so a refusal is not the last word.
XrtFinding p2p_finding(unsigned index, const CardFacts& facts) {
  const std::string what = fmt::format("card {}", index);
  const auto said =
      xrt_call(what, [&] { return xrt::device(index).get_info<xrt::info::device::platform>(); });
  const std::string how = fmt::format(
      "`xbutil configure --device {} --p2p enable`, then restart "
      "the machine",
      facts.address);
  const std::string head = fmt::format("{} at {}: ", facts.name, facts.address);
  if (said.ok() && said->find("p2p_status\": \"disabled") != std::string::npos) {
    return {what, false, head + "peer-to-peer is off: " + how};
  }
  if (said.ok() && said->find("p2p_status\": \"enabled") != std::string::npos) {
    return {what, true, head + "peer-to-peer is on"};
  }
  const auto taken = xrt_call("taking a page of peer-to-peer memory", [&] {
    return xrt::bo(xrt::device(index), kPageBytes, xrt::bo::flags::p2p, 0).size();
  });
  if (taken.ok()) return {what, true, head + "peer-to-peer is on"};
  return {what, false,
          fmt::format("{}{}. A card that was never programmed gives none yet; else {}", head,
                      taken.error().message(), how)};
}

XrtFinding pairing_finding(const std::vector<CardFacts>& cards, const std::string& directory) {
  const std::string what = "card beside " + directory;
  const auto drive = drive_of_file(directory);
  if (!drive.ok()) return {what, false, drive.error().message()};
  bool is_any_known = false;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const auto card = place_of_card(cards[i].address);
    is_any_known |= card.has_value();
    if (card && share_switch(*card, *drive)) {
      return {what, true,
              fmt::format("card {} ({}) shares a switch with {} ({})", i, cards[i].address,
                          drive->name, drive->address())};
    }
  }
  return {what, false,
          is_any_known
              ? fmt::format("none shares a switch with {} ({}): choose a folder on a drive that "
                            "has a card beside it",
                            drive->name, drive->address())
              : "cannot be said: XRT's cards are no PCI devices of this machine"};
}

XrtFinding kernel_finding(const std::string& xclbin) {
  constexpr const char* kWhat = "xclbin (kernels)";
  if (xclbin.empty()) {
    return {kWhat, false, "none was named: `sluice doctor --xclbin PATH` looks into one"};
  }
  const auto file = read_kernel_file(xclbin, std::nullopt);
  if (!file.ok()) return {kWhat, false, file.error().message()};
  std::vector<std::string> kernels;
  for (const auto& [name, units] : file->kernels) {
    kernels.push_back(units.size() == 1 ? name : fmt::format("{} x{}", name, units.size()));
  }
  return {kWhat, true, fmt::format("{}: {}", xclbin, fmt::join(kernels, ", "))};
}

}  // namespace

std::vector<XrtFinding> examine_xrt(const std::string& directory, const std::string& xclbin) {
  const auto cards = list_cards();
  std::vector<XrtFinding> findings = {library_finding(cards)};
  if (cards.ok() && !cards->empty()) {
    for (unsigned i = 0; i < cards->size(); ++i) findings.push_back(p2p_finding(i, (*cards)[i]));
    findings.push_back(pairing_finding(*cards, directory));
  }
  if (!xclbin.empty() || (cards.ok() && !cards->empty())) {
    findings.push_back(kernel_finding(xclbin));
  }
  return findings;
}

}  // namespace sluice::hls_host
