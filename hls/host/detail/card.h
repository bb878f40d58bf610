#pragma once
// A card that XRT has opened and programmed, with the kernels that a run may call.
//
// Thread contract: made on the schedule's thread; its handles may be copied and used from any.

#include <experimental/xrt_xclbin.h>
#include <xrt/xrt_bo.h>
#include <xrt/xrt_device.h>
#include <xrt/xrt_kernel.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "hls/host/detail/kernel_call.h"

namespace sluice::hls_host {

// An xclbin that has been read and holds what a run needs.
struct KernelFile {
  std::string path;
  xrt::xclbin xclbin;
  // Those that a run may call, and the compute units of each as XRT names them.
  std::map<std::string, std::vector<std::string>, std::less<>> kernels;
};
// `rule`: whose kernel it must have, for fp32 or for split state; empty: any rule's. Errors:
// ErrorCode::not_found, ErrorCode::corrupt for what XRT cannot read, ErrorCode::config naming what
// it holds where a kernel is missing.
Result<KernelFile> read_kernel_file(const std::string& path,
                                    std::optional<optimizer::RuleKind> rule, bool is_split = false);

// The facts that XRT has of a card before it is programmed.
struct CardFacts {
  std::string name;     // of its shell: "xilinx_u2_gen3x4_xdma_gc_2_202110_1"
  std::string address;  // of PCI: "0000:40:00.1"; empty where XRT knows none
};
Result<std::vector<CardFacts>> list_cards();

struct Card {
  CardFacts facts;
  xrt::device device;
  // By kernel, one for each of its compute units.
  std::map<std::string, std::vector<xrt::kernel>, std::less<>> kernels;
  xrt::memory_group bank = 0;  // that all kernels reach
};
// Programs card `index` with the file. Errors: those of XRT; ErrorCode::config for kernels on
// several banks.
Result<std::shared_ptr<Card>> open_card(unsigned index, const CardFacts& facts,
                                        const KernelFile& file);

}  // namespace sluice::hls_host
