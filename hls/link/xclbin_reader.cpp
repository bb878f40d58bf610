// Bounds first, then the seal, then what the sections say: a message about a cut file names the
// cut, and nothing of a changed file is believed.

#include <xclbin.h>

#include <cstring>

#include "hls/link/xclbin.h"
#include "hls/link/xclbin_seal.h"

namespace sluice::hls_link {

namespace {

// The caller has checked that `offset` and the size of T lie within.
template <typename T>
T value_at(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <std::size_t kSize, typename Char>
std::string text_of(const Char (&from)[kSize]) {
  const auto* chars = reinterpret_cast<const char*>(from);
  return {chars, strnlen(chars, kSize)};
}

struct Part {
  std::size_t offset = 0;
  std::span<const std::byte> bytes;
};

class Reader {
 public:
  Reader(std::span<const std::byte> file, std::string_view name) : file_(file), name_(name) {}

  Result<Xclbin> read() {
    RETURN_IF_ERROR(read_header());
    RETURN_IF_ERROR(check_sections());
    RETURN_IF_ERROR(check_seal());
    Xclbin xclbin;
    std::memcpy(xclbin.uuid.data(), header_.m_header.uuid, xclbin.uuid.size());
    xclbin.platform = text_of(header_.m_header.m_platformVBNV);
    RETURN_IF_ERROR(read_units(xclbin));
    RETURN_IF_ERROR(read_bank(xclbin));
    RETURN_IF_ERROR(read_clock(xclbin));
    ASSIGN_OR_RETURN(const Part metadata, section(EMBEDDED_METADATA));
    xclbin.metadata = {reinterpret_cast<const char*>(metadata.bytes.data()), metadata.bytes.size()};
    ASSIGN_OR_RETURN(const Part bitstream, section(BITSTREAM));
    xclbin.bitstream = bitstream.bytes;
    return xclbin;
  }

 private:
  template <typename... Args>
  Error corrupt(std::size_t offset, fmt::format_string<Args...> format, Args&&... args) const {
    return make_error(ErrorCode::corrupt, "{}, offset {}: {}", name_, offset,
                      fmt::format(format, std::forward<Args>(args)...));
  }

  Status read_header() {
    if (file_.size() < kXclbinMagic.size() ||
        std::memcmp(file_.data(), kXclbinMagic.data(), kXclbinMagic.size()) != 0)
      return corrupt(0, "no xclbin: it does not begin with \"xclbin2\"");
    if (file_.size() < kSectionTableOffset)
      return corrupt(file_.size(), "cut: a header has {} bytes", kSectionTableOffset);
    std::memcpy(&header_, file_.data(), kSectionTableOffset);
    if (std::memcmp(header_.m_keyBlock, kSealMark.data(), kSealMark.size()) != 0)
      return corrupt(kSealOffset,
                     "not a software xclbin: no checksum of Sluice (one made by v++ has none)");
    if (header_.m_header.m_length != file_.size())
      return corrupt(offsetof(axlf, m_header.m_length), "{} bytes by its header, {} are there",
                     header_.m_header.m_length, file_.size());
    const std::uint64_t room = (file_.size() - kSectionTableOffset) / sizeof(axlf_section_header);
    if (header_.m_header.m_numSections > room)
      return corrupt(offsetof(axlf, m_header.m_numSections), "{} sections, room for {}",
                     header_.m_header.m_numSections, room);
    return ok_status();
  }

  axlf_section_header entry(std::uint32_t index) const {
    return value_at<axlf_section_header>(file_, entry_offset(index));
  }
  static std::size_t entry_offset(std::uint32_t index) {
    return kSectionTableOffset + index * sizeof(axlf_section_header);
  }

  Status check_sections() const {
    for (std::uint32_t i = 0; i < header_.m_header.m_numSections; ++i) {
      const axlf_section_header section = entry(i);
      const bool fits = section.m_sectionOffset <= file_.size() &&
                        section.m_sectionSize <= file_.size() - section.m_sectionOffset &&
                        section.m_sectionOffset >= entry_offset(header_.m_header.m_numSections);
      if (!fits)
        return corrupt(entry_offset(i), "section {} of kind {} at {} with {} bytes is not within",
                       i, section.m_sectionKind, section.m_sectionOffset, section.m_sectionSize);
      for (std::uint32_t j = 0; j < i; ++j) {
        if (entry(j).m_sectionKind == section.m_sectionKind)
          return corrupt(entry_offset(i), "a second section of kind {}", section.m_sectionKind);
      }
    }
    return ok_status();
  }

  Status check_seal() const {
    const auto said = value_at<std::uint64_t>(file_, kSealHashOffset);
    const std::uint64_t found = seal_of(file_);
    if (said != found)
      return corrupt(kSealHashOffset, "damaged: checksum {:016x}, its bytes give {:016x}", said,
                     found);
    return ok_status();
  }

  Result<Part> section(axlf_section_kind kind) const {
    for (std::uint32_t i = 0; i < header_.m_header.m_numSections; ++i) {
      const axlf_section_header found = entry(i);
      if (found.m_sectionKind == static_cast<std::uint32_t>(kind))
        return Part{found.m_sectionOffset,
                    file_.subspan(found.m_sectionOffset, found.m_sectionSize)};
    }
    return corrupt(kSectionTableOffset, "no section of kind {}", static_cast<int>(kind));
  }

  // A section that is a count and its entries, as many as the count says.
  template <typename Entry, typename Count>
  Result<std::vector<Entry>> entries(axlf_section_kind kind, std::size_t first_entry) const {
    ASSIGN_OR_RETURN(const Part part, section(kind));
    if (part.bytes.size() < first_entry)
      return corrupt(part.offset, "section of kind {} is cut", static_cast<int>(kind));
    const auto count = value_at<Count>(part.bytes, 0);
    const std::size_t room = (part.bytes.size() - first_entry) / sizeof(Entry);
    if (count < 0 || static_cast<std::size_t>(count) > room)
      return corrupt(part.offset, "section of kind {} has {} entries, room for {}",
                     static_cast<int>(kind), count, room);
    std::vector<Entry> found;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
      found.push_back(value_at<Entry>(part.bytes, first_entry + i * sizeof(Entry)));
    return found;
  }

  Status read_units(Xclbin& xclbin) const {
    ASSIGN_OR_RETURN(const std::vector<ip_data> units,
                     (entries<ip_data, std::int32_t>(IP_LAYOUT, offsetof(ip_layout, m_ip_data))));
    for (const ip_data& unit : units) {
      const std::string name = text_of(unit.m_name);
      const std::size_t colon = name.find(':');
      if (unit.m_type != IP_KERNEL || colon == std::string::npos)
        return make_error(ErrorCode::corrupt, "{}: IP_LAYOUT has '{}', which is no compute unit",
                          name_, name);
      xclbin.compute_units.push_back(
          {name.substr(0, colon), name.substr(colon + 1), unit.m_base_address});
    }
    if (xclbin.compute_units.empty() || xclbin.compute_units.size() > kUnitsMax)
      return make_error(ErrorCode::corrupt, "{}: {} compute units, 1 to {} are possible", name_,
                        xclbin.compute_units.size(), kUnitsMax);
    return ok_status();
  }

  Status read_bank(Xclbin& xclbin) const {
    ASSIGN_OR_RETURN(
        const std::vector<mem_data> banks,
        (entries<mem_data, std::int32_t>(MEM_TOPOLOGY, offsetof(mem_topology, m_mem_data))));
    if (banks.size() != 1 || banks.front().m_used != 1)
      return make_error(ErrorCode::corrupt, "{}: {} memory banks; a SmartSSD has one", name_,
                        banks.size());
    xclbin.bank_bytes = banks.front().m_size * 1024;
    return ok_status();
  }

  Status read_clock(Xclbin& xclbin) const {
    ASSIGN_OR_RETURN(const std::vector<clock_freq> clocks,
                     (entries<clock_freq, std::int16_t>(
                         CLOCK_FREQ_TOPOLOGY, offsetof(clock_freq_topology, m_clock_freq))));
    for (const clock_freq& clock : clocks) {
      if (clock.m_type == CT_KERNEL) xclbin.kernel_mhz = clock.m_freq_Mhz;
    }
    return ok_status();
  }

  std::span<const std::byte> file_;
  std::string_view name_;
  axlf header_{};
};

}  // namespace

Result<Xclbin> read_xclbin(std::span<const std::byte> file, std::string_view name) {
  return Reader(file, name).read();
}

}  // namespace sluice::hls_link
