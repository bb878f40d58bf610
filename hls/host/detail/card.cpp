#include "hls/host/detail/card.h"

#include <experimental/xrt_system.h>

#include <algorithm>
#include <filesystem>

#include "hls/host/detail/xrt_call.h"

namespace sluice::hls_host {
namespace {

struct KnownKernel {
  std::string_view name;
  int buffer_count;  // its first arguments
};
constexpr KnownKernel kKnownKernels[] = {{"update_adamw", 11},     {"update_sgd", 9},
                                         {"update_adagrad", 9},    {"update_adamw_split", 12},
                                         {"update_sgd_split", 10}, {"update_adagrad_split", 10},
                                         {kChecksumKernel, 2}};

const KnownKernel* find_known(std::string_view name) {
  const auto* const found = std::ranges::find(kKnownKernels, name, &KnownKernel::name);
  return found == std::end(kKnownKernels) ? nullptr : found;
}

Status check_kernels(const KernelFile& file, const std::vector<std::string>& held,
                     std::optional<optimizer::RuleKind> rule, bool is_split) {
  const std::string wanted = rule ? update_kernel_name(*rule, is_split) : "";
  const bool has_update = rule ? file.kernels.contains(wanted)
                               : std::ranges::any_of(file.kernels, [](const auto& kernel) {
                                   return kernel.first.starts_with("update_");
                                 });
  const bool has_checksum = file.kernels.contains(std::string_view(kChecksumKernel));
  if (has_update && has_checksum) return ok_status();
  return make_error(
      ErrorCode::config,
      "{}: holds {}; a run needs {} and {} (docs/hls.md says how they are built)", file.path,
      held.empty() ? "no kernel" : fmt::format("the kernels {}", fmt::join(held, ", ")),
      rule ? wanted : "the update kernel of its optimizer", kChecksumKernel);
}

// XRT says "update_adamw:update_adamw_1", and opens a kernel on one unit by the part behind the
// colon.
std::vector<std::string> units_of(const xrt::xclbin::kernel& kernel) {
  std::vector<std::string> units;
  for (const xrt::xclbin::ip& unit : kernel.get_cus()) {
    const std::string name = unit.get_name();
    units.push_back(name.substr(name.find(':') + 1));
  }
  return units;
}

// All buffers of all kernels must lie in one bank: a SmartSSD has one.
Result<xrt::memory_group> bank_of(const Card& card, const std::string& path) {
  std::vector<int> banks;
  for (const auto& [name, units] : card.kernels) {
    for (const xrt::kernel& unit : units) {
      for (int i = 0; i < find_known(name)->buffer_count; ++i) banks.push_back(unit.group_id(i));
    }
  }
  std::ranges::sort(banks);
  if (banks.front() == banks.back()) return static_cast<xrt::memory_group>(banks.front());
  return make_error(ErrorCode::config,
                    "{}: its kernels are connected to several memory banks ({} to {}); link them "
                    "to one",
                    path, banks.front(), banks.back());
}

// A fact that a card does not tell is no reason to fail.
template <xrt::info::device kWhat>
std::string told(const xrt::device& device) {
  const auto text = xrt_call("asking a card", [&] { return device.get_info<kWhat>(); });
  return text.ok() ? *text : "";
}

}  // namespace

Result<KernelFile> read_kernel_file(const std::string& path,
                                    std::optional<optimizer::RuleKind> rule, bool is_split) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return make_error(ErrorCode::not_found, "{}: there is no such xclbin; set xclbin=PATH", path);
  }
  KernelFile file;
  file.path = path;
  std::vector<std::string> held;
  auto read = xrt_call(path, [&] {
    file.xclbin = xrt::xclbin(path);
    for (const xrt::xclbin::kernel& kernel : file.xclbin.get_kernels()) {
      held.push_back(kernel.get_name());
      if (find_known(held.back()) != nullptr) file.kernels[held.back()] = units_of(kernel);
    }
  });
  if (!read.ok()) return Error(ErrorCode::corrupt, read.error().message());
  RETURN_IF_ERROR(check_kernels(file, held, rule, is_split));
  return file;
}

Result<std::vector<CardFacts>> list_cards() {
  ASSIGN_OR_RETURN(const unsigned count,
                   xrt_call("looking for cards", [] { return xrt::system::enumerate_devices(); }));
  std::vector<CardFacts> cards;
  for (unsigned i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const xrt::device device,
                     xrt_call(fmt::format("opening card {}", i), [&] { return xrt::device(i); }));
    cards.push_back({told<xrt::info::device::name>(device), told<xrt::info::device::bdf>(device)});
  }
  return cards;
}

Result<std::shared_ptr<Card>> open_card(unsigned index, const CardFacts& facts,
                                        const KernelFile& file) {
  auto card = std::make_shared<Card>();
  card->facts = facts;
  const std::string what =
      fmt::format("programming card {} ({}) with {}", index, facts.address, file.path);
  RETURN_IF_ERROR(xrt_call(what, [&] {
    card->device = xrt::device(index);
    const xrt::uuid uuid = card->device.load_xclbin(file.xclbin);
    for (const auto& [name, units] : file.kernels) {
      for (const std::string& unit : units) {
        card->kernels[name].emplace_back(card->device, uuid, fmt::format("{}:{{{}}}", name, unit));
      }
    }
  }));
  ASSIGN_OR_RETURN(auto bank, xrt_call(what, [&] { return bank_of(*card, file.path); }));
  ASSIGN_OR_RETURN(card->bank, std::move(bank));
  return card;
}

}  // namespace sluice::hls_host
