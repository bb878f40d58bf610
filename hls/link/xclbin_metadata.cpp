#include "hls/link/xclbin_metadata.h"

namespace sluice::hls_link {

namespace {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '"') {
      result += "&quot;";
    } else {
      result += c;
    }
  }
  return result;
}

std::string argument_xml(const KernelArgument& argument, std::size_t id) {
  return fmt::format(
      R"(<arg name="{}" addressQualifier="{}" id="{}" port="{}" size="{:#x}" offset="{:#x}" )"
      R"(hostOffset="0x0" hostSize="{:#x}" type="{}"/>)"
      "\n",
      escaped(argument.name), argument.is_buffer ? 1 : 0, id,
      argument.is_buffer ? "M_AXI_GMEM" : "S_AXI_CONTROL", argument.size_bytes,
      argument.offset_bytes, argument.size_bytes, escaped(argument.type));
}

std::string kernel_xml(const Kernel& kernel, int& unit) {
  std::string xml =
      fmt::format(R"(<kernel name="{}" language="c" type="pl" hwControlProtocol="ap_ctrl_hs">)"
                  "\n"
                  R"(<port name="M_AXI_GMEM" mode="master" range="0xFFFFFFFF" dataWidth="512" )"
                  R"(portType="addressable" base="0x0"/>)"
                  "\n"
                  R"(<port name="S_AXI_CONTROL" mode="slave" range="{:#x}" dataWidth="32" )"
                  R"(portType="addressable" base="0x0"/>)"
                  "\n",
                  escaped(kernel.name), kUnitRangeBytes);
  for (std::size_t a = 0; a < kernel.arguments.size(); ++a)
    xml += argument_xml(kernel.arguments[a], a);
  for (int instance = 1; instance <= kernel.instance_count; ++instance, ++unit) {
    xml += fmt::format(
        R"(<instance name="{}_{}"><addrRemap base="{:#x}" range="{:#x}" port="S_AXI_CONTROL"/>)"
        "</instance>\n",
        escaped(kernel.name), instance, unit_address(unit), kUnitRangeBytes);
  }
  return xml + "</kernel>\n";
}

}  // namespace

std::string metadata_xml(const std::vector<Kernel>& kernels, std::uint16_t kernel_mhz) {
  std::string xml = fmt::format(
      R"(<?xml version="1.0" encoding="UTF-8"?>
<project name="sluice"><platform vendor="sluice" boardid="software" name="smartssd">
<version major="1" minor="0"/>
<device name="fpga0"><core name="OCL_REGION_0" type="clc_region" target="csim">
<kernelClocks><clock port="KERNEL_CLK" frequency="{}MHz"/></kernelClocks>
)",
      kernel_mhz);
  int unit = 0;
  for (const Kernel& kernel : kernels) xml += kernel_xml(kernel, unit);
  return xml + "</core></device></platform></project>\n";
}

}  // namespace sluice::hls_link
