// sluice-xclbin pack KERNELS.so OUT.xclbin [MHZ]   makes a software xclbin of a shared object
// sluice-xclbin show FILE.xclbin                   says what one holds
//
// Exit codes: 0, 2 for a wrong command line, 1 for all else.

#include <charconv>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "hls/link/soft_bitstream.h"
#include "hls/link/xclbin.h"

namespace sluice::hls_link {
namespace {

Result<std::vector<std::byte>> file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return make_error(ErrorCode::not_found, "{}: cannot be read", path);
  const std::vector<char> chars{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(chars));
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

Status pack(const std::string& from, const std::string& to, std::uint16_t kernel_mhz) {
  ASSIGN_OR_RETURN(const std::vector<std::byte> object, file_bytes(from));
  ASSIGN_OR_RETURN(const SoftBitstream bitstream, SoftBitstream::open(object, from));
  ASSIGN_OR_RETURN(const std::vector<std::byte> xclbin,
                   write_xclbin({kernels_of(bitstream), object, kernel_mhz}));
  std::ofstream file(to, std::ios::binary);
  file.write(reinterpret_cast<const char*>(xclbin.data()), std::ssize(xclbin));
  file.close();
  if (!file) return make_error(ErrorCode::io, "{}: cannot be written", to);
  return ok_status();
}

Status show(const std::string& path) {
  ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, file_bytes(path));
  ASSIGN_OR_RETURN(const Xclbin xclbin, read_xclbin(bytes, path));
  fmt::print("software xclbin for {}\n", xclbin.platform);
  fmt::print("kernels: {} bytes, {} MHz; memory: {} bytes in one bank\n", xclbin.bitstream.size(),
             xclbin.kernel_mhz, xclbin.bank_bytes);
  for (const ComputeUnit& unit : xclbin.compute_units)
    fmt::print("compute unit {}:{} at {:#x}\n", unit.kernel, unit.instance, unit.base_address);
  ASSIGN_OR_RETURN(const SoftBitstream bitstream, SoftBitstream::open(xclbin.bitstream, path));
  for (const Kernel& kernel : kernels_of(bitstream)) {
    fmt::print("kernel {}\n", kernel.name);
    for (const KernelArgument& argument : kernel.arguments)
      fmt::print("  {:#06x} {} {}\n", argument.offset_bytes, argument.type, argument.name);
  }
  return ok_status();
}

int usage() {
  fmt::print(stderr, "sluice-xclbin pack KERNELS.so OUT.xclbin [MHZ] | show FILE.xclbin\n");
  return 2;
}

int run(std::span<char*> arguments) {
  const std::string_view command = arguments.size() > 1 ? arguments[1] : "";
  Status status = ok_status();
  if (command == "show" && arguments.size() == 3) {
    status = show(arguments[2]);
  } else if (command == "pack" && (arguments.size() == 4 || arguments.size() == 5)) {
    std::uint16_t kernel_mhz = 300;
    if (arguments.size() == 5) {
      const std::string_view text = arguments[4];
      const auto read = std::from_chars(text.data(), text.data() + text.size(), kernel_mhz);
      if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return usage();
    }
    status = pack(arguments[2], arguments[3], kernel_mhz);
  } else {
    return usage();
  }
  if (status.ok()) return 0;
  fmt::print(stderr, "sluice-xclbin: {}\n", status.error().message());
  return 1;
}

}  // namespace
}  // namespace sluice::hls_link

int main(int argc, char** argv) {
  return sluice::hls_link::run({argv, static_cast<std::size_t>(argc)});
}
