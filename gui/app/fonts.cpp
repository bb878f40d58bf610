#include "gui/app/fonts.h"

#include <imgui.h>

#include <cstddef>

#include "gui/widgets/look.h"

// The files themselves, put into the read-only data by the assembler (paths: CMakeLists.txt).
#define SLUICE_EMBED(name, path)             \
  asm(".pushsection .rodata\n"               \
      ".balign 16\n" #name                   \
      "_begin:\n"                            \
      ".incbin \"" path "\"\n" #name         \
      "_end:\n"                              \
      ".popsection\n");                      \
  extern "C" const std::byte name##_begin[]; \
  extern "C" const std::byte name##_end[];

SLUICE_EMBED(sluice_font_text, SLUICE_FONT_TEXT)
SLUICE_EMBED(sluice_font_bold, SLUICE_FONT_BOLD)
SLUICE_EMBED(sluice_font_mono, SLUICE_FONT_MONO)

namespace sluice::gui {
namespace {

struct FontFile {
  const std::byte* begin;
  const std::byte* end;
};
const FontFile kText = {sluice_font_text_begin, sluice_font_text_end};
const FontFile kBold = {sluice_font_bold_begin, sluice_font_bold_end};
const FontFile kMono = {sluice_font_mono_begin, sluice_font_mono_end};

ImFont* add(const FontFile& file, bool is_merged) {
  ImFontConfig config;
  config.FontDataOwnedByAtlas = false;
  config.MergeMode = is_merged;
  // ImGui takes a pointer to non-const and does not write through it.
  return ImGui::GetIO().Fonts->AddFontFromMemoryTTF(const_cast<std::byte*>(file.begin),
                                                    static_cast<int>(file.end - file.begin),
                                                    Look::kTextSize, &config);
}

}  // namespace

void load_fonts() {
  look().text = add(kText, false);
  add(kMono, true);  // has arrows, which Roboto has not
  look().bold = add(kBold, false);
  add(kMono, true);
  look().mono = add(kMono, false);
  ImGui::GetIO().FontDefault = look().text;
}

}  // namespace sluice::gui
