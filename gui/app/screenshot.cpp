#include <GLFW/glfw3.h>

#include <algorithm>
#include <vector>

#include "gui/app/app.h"

// One header, a library; its functions are local to this file.
#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <imstb_image_write.h>

namespace sluice::gui {

Status save_screenshot(int width, int height, const std::string& path) {
  if (width <= 0 || height <= 0)
    return make_error(ErrorCode::internal, "{}: the window has no size", path);
  const auto row_bytes = static_cast<std::size_t>(width) * 4;
  std::vector<unsigned char> pixels(row_bytes * static_cast<std::size_t>(height));
  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glReadPixels(0, 0, width, height, GL_RGBA, GL_UNSIGNED_BYTE, pixels.data());
  // OpenGL's first row is the lowest one; what is behind the window must not show through.
  for (std::size_t p = 3; p < pixels.size(); p += 4) pixels[p] = 255;
  const auto rows = static_cast<std::size_t>(height);
  for (std::size_t r = 0; r < rows / 2; ++r) {
    const auto low = pixels.begin() + static_cast<std::ptrdiff_t>(r * row_bytes);
    const auto high = pixels.begin() + static_cast<std::ptrdiff_t>((rows - 1 - r) * row_bytes);
    std::swap_ranges(low, low + static_cast<std::ptrdiff_t>(row_bytes), high);
  }
  if (stbi_write_png(path.c_str(), width, height, 4, pixels.data(), static_cast<int>(row_bytes)) ==
      0)
    return make_error(ErrorCode::io, "{}: cannot write the picture there", path);
  return ok_status();
}

}  // namespace sluice::gui
