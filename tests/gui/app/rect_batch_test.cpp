#include "gui/widgets/rect_batch.h"

#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "base/split_mix.h"

namespace sluice::gui {
namespace {

constexpr int kWidth = 200;
constexpr int kHeight = 40;
using Picture = std::vector<ImU32>;

struct Rect {
  std::size_t lane = 0;
  ImVec2 low;
  ImVec2 high;
  ImU32 colour = 0;
};

// As OpenGL fills: a pixel whose centre lies inside, its left and upper edge among it.
void fill(Picture& picture, ImVec2 low, ImVec2 high, ImU32 colour) {
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      const float centre_x = static_cast<float>(x) + 0.5F;
      const float centre_y = static_cast<float>(y) + 0.5F;
      if (centre_x >= low.x && centre_x < high.x && centre_y >= low.y && centre_y < high.y)
        picture[static_cast<std::size_t>(y * kWidth + x)] = colour;
    }
  }
}

// The picture of a draw list that holds nothing but rectangles.
Picture picture_of(const ImDrawList& list) {
  Picture picture(kWidth * kHeight, 0);
  for (int v = 0; v + 3 < list.VtxBuffer.Size; v += 4)
    fill(picture, list.VtxBuffer[v].pos, list.VtxBuffer[v + 2].pos, list.VtxBuffer[v].col);
  return picture;
}

std::vector<Rect> random_rects(std::uint64_t seed) {
  std::uint64_t index = 0;
  const auto random = [&](float below) {
    return static_cast<float>(split_mix(seed, index++) % 10'000) * below / 10'000;
  };
  std::vector<Rect> rects;
  for (std::size_t lane = 0; lane < 4; ++lane) {
    for (float x = random(3); x < 190;) {
      const float top = static_cast<float>(lane) * 10 + 1 + (random(1) < 0.3F ? random(2) : 0);
      const float width = random(1) < 0.2F ? random(20) : 1 + random(1.5F);
      const ImU32 colour = random(1) < 0.7F ? 0xff2010f0 : 0xff30f020;
      rects.push_back({lane, {x, top}, {x + width, static_cast<float>(lane) * 10 + 9}, colour});
      x += random(1) < 0.5F ? width : random(1) < 0.8F ? width * 0.9F : width + random(6);
    }
  }
  std::ranges::stable_sort(rects, {}, [](const Rect& rect) { return rect.low.x; });
  return rects;
}

}  // namespace

TEST_CASE("rectangles in a batch are fewer and make the same picture, to the pixel") {
  ImGui::CreateContext();
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<Rect> rects = random_rects(seed);
    ImDrawList list(ImGui::GetDrawListSharedData());
    list._ResetForNewFrame();
    {
      RectBatch batch(&list);
      for (const Rect& rect : rects) batch.add(rect.lane, rect.low, rect.high, rect.colour);
    }
    Picture plain(kWidth * kHeight, 0);
    for (const Rect& rect : rects) fill(plain, rect.low, rect.high, rect.colour);
    CHECK(picture_of(list) == plain);
    CHECK(list.VtxBuffer.Size / 4 < static_cast<int>(rects.size()));
  }
  ImGui::DestroyContext();
}

}  // namespace sluice::gui
