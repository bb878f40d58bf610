// The sections as bytes, then the header in front of them, then the seal over all.

#include <xclbin.h>

#include <algorithm>
#include <cstring>

#include "hls/link/xclbin.h"
#include "hls/link/xclbin_metadata.h"
#include "hls/link/xclbin_seal.h"

namespace sluice::hls_link {

namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kFirstUnitAddress = 0x1800000;

struct Section {
  axlf_section_kind kind;
  std::string_view name;
  Bytes bytes;
};

// A count and its entries, as the C structs of the format have them: the entries begin where the
// struct's array does, which is not behind the count if they need more alignment.
template <typename Table, typename Count, typename Entry>
Bytes table_of(Count count, std::size_t first_entry, const std::vector<Entry>& entries) {
  const std::size_t entries_bytes = entries.size() * sizeof(Entry);
  Bytes bytes(std::max(sizeof(Table), first_entry + entries_bytes));
  std::memcpy(bytes.data(), &count, sizeof count);
  if (entries_bytes > 0) std::memcpy(bytes.data() + first_entry, entries.data(), entries_bytes);
  return bytes;
}

template <std::size_t kSize, typename Char>
void copy_name(Char (&to)[kSize], std::string_view name) {
  std::memcpy(to, name.data(), std::min(name.size(), kSize - 1));
}

Status check_kernels(const std::vector<Kernel>& kernels) {
  int unit_count = 0;
  for (const Kernel& kernel : kernels) {
    if (kernel.instance_count < 1)
      return make_error(ErrorCode::config, "kernel {} has no compute unit", kernel.name);
    unit_count += kernel.instance_count;
    const std::string name = unit_name(kernel, kernel.instance_count);
    if (name.size() >= sizeof(ip_data::m_name))
      return make_error(ErrorCode::config, "compute unit {} has a name of {} bytes; {} fit", name,
                        name.size(), sizeof(ip_data::m_name) - 1);
  }
  if (unit_count < 1 || unit_count > kUnitsMax)
    return make_error(ErrorCode::config, "{} compute units; an xclbin holds 1 to {}", unit_count,
                      kUnitsMax);
  return ok_status();
}

Bytes ip_layout_bytes(const std::vector<Kernel>& kernels) {
  std::vector<ip_data> units;
  for (const Kernel& kernel : kernels) {
    for (int instance = 1; instance <= kernel.instance_count; ++instance) {
      ip_data unit{};
      unit.m_type = IP_KERNEL;
      unit.properties = AP_CTRL_HS << IP_CONTROL_SHIFT;
      unit.m_base_address = unit_address(static_cast<int>(units.size()));
      copy_name(unit.m_name, unit_name(kernel, instance));
      units.push_back(unit);
    }
  }
  return table_of<ip_layout>(static_cast<std::int32_t>(units.size()),
                             offsetof(ip_layout, m_ip_data), units);
}

Bytes connectivity_bytes(const std::vector<Kernel>& kernels) {
  std::vector<connection> connections;
  std::int32_t unit = 0;
  for (const Kernel& kernel : kernels) {
    for (int instance = 0; instance < kernel.instance_count; ++instance, ++unit) {
      for (std::size_t a = 0; a < kernel.arguments.size(); ++a) {
        if (kernel.arguments[a].is_buffer)
          connections.push_back({static_cast<std::int32_t>(a), unit, 0});
      }
    }
  }
  return table_of<connectivity>(static_cast<std::int32_t>(connections.size()),
                                offsetof(connectivity, m_connection), connections);
}

Bytes mem_topology_bytes() {
  mem_data bank{};
  bank.m_type = MEM_DDR4;
  bank.m_used = 1;
  bank.m_size = kBankBytes / 1024;
  copy_name(bank.m_tag, "bank0");
  return table_of<mem_topology>(std::int32_t{1}, offsetof(mem_topology, m_mem_data),
                                std::vector{bank});
}

Bytes clock_bytes(std::uint16_t kernel_mhz) {
  clock_freq clock{};
  clock.m_freq_Mhz = kernel_mhz;
  clock.m_type = CT_KERNEL;
  copy_name(clock.m_name, "KERNEL_CLK");
  return table_of<clock_freq_topology>(std::int16_t{1}, offsetof(clock_freq_topology, m_clock_freq),
                                       std::vector{clock});
}

Bytes as_vector(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

// The same content has the same UUID (version 8: of the maker's own making).
void set_uuid(axlf& header, const std::vector<Section>& sections) {
  std::uint64_t hashes[2] = {kFnvOffset, ~kFnvOffset};
  for (const Section& section : sections) {
    for (std::uint64_t& hash : hashes) hash = fnv1a(section.bytes, hash);
  }
  std::memcpy(header.m_header.uuid, hashes, sizeof hashes);
  header.m_header.uuid[6] = static_cast<unsigned char>((header.m_header.uuid[6] & 0x0f) | 0x80);
  header.m_header.uuid[8] = static_cast<unsigned char>((header.m_header.uuid[8] & 0x3f) | 0x80);
  header.m_uniqueId = hashes[0];
}

Bytes file_of(const std::vector<Section>& sections) {
  axlf header{};
  std::memcpy(header.m_magic, kXclbinMagic.data(), kXclbinMagic.size());
  header.m_signature_length = -1;
  std::memset(header.reserved, 0xff, sizeof header.reserved);
  std::memcpy(header.m_keyBlock, kSealMark.data(), kSealMark.size());
  header.m_header.m_mode = XCLBIN_FLAT;
  header.m_header.m_numSections = static_cast<std::uint32_t>(sections.size());
  copy_name(header.m_header.m_platformVBNV, kPlatform);
  set_uuid(header, sections);

  Bytes data;
  std::vector<axlf_section_header> table;
  const std::size_t data_offset =
      kSectionTableOffset + sections.size() * sizeof(axlf_section_header);
  const auto align = [&] { data.resize((data_offset + data.size() + 7) / 8 * 8 - data_offset); };
  for (const Section& section : sections) {
    align();
    axlf_section_header entry{};
    entry.m_sectionKind = section.kind;
    copy_name(entry.m_sectionName, section.name);
    entry.m_sectionOffset = data_offset + data.size();
    entry.m_sectionSize = section.bytes.size();
    table.push_back(entry);
    data.insert(data.end(), section.bytes.begin(), section.bytes.end());
  }
  align();
  header.m_header.m_length = data_offset + data.size();

  Bytes file(kSectionTableOffset);
  std::memcpy(file.data(), &header, kSectionTableOffset);
  const auto table_bytes = std::as_bytes(std::span(table));
  file.insert(file.end(), table_bytes.begin(), table_bytes.end());
  file.insert(file.end(), data.begin(), data.end());
  const std::uint64_t seal = seal_of(file);
  std::memcpy(file.data() + kSealHashOffset, &seal, sizeof seal);
  return file;
}

}  // namespace

std::string unit_name(const Kernel& kernel, int instance) {
  return fmt::format("{0}:{0}_{1}", kernel.name, instance);
}

std::uint64_t unit_address(int unit) {
  return kFirstUnitAddress + static_cast<std::uint64_t>(unit) * kUnitRangeBytes;
}

Result<std::vector<std::byte>> write_xclbin(const XclbinParts& parts) {
  RETURN_IF_ERROR(check_kernels(parts.kernels));
  const std::string metadata = metadata_xml(parts.kernels, parts.kernel_mhz);
  return file_of({
      {BITSTREAM, "kernels", as_vector(parts.bitstream)},
      {EMBEDDED_METADATA, "metadata", as_vector(std::as_bytes(std::span(metadata)))},
      {IP_LAYOUT, "ip_layout", ip_layout_bytes(parts.kernels)},
      {MEM_TOPOLOGY, "mem_topology", mem_topology_bytes()},
      {CONNECTIVITY, "connectivity", connectivity_bytes(parts.kernels)},
      {CLOCK_FREQ_TOPOLOGY, "clocks", clock_bytes(parts.kernel_mhz)},
  });
}

}  // namespace sluice::hls_link
